//! What becomes of a log that was changed, cut or left in the middle of
//! something: every change is found, and what is good is said to be good.

mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use effectgate_core::dropped::{Dropped, Drops, Why};
use effectgate_daemon::bundle::{Bundle, pack};

use common::{Log, copy, found, logs, segmented, unnamed, unsealed};

/// Everything that the log's files say is covered by the chain, and what the
/// compression has beside that by the manifest.
#[test]
fn a_flipped_bit_in_any_byte_of_any_segment_is_found() {
    let dir = segmented();
    for (name, bytes) in logs(dir.path()) {
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(dir.path().join(&name), changed).expect("write");
            let found = found(dir.path());
            assert!(!found.holds, "byte {at} of {name}");
        }
        fs::write(dir.path().join(&name), bytes).expect("write");
    }
    assert!(found(dir.path()).holds);
}

/// Who changes the log changes the manifest as well.
#[test]
fn without_the_manifest_no_record_can_change_either() {
    let dir = unnamed();
    let whole = found(dir.path()).log.expect("it holds");
    for (name, bytes) in logs(dir.path()) {
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(dir.path().join(&name), changed).expect("write");
            let found = found(dir.path());
            if found.holds {
                assert!(name.ends_with(".zst"), "byte {at} of {name}");
                assert_eq!(found.log.as_ref(), Some(&whole), "byte {at} of {name}");
            } else if !name.ends_with(".zst") {
                let flaw = found.flaw.expect("a flaw");
                let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64;
                assert_eq!(flaw.segment, name);
                assert_eq!(flaw.line, line + 1, "byte {at} of {name}");
            }
        }
        fs::write(dir.path().join(&name), bytes).expect("write");
    }
}

#[test]
fn a_segment_cut_at_any_length_is_found() {
    for dir in [segmented(), unnamed()] {
        for (name, bytes) in logs(dir.path()) {
            for length in 0..bytes.len() {
                fs::write(dir.path().join(&name), &bytes[..length]).expect("write");
                let found = found(dir.path());
                assert!(!found.holds, "{length} bytes of {name}");
            }
            fs::write(dir.path().join(&name), bytes).expect("write");
        }
    }
}

#[test]
fn segments_that_are_gone_moved_or_there_twice_are_found() {
    let dir = unsealed("tracepoint-segments");
    let path = |name: &str| dir.path().join(name);
    let all = logs(dir.path());
    for (name, bytes) in &all {
        fs::remove_file(path(name)).expect("remove");
        let lost = found(dir.path());
        assert!(!lost.holds, "without {name}");
        assert!(lost.flaw.is_some());
        fs::write(path(name), bytes).expect("write");
        for (other, others) in all.iter().filter(|(other, _)| other != name) {
            fs::write(path(name), others).expect("write");
            assert!(!found(dir.path()).holds, "{other} for {name}");
            fs::write(path(other), bytes).expect("write");
            assert!(!found(dir.path()).holds, "{other} and {name} exchanged");
            fs::write(path(name), bytes).expect("write");
            fs::write(path(other), others).expect("write");
        }
        let more = format!("events-{:06}.jsonl.zst", all.len());
        fs::write(path(&more), bytes).expect("write");
        assert!(!found(dir.path()).holds, "{name} again as {more}");
        fs::remove_file(path(&more)).expect("remove");
    }
    assert!(found(dir.path()).holds);
}

#[test]
fn records_removed_repeated_exchanged_or_put_in_are_found() {
    let log = Log::whole("tracepoint-kill");
    let other = Log::whole("tracepoint-pass");
    let count = log.lines.len();
    for at in 0..count {
        log.with(|lines| drop(lines.remove(at))).is_broken(at);
        log.with(|lines| lines.insert(at, log.lines[at].clone())).is_broken(at);
        for with in (0..count).filter(|with| *with != at) {
            log.with(|lines| lines.swap(at, with)).is_broken(at.min(with));
            log.with(|lines| lines.insert(at, log.lines[with].clone())).is_broken(at);
            log.with(|lines| lines[at] = log.lines[with].clone()).is_broken(at);
        }
        for line in &other.lines {
            log.with(|lines| lines.insert(at, line.clone())).is_broken(at);
            log.with(|lines| lines[at] = line.clone()).is_broken(at);
        }
    }
    for line in other.lines.iter().chain(&log.lines) {
        log.with(|lines| lines.push(line.clone())).is_broken(count);
    }
    for (first, last) in (0..count).flat_map(|a| (a + 1..=count).map(move |b| (a, b))) {
        if (first, last) != (0, count) {
            log.with(|lines| drop(lines.drain(first..last))).is_broken(first);
            log.with(|lines| lines[first..last].reverse()).is_broken_unless_same(&log, first);
        }
    }
}

