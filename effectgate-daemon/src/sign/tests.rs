//! Keys as openssl writes them, and commands that sign well and badly.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::*;

/// A program of the shell.
pub fn script(dir: &Path, body: &str) -> PathBuf {
    let path = dir.join("sign.sh");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("write");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    path
}

fn openssl(dir: &Path, args: &str) -> Vec<u8> {
    let run = Command::new("openssl").args(args.split(' ')).current_dir(dir).output();
    let run = run.expect("openssl is there");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

/// A directory with `key.pem` and `public.pem`.
fn keys() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    openssl(dir.path(), "genpkey -algorithm ed25519 -out key.pem");
    openssl(dir.path(), "pkey -in key.pem -pubout -out public.pem");
    dir
}

fn told(result: Result<Signer>) -> String {
    format!("{:#}", result.expect_err("it must be refused"))
}

#[test]
fn openssl_verifies_what_its_key_signed() {
    let dir = keys();
    let signer = Signer::new(&Source::File(dir.path().join("key.pem"))).expect("a key");
    let signature = signer.sign(b"message").expect("signed");
    fs::write(dir.path().join("m"), b"message").expect("write");
    fs::write(dir.path().join("s"), signature).expect("write");
    openssl(dir.path(), "pkeyutl -verify -pubin -inkey public.pem -rawin -in m -sigfile s");
    let public = PublicKey::read(&dir.path().join("public.pem")).expect("a key");
    assert_eq!(&public, signer.public());
    let der = openssl(dir.path(), "pkey -pubin -in public.pem -outform DER");
    assert_eq!(public.id(), pin_of(&der));
    assert!(public.verifies(b"message", &signature));
    assert!(!public.verifies(b"massage", &signature));
    assert!(!public.verifies(b"message", &signature[1..]));
}

fn pin_of(bytes: &[u8]) -> String {
    effectgate_core::pin::digest(bytes)
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let dir = keys();
    let key = dir.path().join("key.pem");
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("chmod");
        let error = told(Signer::new(&Source::File(key.clone())));
        assert!(error.contains("chmod 600"), "{error}");
    }
}

#[test]
fn what_is_no_private_key_is_told_apart() {
    let dir = keys();
    openssl(dir.path(), "genpkey -algorithm x25519 -out x.pem");
    openssl(dir.path(), "pkey -in key.pem -aes128 -passout pass:x -out locked.pem");
    fs::write(dir.path().join("empty"), "").expect("write");
    fs::write(dir.path().join("large"), "x".repeat(70_000)).expect("write");
    fs::copy(dir.path().join("public.pem"), dir.path().join("copy.pem")).expect("copy");
    for (name, says) in [
        ("none", "cannot be read"),
        (".", "is no plain file"),
        ("empty", "is no Ed25519 private key"),
        ("x.pem", "is no Ed25519 private key"),
        ("copy.pem", "is no Ed25519 private key"),
        ("locked.pem", "is encrypted"),
        ("large", "larger than any key"),
    ] {
        let path = dir.path().join(name);
        if path.is_file() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
        }
        let error = told(Signer::new(&Source::File(path)));
        assert!(error.contains(says) && error.contains(name), "{name}: {error}");
    }
    let error = PublicKey::read(&dir.path().join("key.pem")).expect_err("it is private");
    assert!(format!("{error:#}").contains("it is a private key"), "{error:#}");
}

#[test]
fn commands_answer_with_bytes_or_base64() {
    let dir = keys();
    let sign = format!(
        "cat > {0}/in; openssl pkeyutl -sign -rawin -inkey {0}/key.pem -in {0}/in",
        dir.path().display()
    );
    let public = dir.path().join("public.pem");
    for body in [sign.clone(), format!("{{ {sign}; }} | base64"), format!("echo hm >&2; {sign}")] {
        let program = script(dir.path(), &body);
        let source = Source::Command { program, public: public.clone() };
        let signer = Signer::new(&source).expect("it signs");
        // Larger than any pipe.
        let message = vec![7; 1 << 20];
        let signature = signer.sign(&message).expect("signed");
        assert!(signer.public().verifies(&message, &signature));
    }
}

#[test]
fn commands_that_do_not_sign_are_told() {
    let dir = keys();
    for (body, says) in [
        ("echo 'no such slot' >&2; exit 3", "failed (exit status: 3): no such slot"),
        ("kill -9 $$", "signal: 9"),
        ("true", "answered 0 bytes"),
        ("echo AAAA", "answered 5 bytes"),
        ("head -c 64 /dev/zero", "does not hold under the public key"),
        ("exec cat /dev/zero", "says more than 4096 bytes"),
        ("exec cat /dev/zero >&2", "says more than 4096 bytes"),
    ] {
        let program = script(dir.path(), body);
        let source = Source::Command { program, public: dir.path().join("public.pem") };
        let error = told(Signer::new(&source));
        assert!(error.contains(says), "{body}: {error}");
    }
    let program = dir.path().join("nowhere");
    let source = Source::Command { program, public: dir.path().join("public.pem") };
    assert!(told(Signer::new(&source)).contains("cannot be started"));
}

#[test]
fn one_source_is_named() {
    let path = |name: &str| Some(PathBuf::from(name));
    let variable = Some(OsStr::new("v"));
    let of = |key, command, public, variable| Source::of(key, command, public, variable).ok();
    let file = |name: &str| Some(Some(Source::File(name.into())));
    assert_eq!(of(None, None, None, None), Some(None));
    assert_eq!(of(None, None, None, Some(OsStr::new(""))), Some(None));
    assert_eq!(of(None, None, None, variable), file("v"));
    assert_eq!(of(path("k"), None, None, variable), file("k"));
    let asked = Source::Command { program: "c".into(), public: "p".into() };
    assert_eq!(of(None, path("c"), path("p"), variable), Some(Some(asked)));
    assert_eq!(of(None, path("c"), None, variable), None);
    assert_eq!(of(None, None, path("p"), variable), None);
    assert_eq!(of(path("k"), path("c"), path("p"), None), None);
}
