//! What the public key alone is good for: the checkpoint of a whole log, one
//! record of it, and that an older checkpoint was continued.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use effectgate_core::Verdict;
use effectgate_core::checkpoint::{Checkpoint, Note};
use effectgate_core::proof::Proof;
use effectgate_daemon::log::{Found, is_signed};
use effectgate_daemon::sign::{Signer, Source};
use effectgate_daemon::sinks::evidence::{Evidence, Kept};
use effectgate_tests::gate;
use effectgate_tests::made::{ENVELOPE, Job};
use serde_json::Value;

/// RFC 8032, 7.1, tests 1 and 2.
const PRIVATE: &str = "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g";
const PUBLIC: &str = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const OTHER: &str = "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";

struct Signed {
    place: tempfile::TempDir,
    signer: Arc<Signer>,
    verdict: Verdict,
}

impl Signed {
    /// A signed log of this many writes, in several segments.
    fn new(writes: u64) -> Signed {
        let place = tempfile::tempdir().expect("a directory");
        let pem = |name: &str, what: &str, key: &str| {
            let text = format!("-----BEGIN {what}-----\n{key}\n-----END {what}-----\n");
            let path = place.path().join(name);
            fs::write(&path, text).expect("write");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
            path
        };
        pem("public.pem", "PUBLIC KEY", PUBLIC);
        pem("other.pem", "PUBLIC KEY", OTHER);
        let private = pem("private.pem", "PRIVATE KEY", PRIVATE);
        let signer = Arc::new(Signer::new(&Source::File(private)).expect("a key"));
        let kept = Kept {
            policy: ENVELOPE,
            note: None,
            segment_bytes: 4096,
            signer: Some(Arc::clone(&signer)),
        };
        let mut evidence = Evidence::create(&place.path().join("ev"), kept).expect("evidence");
        let mut job = Job::begin();
        let mut lines = job.opened();
        lines.extend((0..writes).flat_map(|count| job.write(count)));
        let (last, verdict) = job.end();
        for line in lines.iter().chain(&last) {
            evidence.append(line).expect("append");
        }
        evidence.close(&verdict).expect("close");
        Signed { place, signer, verdict }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn log(&self, args: &[&str]) -> Output {
        let mut command = Command::new(gate::binary());
        command.arg("log").args(args).current_dir(self.place.path());
        command.output().expect("effectgate")
    }

    /// Code and result.
    fn json(&self, args: &[&str]) -> (i32, Value) {
        let output = self.log(&[args, &["--format", "json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        (output.status.code().expect("a code"), value)
    }
}

#[test]
fn the_key_vouches_for_the_whole_log() {
    let signed = Signed::new(40);
    let (code, found) = signed.json(&["verify", "ev", "--key", "public.pem"]);
    assert_eq!((code, &found["holds"]), (0, &true.into()), "{found}");
    assert_eq!(found["checkpoint"]["signed"], true);
    assert_eq!(found["log"]["records"], signed.verdict.log.records);
    assert!(found["segments"].as_array().is_some_and(|all| all.len() > 3), "{found}");
    let (code, found) = signed.json(&["verify", "ev", "--key", "other.pem"]);
    assert_eq!((code, &found["holds"]), (1, &false.into()), "{found}");
    // Every byte of the note counts.
    let path = signed.path("ev/checkpoint");
    let note = fs::read(&path).expect("a checkpoint");
    for at in 0..note.len() {
        let mut changed = note.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).expect("write");
        let found = Found::of(&signed.path("ev"), Some(signed.signer.public()));
        let found = found.expect("it can be read");
        assert!(!found.holds, "byte {at}: {found:?}");
    }
    fs::remove_file(&path).expect("remove");
    let (code, found) = signed.json(&["verify", "ev", "--key", "public.pem"]);
    assert_eq!(code, 1, "{found}");
}

/// A whole log with another head, which only the key can tell from the one
/// that was signed.
#[test]
fn another_log_is_not_the_one_that_was_signed() {
    let (signed, other) = (Signed::new(40), Signed::new(41));
    for entry in fs::read_dir(other.path("ev")).expect("evidence") {
        let entry = entry.expect("an entry");
        if entry.file_name() != "checkpoint" {
            fs::copy(entry.path(), signed.path("ev").join(entry.file_name())).expect("copy");
        }
    }
    let (code, found) = signed.json(&["verify", "ev", "--key", "public.pem"]);
    assert_eq!(code, 1, "{found}");
    assert_eq!(found["flaw"], Value::Null, "{found}");
    assert!(found["conflicts"][0].as_str().is_some_and(|why| why.contains("checkpoint")));
}

#[test]
fn one_record_is_proven_without_the_others() {
    let signed = Signed::new(40);
    let records = signed.verdict.log.records;
    for seq in [0, 1, 17, records - 2, records - 1] {
        let output = signed.log(&["prove", "ev", &seq.to_string()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let proof = String::from_utf8(output.stdout).expect("text");
        fs::write(signed.path("proof"), &proof).expect("write");
        let (code, found) = signed.json(&["verify", "proof", "--key", "public.pem"]);
        assert_eq!(code, 0, "{found}");
        assert_eq!((&found["seq"], &found["record"]["seq"]), (&seq.into(), &seq.into()));
        assert_eq!(signed.json(&["verify", "proof", "--key", "other.pem"]).0, 1);
        // As little as one bit of it, and it proves nothing. The place of a
        // bit in Base64 that stands for nothing is refused as well.
        for at in 0..proof.len() {
            let mut changed = proof.clone().into_bytes();
            changed[at] ^= 1;
            let Ok(proof) = Proof::parse(&String::from_utf8_lossy(&changed)) else { continue };
            let key = signed.signer.public();
            let holds = proof.check().is_ok() && is_signed(&proof.note, key);
            assert!(!holds, "record {seq}, byte {at}");
        }
    }
    // Called a log, it is none.
    fs::create_dir(signed.path("as")).expect("a directory");
    fs::copy(signed.path("proof"), signed.path("as/events.jsonl")).expect("copy");
    assert_eq!(signed.json(&["verify", "as/events.jsonl", "--key", "public.pem"]).0, 1);
    let output = signed.log(&["prove", "ev", &records.to_string()]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_older_checkpoint_is_continued_or_not() {
    let signed = Signed::new(40);
    let note = |size: u64, log: &Path| {
        let found = prefix(log, size);
        let text = found.to_string();
        let signature = signed.signer.sign(text.as_bytes()).expect("it signs");
        found.note(&signed.signer.public().bytes(), &signature)
    };
    for size in [1, 2, 9, 16, signed.verdict.log.records] {
        let older: Note = note(size, &signed.path("ev"));
        fs::write(signed.path("older"), older.to_string()).expect("write");
        let output = signed.log(&["prove", "ev", "--since", "older"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(&format!("begin with the {size} older ones")), "{said}");
    }
    // Of another log, with the same records.
    let mut other = note(9, &signed.path("ev")).checkpoint;
    other.origin = "someone/else".to_owned();
    fs::write(signed.path("older"), other.note(&[0; 32], &[0; 64]).to_string()).expect("write");
    let output = signed.log(&["prove", "ev", "--since", "older"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is of another log: someone/else"));
    let mut forged = note(9, &signed.path("ev"));
    forged.checkpoint.root[0] ^= 1;
    let forged = forged.checkpoint.note(&[0; 32], &[0; 64]);
    fs::write(signed.path("older"), forged.to_string()).expect("write");
    assert_eq!(signed.log(&["prove", "ev", "--since", "older"]).status.code(), Some(1));
}

/// The checkpoint over a log's first records.
fn prefix(dir: &Path, size: u64) -> Checkpoint {
    let log = effectgate_daemon::log::Log::open(dir).expect("a log");
    let mut records = effectgate_core::replay::Records::open(log).expect("it begins");
    while let Some((seq, _)) = records.next().expect("it holds") {
        if seq + 1 == size {
            return Checkpoint::of(records.log());
        }
    }
    panic!("it has fewer than {size} records");
}
