//! Somebody who owns the evidence directory, or the one that it lies in, puts
//! something else in its place before the verdict is given.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use effectgate_core::Verdict;
use effectgate_daemon::bundle::{self, Bundle};
use effectgate_daemon::sign::{PublicKey, Signer, Source};
use effectgate_daemon::sinks::evidence::{Evidence, Kept, Written};
use effectgate_tests::keys;
use effectgate_tests::made::{ENVELOPE, Job};

/// What is done to the directory while it is written to.
type Trick = fn(&Path);

/// Evidence on which this was tried.
fn close(trick: Trick, dir: &Path) -> anyhow::Result<(Written, Verdict)> {
    let kept = Kept { policy: ENVELOPE, note: None, segment_bytes: 4096, signer: None };
    let mut evidence = Evidence::create(dir, kept).expect("evidence");
    let mut job = Job::begin();
    let mut lines = job.opened();
    lines.extend((0..40).flat_map(|count| job.write(count)));
    for line in &lines {
        evidence.append(line).expect("append");
    }
    evidence.sync().expect("sync");
    trick(dir);
    let (last, verdict) = job.end();
    for line in &last {
        evidence.append(line).expect("append");
    }
    let written = evidence.close(&verdict)?;
    Ok((written, verdict))
}

#[test]
fn evidence_that_is_not_what_was_written_is_none() {
    let place = || tempfile::tempdir().expect("a directory");
    close(|_| {}, &place().path().join("ev")).expect("nothing was done to it");
    let moved = "is not any more where it was made";
    let tricks: [(&str, &str, Trick); 8] = [
        ("moved", moved, |dir| fs::rename(dir, dir.with_file_name("real")).expect("moved")),
        ("moved, and another made", moved, |dir| {
            fs::rename(dir, dir.with_file_name("real")).expect("moved");
            fs::create_dir(dir).expect("made");
        }),
        ("moved, and a link made", moved, |dir| {
            fs::rename(dir, dir.with_file_name("real")).expect("moved");
            fs::create_dir(dir.with_file_name("fake")).expect("made");
            std::os::unix::fs::symlink("fake", dir).expect("a link");
        }),
        ("the open segment taken away", "events.jsonl was changed or taken away", |dir| {
            fs::remove_file(dir.join("events.jsonl")).expect("gone");
        }),
        ("the open segment replaced", "events.jsonl was changed or taken away", |dir| {
            let open = dir.join("events.jsonl");
            let bytes = fs::read(&open).expect("read");
            fs::remove_file(&open).expect("gone");
            fs::write(open, bytes).expect("written");
        }),
        ("the policy changed", "policy was changed or taken away", |dir| {
            fs::write(dir.join("policy"), "{}").expect("written");
        }),
        ("a segment put in", "\"events-000099.jsonl\" was put into it", |dir| {
            fs::write(dir.join("events-000099.jsonl"), "{}").expect("written");
        }),
        ("a directory put in", "\"properties.json\" was put into it", |dir| {
            fs::create_dir(dir.join("properties.json")).expect("made");
        }),
    ];
    for (name, why, trick) in tricks {
        let place = place();
        let error = close(trick, &place.path().join("ev")).expect_err(name);
        let said = format!("{error:#}");
        assert!(said.contains("/ev") && said.contains(why), "{name}: {said}");
    }
}

/// What is done with it afterwards is done to the directory that was written,
/// whatever lies where it lay; and what is signed is what was written.
#[test]
fn what_comes_after_the_verdict_goes_where_the_evidence_is() {
    let place = tempfile::tempdir().expect("a directory");
    let [fake, dir, real] = ["fake", "ev", "real"].map(|name| place.path().join(name));
    close(|_| {}, &fake).expect("closed");
    let (written, verdict) = close(|_| {}, &dir).expect("closed");
    fs::rename(&dir, &real).expect("moved");
    fs::rename(&fake, &dir).expect("another");
    let before = fs::read_dir(&dir).expect("the other").count();
    let (key, public) = keys::make(place.path());
    let signer = Signer::new(&Source::File(key)).expect("a key");
    bundle::finish(&written, &verdict, Some(&signer)).expect("signed");
    assert_eq!(fs::read_dir(&dir).expect("the other").count(), before);
    for file in ["report.html", "statement.dsse.json"] {
        assert!(real.join(file).exists(), "{file}");
    }
    let mut problems = Vec::new();
    let signed = Bundle::open(&real, &mut problems).expect("a bundle");
    let public = PublicKey::read(&public).expect("a key");
    bundle::check(&signed, &[public], &mut problems).expect("it can be read");
    assert!(problems.is_empty(), "{problems:?}");
}

/// Where others can write, they can change what is written.
#[test]
fn a_directory_of_others_is_no_place_for_evidence() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().join("ev");
    fs::create_dir(&dir).expect("made");
    let begin = || {
        let kept = Kept { policy: ENVELOPE, note: None, segment_bytes: 4096, signer: None };
        Evidence::create(&dir, kept)
    };
    let refused = |why: &str| {
        let error = begin().expect_err(why);
        assert!(format!("{error:#}").contains("others can write in"), "{why}: {error:#}");
    };
    for mode in [0o777, 0o1777, 0o702] {
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("chmod");
        refused("others may write");
    }
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("chmod");
    chown(&dir, Some(1000), None).expect("root");
    refused("it is somebody else's");
    chown(&dir, Some(0), None).expect("root");
    begin().expect("it is our own").discard();
    assert_eq!(fs::read_dir(&dir).expect("there before").count(), 0);
}
