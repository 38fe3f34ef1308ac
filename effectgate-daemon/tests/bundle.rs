//! Bundles as they were written by `effectgate run`, and what was done to them
//! since. `tests/bundles` holds those of every version that wrote them
//! otherwise; all stay readable.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use effectgate_core::bundle::{self as core, DIGESTS, STATEMENT};
use effectgate_core::packet::Problem;
use effectgate_core::pin;
use effectgate_daemon::bundle::{Bundle, amend, check, pack};
use effectgate_daemon::sign::{PublicKey, Signer, Source};
use tempfile::TempDir;

fn written(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles").join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a bundle") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copy");
    }
}

/// A key with its public half.
struct Key {
    dir: TempDir,
    signer: Signer,
}

impl Key {
    fn new() -> Key {
        let dir = tempfile::tempdir().expect("a directory");
        for args in
            ["genpkey -algorithm ed25519 -out key.pem", "pkey -in key.pem -pubout -out public.pem"]
        {
            let mut openssl = Command::new("openssl");
            let done = openssl.args(args.split(' ')).current_dir(dir.path()).output();
            assert!(done.expect("openssl is there").status.success());
        }
        let signer = Signer::new(&Source::File(dir.path().join("key.pem"))).expect("a key");
        Key { dir, signer }
    }

    fn public(&self) -> &PublicKey {
        self.signer.public()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("public.pem")
    }
}

/// A copy of a bundle, signed.
fn sealed(name: &str, key: &Key) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("b");
    copy(&written(name), &path);
    let bundle = Bundle::open(&path, &mut Vec::new()).expect("a bundle");
    amend(&bundle, &[], Some(&key.signer)).expect("signed");
    (dir, path)
}

fn found(path: &Path, keys: &[PublicKey]) -> anyhow::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let bundle = Bundle::open(path, &mut problems)?;
    check(&bundle, keys, &mut problems)?;
    Ok(problems)
}

/// Rules that do not hold, each once, in the order in which they are said.
fn rules(path: &Path, keys: &[PublicKey]) -> Vec<&'static str> {
    let mut rules: Vec<_> =
        found(path, keys).expect("it can be read").iter().map(|problem| problem.rule).collect();
    rules.dedup();
    rules
}

/// Makes the list of digests fit again, as whoever has no key can.
fn list_again(path: &Path) {
    let bundle = Bundle::open(path, &mut Vec::new()).expect("open");
    let digests = bundle.digests().expect("digests");
    fs::write(path.join(DIGESTS), core::format_digests(&digests)).expect("write");
}

#[test]
fn bundles_of_every_version_hold() {
    for (name, verdict) in
        [("pass", "pass"), ("other", "pass"), ("fail", "fail"), ("noted", "pass")]
    {
        let mut problems = Vec::new();
        let bundle = Bundle::open(&written(name), &mut problems).expect("open");
        let checked = check(&bundle, &[], &mut problems).expect("read");
        assert_eq!(problems, [], "{name}");
        let replayed = checked.replayed.expect("a verdict");
        assert_eq!(replayed.verdict.verdict.name(), verdict, "{name}");
        assert_eq!(checked.said.len(), 1, "it is not signed: {:?}", checked.said);
    }
}

#[test]
fn a_signature_is_of_one_key() {
    let (key, other) = (Key::new(), Key::new());
    let (_dir, path) = sealed("noted", &key);
    let public = [key.public().clone()];
    assert_eq!(rules(&path, &public), [""; 0]);
    assert_eq!(rules(&path, &[other.public().clone(), key.public().clone()]), [""; 0]);
    assert_eq!(rules(&path, &[other.public().clone()]), ["bundle-signature"]);
    fs::remove_file(path.join(STATEMENT)).expect("remove");
    assert_eq!(rules(&path, &public), ["bundle-signature"]);
    assert_eq!(rules(&path, &[]), [""; 0]);
}

/// One after the other, in every file: the smallest change is found. Of the two
/// long files some bytes stand for all here; each byte of a statement is tried
/// beside what checks it, and each byte of a log in `log.rs`.
#[test]
fn no_byte_changes_unseen() {
    const LONG: usize = 2000;
    let key = Key::new();
    let (_dir, path) = sealed("noted", &key);
    let public = [key.public().clone()];
    let entries = fs::read_dir(&path).expect("a bundle");
    let files: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    let whole = |file: &OsString| fs::read(path.join(file)).expect("read");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tried: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let (files, whole, path, public) = (&files, &whole, &path, &public);
                scope.spawn(move || {
                    let own = tempfile::tempdir().expect("a directory");
                    copy(path, own.path());
                    let mut tried = 0;
                    for name in files {
                        let (file, whole) = (own.path().join(name), whole(name));
                        let step = if whole.len() > LONG { 61 } else { 1 };
                        let all = (0..whole.len()).step_by(step);
                        for at in all.skip(worker).step_by(threads) {
                            let mut changed = whole.clone();
                            changed[at] ^= 1 << (at % 8);
                            fs::write(&file, changed).expect("write");
                            let problems = found(own.path(), public);
                            let seen = problems.is_ok_and(|found| !found.is_empty());
                            assert!(seen, "{name:?}, byte {at}");
                            tried += 1;
                        }
                        for cut in [0, whole.len() / 2, whole.len() - 1] {
                            fs::write(&file, &whole[..cut]).expect("write");
                            let problems = found(own.path(), public);
                            assert!(
                                problems.is_ok_and(|found| !found.is_empty()),
                                "{name:?} {cut}"
                            );
                        }
                        fs::write(&file, &whole).expect("write");
                    }
                    assert_eq!(rules(own.path(), public), [""; 0]);
                    tried
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).sum()
    });
    assert!(tried > 2500, "{tried}");
}

