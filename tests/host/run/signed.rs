//! Evidence that is signed: what a stranger makes of it, and what happens when
//! it cannot be signed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use effectgate_tests::{Gate, Scene, gate};
use serde_json::Value;

/// A key outside the job's roots, with its public half beside it.
fn key(scene: &Scene) -> (PathBuf, PathBuf) {
    let (key, public) = (scene.path().join("key.pem"), scene.path().join("public.pem"));
    let openssl = |args: &[&str], key: &Path, out: &Path| {
        let mut command = Command::new("openssl");
        command.args(args).arg(key).arg("-out").arg(out);
        assert!(command.output().expect("openssl is there").status.success());
    };
    let mut make = Command::new("openssl");
    make.args(["genpkey", "-algorithm", "ed25519", "-out"]).arg(&key);
    assert!(make.output().expect("openssl is there").status.success());
    openssl(&["pkey", "-pubout", "-in"], &key, &public);
    (key, public)
}

fn script(scene: &Scene, body: &str) -> PathBuf {
    let path = scene.path().join("sign.sh");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("write");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    path
}

fn effectgate(words: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(gate::binary());
    command.args(words).args(paths).env_remove("EFFECTGATE_SIGN_KEY");
    command.output().expect("the binary can be started")
}

/// What `verify` says of a bundle, which must hold.
fn verified(bundle: &Path, public: &Path) -> Value {
    let args = [Path::new("--key"), public, bundle];
    let output = effectgate(&["verify", "--format", "json"], &args);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).expect("JSON")
}

#[test]
fn whoever_has_the_public_key_can_verify_a_run() {
    let scene = Scene::new();
    let (key, public) = key(&scene);
    let outcome =
        Gate::new(&scene).option(["--sign-key".as_ref(), key.as_os_str()]).trigger(["true"]);
    outcome.assert_pass();
    let said = verified(&outcome.evidence, &public);
    assert_eq!(&said["verdict"], outcome.verdict());
    assert!(said["signed_by"].is_string() && said["not_proven"] == serde_json::json!([]), "{said}");
    // Packed, it is the same.
    let packed = scene.path().join("b.tar.zst");
    let paths = [outcome.evidence.as_path(), Path::new("--output"), &packed];
    assert!(effectgate(&["bundle"], &paths).status.success());
    assert_eq!(verified(&packed, &public)["manifest"], said["manifest"]);
}

/// The key is named in the environment; a violation is signed like a pass.
#[test]
fn what_failed_is_signed_as_well() {
    let scene = Scene::new();
    let (key, public) = key(&scene);
    let stray = scene.outside().join("stray");
    let outcome = Gate::new(&scene)
        .env("EFFECTGATE_SIGN_KEY", &key)
        .trigger(["create".as_ref(), stray.as_os_str()]);
    outcome.assert_code(120);
    assert_eq!(verified(&outcome.evidence, &public)["verdict"]["verdict"], "fail");
}

#[test]
fn a_program_can_keep_the_key() {
    let scene = Scene::new();
    let (key, public) = key(&scene);
    let message = scene.path().join("message");
    let sign = format!(
        "cat > {0} && openssl pkeyutl -sign -rawin -inkey {1} -in {0} | base64",
        message.display(),
        key.display()
    );
    let program = script(&scene, &sign);
    let options = [Path::new("--sign-command"), &program, Path::new("--sign-public"), &public];
    let outcome = Gate::new(&scene).option(options).trigger(["true"]);
    outcome.assert_pass();
    verified(&outcome.evidence, &public);
}

/// Before anything ran.
#[test]
fn a_key_that_does_not_sign_is_refused() {
    let scene = Scene::new();
    let (key, public) = key(&scene);
    let refuse = script(&scene, "echo 'the slot is empty' >&2; exit 1");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("chmod");
    for (options, says) in [
        (vec![Path::new("--sign-key"), &key], "chmod 600"),
        (vec![Path::new("--sign-key"), Path::new("/nowhere")], "/nowhere"),
        (
            vec![Path::new("--sign-command"), &refuse, Path::new("--sign-public"), &public],
            "the slot is empty",
        ),
    ] {
        let ran = scene.root().join("ran");
        let outcome = Gate::new(&scene)
            .without_replay()
            .option(options)
            .trigger(["create".as_ref(), ran.as_os_str()]);
        outcome.assert_code(122);
        assert!(outcome.stderr.contains(says), "{}", outcome.story());
        assert!(!ran.exists() && !outcome.evidence.exists());
    }
}

/// What was not signed when it was written can be signed where the key is.
#[test]
fn evidence_is_signed_later() {
    let scene = Scene::new();
    let (key, public) = key(&scene);
    let outcome = Gate::new(&scene).trigger(["true"]);
    outcome.assert_pass();
    let args = [Path::new("--key"), public.as_path(), &outcome.evidence];
    assert_eq!(effectgate(&["verify"], &args).status.code(), Some(1), "it is not signed");
    let paths = [outcome.evidence.as_path(), Path::new("--sign-key"), &key];
    assert!(effectgate(&["bundle"], &paths).status.success());
    verified(&outcome.evidence, &public);
    // What was changed since is not signed.
    fs::write(outcome.evidence.join("policy"), "{}").expect("write");
    assert_eq!(effectgate(&["bundle"], &paths).status.code(), Some(1));
}