/// What a crash can leave at any byte: the records before it are good, and the
/// place and the reason are said.
#[test]
fn an_unfinished_log_is_good_up_to_where_it_ends() {
    let log = Log::whole("tracepoint-kill");
    let bytes = log.bytes();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("events.jsonl");
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).expect("write");
        let found = found(&path);
        let whole = bytes[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
        let flaw = found.flaw.expect("it is not closed");
        assert_eq!(flaw.seq, whole, "{length}");
        assert_eq!(found.log.map_or(0, |log| log.records), whole);
        let why = match (length, bytes[..length].last()) {
            (0, _) => "the log is empty",
            (_, Some(b'\n')) => "without its closing record",
            _ => "cut off",
        };
        assert!(flaw.what.contains(why), "{length}: {}", flaw.what);
        let start = bytes[..length].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        assert_eq!((flaw.line, flaw.byte), (whole + 1, start as u64));
    }
}

/// Each moment of a rotation, as a crash there leaves it.
#[test]
fn a_crash_in_a_rotation_loses_nothing() {
    let whole = found(copy("tracepoint-segments").path()).log.expect("it holds");
    let same = |dir: &Path, left: &[&str]| {
        let found = found(dir);
        assert_eq!(found.left_over, left);
        assert!(found.holds, "{:?} {:?}", found.flaw, found.conflicts);
        assert_eq!(found.log.as_ref(), Some(&whole));
    };
    let dir = unsealed("tracepoint-segments");
    let path = |name: &str| dir.path().join(name);
    let (plain, packed) = ("events-000003.jsonl", "events-000003.jsonl.zst");
    let part = "events-000003.jsonl.zst.part";
    let compressed = fs::read(path(packed)).expect("read");
    // The compressed form is there, the plain one not yet gone.
    let lines = common::unpacked(&path(packed));
    fs::write(path(plain), &lines).expect("write");
    same(dir.path(), &[packed]);
    // It is being written, or was begun and nothing is in it.
    fs::remove_file(path(packed)).expect("remove");
    for length in [0, 1, compressed.len() / 2, compressed.len()] {
        fs::write(path(part), &compressed[..length]).expect("write");
        same(dir.path(), &[part]);
    }
    // Nothing was begun.
    fs::remove_file(path(part)).expect("remove");
    same(dir.path(), &[]);
    // The segment was closed, and the next one not yet opened.
    fs::remove_file(path("events.jsonl")).expect("remove");
    let found = found(dir.path());
    let flaw = found.flaw.expect("the end is missing");
    assert_eq!(flaw.segment, plain);
    assert!(flaw.what.contains("without its closing record"), "{}", flaw.what);
}

#[test]
fn another_log_beside_the_same_verdict_is_found() {
    let dir = unsealed("tracepoint-pass");
    let other = copy("tracepoint-kill");
    fs::copy(other.path().join("events.jsonl"), dir.path().join("events.jsonl")).expect("copy");
    assert!(found(dir.path()).holds, "it is whole");
    fs::copy(copy("tracepoint-pass").path().join("verdict.json"), dir.path().join("verdict.json"))
        .expect("copy");
    assert_eq!(found(dir.path()).conflicts, ["verdict.json speaks of another log"]);
}

#[test]
fn nothing_outside_the_directory_is_read_and_nothing_is_waited_for() {
    let dir = unsealed("tracepoint-pass");
    let log = dir.path().join("events.jsonl");
    let elsewhere = tempfile::NamedTempFile::new().expect("a file");
    fs::copy(&log, elsewhere.path()).expect("copy");
    fs::remove_file(&log).expect("remove");
    std::os::unix::fs::symlink(elsewhere.path(), &log).expect("link");
    common::refused(dir.path());
    fs::remove_file(&log).expect("remove");
    rustix::fs::mkfifoat(rustix::fs::CWD, &log, rustix::fs::Mode::RUSR).expect("a pipe");
    assert!(common::refused(dir.path()).contains("no regular file"));
}