/// What lies in a bundle is what its readers read: of two files for one segment
/// of the log, or one that no log has, none is passed over, listed or not.
#[test]
fn nothing_lies_beside_the_log() {
    for names in [
        &["events-4294967296.jsonl"][..],
        &["events-99999999999.jsonl.zst"],
        &["events-000000.jsonl", "events-000000.jsonl.zst"],
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        copy(&written("pass"), dir.path());
        for name in names {
            fs::write(dir.path().join(name), "").expect("write");
        }
        list_again(dir.path());
        assert!(rules(dir.path(), &[]).contains(&"bundle-extra-file"), "{names:?}");
    }
}

/// A small archive unpacks to large files: none is taken into memory that is
/// larger than any of its kind.
#[test]
fn no_file_takes_all_memory() {
    for name in ["host.json", "pin", "checkpoint", "review-note.json", "properties.json"] {
        let dir = tempfile::tempdir().expect("a directory");
        copy(&written("pass"), dir.path());
        let file = fs::File::create(dir.path().join(name)).expect("create");
        file.set_len(17 << 20).expect("a hole");
        list_again(dir.path());
        let error = found(dir.path(), &[]).map_err(|error| format!("{error:#}"));
        assert!(error.as_ref().is_err_and(|said| said.contains("too large")), "{name} {error:?}");
    }
}

#[test]
fn no_file_is_taken_out_or_put_in() {
    let key = Key::new();
    let (_dir, path) = sealed("noted", &key);
    let public = [key.public().clone()];
    for entry in fs::read_dir(written("noted")).expect("a bundle") {
        let name = entry.expect("an entry").file_name();
        let file = path.join(&name);
        let whole = fs::read(&file).expect("read");
        fs::remove_file(&file).expect("remove");
        assert!(rules(&path, &public).contains(&"bundle-missing-file"), "{name:?}");
        // A link to the very same bytes is no file of the bundle either.
        symlink(written("noted").join(&name), &file).expect("link");
        assert!(rules(&path, &public).contains(&"bundle-no-file"), "{name:?}");
        fs::remove_file(&file).expect("remove");
        fs::create_dir(&file).expect("a directory");
        assert!(rules(&path, &public).contains(&"bundle-no-file"), "{name:?}");
        fs::remove_dir(&file).expect("remove");
        fs::write(&file, whole).expect("write");
    }
    for name in ["notes.txt", ".hidden", "policy~", "events-1.jsonl", "a\nb\x1b[2J"] {
        fs::write(path.join(name), "x").expect("write");
        assert_eq!(rules(&path, &public), ["bundle-extra-file"], "{name:?}");
        fs::remove_file(path.join(name)).expect("remove");
    }
    // A segment of the log that nobody wrote.
    for name in ["events-000000.jsonl", "events-000000.jsonl.zst"] {
        fs::write(path.join(name), "x").expect("write");
        let rules = rules(&path, &public);
        assert_eq!((rules[0], rules.last()), ("bundle-extra-file", Some(&"bundle-log")));
        fs::remove_file(path.join(name)).expect("remove");
    }
    // Known, but not of this bundle.
    fs::write(path.join("report.html"), "x").expect("write");
    assert_eq!(rules(&path, &public), ["bundle-extra-file"]);
}