/// Code and what was said, of `log verify` with these arguments and this on its
/// standard input.
fn verify(args: &[&str], input: &[u8]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
    command.args(["log", "verify"]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // It may end before it has read all.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("it ends")
    });
    let said = String::from_utf8(output.stdout).expect("text");
    (output.status.code().expect("a code"), said)
}

/// A pipe is read only once: nothing of it is taken to find out what it is, and
/// none is waited for a second time.
#[test]
fn a_log_can_come_through_a_pipe() {
    let log = Log::whole("tracepoint-kill");
    let bytes = log.bytes();
    let (code, said) = verify(&["/dev/stdin"], &bytes);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(&format!("holds: {} records", log.lines.len())), "{said}");
    let begins = log.lines[0].len();
    let mut changed = bytes.clone();
    changed[begins + 20] ^= 1;
    let (code, said) = verify(&["/dev/stdin"], &changed);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(&format!("line 2 (record 1, byte {begins})")), "{said}");
    // Nothing before a log is passed over.
    let before = [&vec![b'x'; 1 << 18][..], b"\n", &bytes].concat();
    assert_eq!(verify(&["/dev/stdin"], &before).0, 1);
}

/// A key that was given is asked, whatever the file turns out to be.
#[test]
fn what_nobody_signed_does_not_hold_under_a_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = dir.path().join("public.pem");
    let pem = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    fs::write(&key, format!("-----BEGIN PUBLIC KEY-----\n{pem}\n-----END PUBLIC KEY-----\n"))
        .expect("write");
    let key = key.to_str().expect("text");
    let mut drops = Drops::default();
    let job = Dropped {
        job: "made up".into(),
        why: Why::Age,
        ended: 1,
        bytes: 1,
        manifest: None,
        verdict: None,
        head: None,
    };
    let dropped = [drops.append(1, &job).expect("a record"), b"\n".to_vec()].concat();
    assert_eq!(verify(&["/dev/stdin"], &dropped).0, 0);
    for input in [dropped, Log::whole("tracepoint-kill").bytes(), Vec::new()] {
        let (code, said) = verify(&["/dev/stdin", "--key", key], &input);
        assert_eq!(code, 1, "{said}");
    }
}

#[test]
fn the_log_of_a_packed_bundle_is_verified_as_well() {
    let dir = copy("tracepoint-segments");
    fs::remove_file(dir.path().join("expected.json")).expect("remove");
    let place = tempfile::tempdir().expect("a directory");
    let archive = place.path().join("b.tar.zst");
    let bundle = Bundle::open(dir.path(), &mut Vec::new()).expect("open");
    pack(&bundle, &archive).expect("packed");
    let name = archive.to_str().expect("text");
    let (code, said) = verify(&[name], b"");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("in 5 segments"), "{said}");
    // What is damaged is no archive that holds.
    let whole = fs::read(&archive).expect("read");
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        fs::write(&archive, &whole[..at]).expect("write");
        assert_ne!(verify(&[name], b"").0, 0, "cut at {at}");
    }
}

/// Its verdict is not the one that the log closes with.
#[test]
fn a_verdict_that_was_rewritten_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles/pass");
    for entry in fs::read_dir(whole).expect("a bundle") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), dir.path().join(entry.file_name())).expect("copy");
    }
    let path = dir.path().join("verdict.json");
    let text = fs::read_to_string(&path).expect("read");
    let closing = found(dir.path()).verdict.expect("it is whole");
    let word = |word: &str| format!("\"verdict\": {word:?}");
    let changed = text.replace(&word(closing), &word("none"));
    assert_ne!(changed, text);
    fs::write(&path, changed).expect("write");
    let found = found(dir.path());
    assert!(!found.holds);
    let said = format!("verdict.json says none, and the log closes with {closing}");
    assert_eq!(found.conflicts, [said]);
}