/// Whoever has no key can make the list of digests fit, and is still found out
/// by what the files say of each other.
#[test]
fn files_of_another_run_do_not_fit() {
    for (name, from, says) in [
        ("policy", "noted", &["bundle-policy", "bundle-pin"][..]),
        ("pin", "noted", &[""; 0]),
        ("verdict.json", "other", &["bundle-verdict"]),
        ("events.jsonl", "other", &["bundle-verdict"]),
        ("events.jsonl", "noted", &["bundle-policy", "bundle-note"]),
        ("events.jsonl", "fail", &["bundle-verdict"]),
        ("review-note.json", "noted", &["bundle-note"]),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        copy(&written("pass"), dir.path());
        fs::copy(written(from).join(name), dir.path().join(name)).expect("copy");
        list_again(dir.path());
        assert_eq!(rules(dir.path(), &[]), says, "{name} of {from}");
    }
    // The pin of another policy.
    let dir = tempfile::tempdir().expect("a directory");
    copy(&written("pass"), dir.path());
    fs::write(dir.path().join("pin"), pin::format_pin(&"a".repeat(64), "policy")).expect("write");
    list_again(dir.path());
    assert_eq!(rules(dir.path(), &[]), ["bundle-pin"]);
    let host = fs::read_to_string(dir.path().join("host.json")).expect("read");
    fs::write(dir.path().join("host.json"), host.replace("\"host\": \"", "\"host\": \"x"))
        .expect("write");
    list_again(dir.path());
    assert_eq!(rules(dir.path(), &[]), ["bundle-pin", "bundle-host"]);
}

/// What a signature is of is the bundle that it lies in.
#[test]
fn a_statement_about_another_bundle_does_not_fit() {
    let key = Key::new();
    let (_dir, path) = sealed("pass", &key);
    let (_other, other) = sealed("other", &key);
    fs::copy(other.join(STATEMENT), path.join(STATEMENT)).expect("copy");
    assert_eq!(rules(&path, &[key.public().clone()]), ["bundle-statement"]);
}

/// A verdict that was changed together with everything that can be changed
/// without the key.
#[test]
fn a_verdict_follows_from_its_log() {
    let dir = tempfile::tempdir().expect("a directory");
    copy(&written("fail"), dir.path());
    let file = dir.path().join("verdict.json");
    let verdict = fs::read_to_string(&file).expect("read");
    for (from, to) in [
        ("\"fail\"", "\"pass\""),
        ("\"violations_unlisted\": 0", "\"violations_unlisted\": 1"),
        ("\"lost\": {}", "\"lots\": {}"),
        ("\"exit\": {", "\"exit\": null, \"was\": {"),
    ] {
        assert!(verdict.contains(from), "{from}");
        fs::write(&file, verdict.replacen(from, to, 1)).expect("write");
        list_again(dir.path());
        assert_eq!(rules(dir.path(), &[]), ["bundle-verdict"], "{to}");
    }
}

#[test]
fn packed_or_not_it_is_one_bundle() {
    let key = Key::new();
    let (dir, path) = sealed("pass", &key);
    let archive = dir.path().join("b.tar.zst");
    let bundle = Bundle::open(&path, &mut Vec::new()).expect("open");
    pack(&bundle, &archive).expect("packed");
    assert_eq!(rules(&archive, &[key.public().clone()]), [""; 0]);
}

/// Neither of the two is written with the other in mind.
#[test]
fn others_verify_what_was_signed_here_and_refuse_what_was_changed() {
    let key = Key::new();
    let other = Key::new();
    for name in ["pass", "fail", "noted"] {
        let (_dir, path) = sealed(name, &key);
        let said = independent(&path, &key).expect("it verifies");
        assert!(said.contains("subjects"), "{said}");
        assert!(independent(&path, &other).is_err());
        let file = path.join(STATEMENT);
        let whole = fs::read(&file).expect("read");
        let text = String::from_utf8(whole.clone()).expect("JSON");
        // In the payload's first and last bytes, and in the signature.
        let payload = text.find("\"payload\":\"").expect("a payload") + 11;
        let signature = text.find("\"sig\":\"").expect("a signature") + 7;
        for at in [payload, payload + 100, text.len() - 10, signature, signature + 80] {
            let mut changed = whole.clone();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            fs::write(&file, &changed).expect("write");
            assert!(independent(&path, &key).is_err(), "{name} {at}");
            assert_ne!(rules(&path, &[key.public().clone()]), [""; 0], "{name} {at}");
        }
        fs::write(&file, &whole).expect("write");
        // In a file that the statement is about.
        let mut policy = fs::read(path.join("policy")).expect("read");
        policy[0] ^= 1;
        fs::write(path.join("policy"), policy).expect("write");
        assert!(independent(&path, &key).is_err(), "{name}");
        assert_ne!(rules(&path, &[key.public().clone()]), [""; 0], "{name}");
    }
}

fn independent(bundle: &Path, key: &Key) -> Result<String, String> {
    let python = std::env::var_os("EFFECTGATE_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python/bin/python3"),
        PathBuf::from,
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/verify.py");
    let run = Command::new(&python).arg(script).arg(bundle).arg(key.file()).output();
    let run = run.unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo xtask setup --for test` installs it", python.display())
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let complaint = text(&run.stderr);
    assert!(!complaint.contains("ModuleNotFoundError"), "{complaint}");
    if run.status.success() { Ok(text(&run.stdout)) } else { Err(complaint) }
}
