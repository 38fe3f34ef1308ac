//! Somebody who owns the evidence directory, or the one that it lies in, puts
//! something else in its place before the verdict is given.

use std::fs;
use std::path::Path;

use effectgate_core::Verdict;
use effectgate_daemon::sinks::evidence::{Evidence, Kept, Written};
use effectgate_tests::made::{ENVELOPE, Job};

/// What is done to the directory while it is written to.
type Trick = fn(&Path);

/// Evidence on which this was tried.
fn close(trick: Trick) -> anyhow::Result<(Written, Verdict)> {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().join("ev");
    let kept = Kept { policy: ENVELOPE, note: None, segment_bytes: 4096, signer: None };
    let mut evidence = Evidence::create(&dir, kept).expect("evidence");
    let mut job = Job::begin();
    let mut lines = job.opened();
    lines.extend((0..40).flat_map(|count| job.write(count)));
    for line in &lines {
        evidence.append(line).expect("append");
    }
    evidence.sync().expect("sync");
    trick(&dir);
    let (last, verdict) = job.end();
    for line in &last {
        evidence.append(line).expect("append");
    }
    let written = evidence.close(&verdict)?;
    Ok((written, verdict))
}

#[test]
fn evidence_that_is_not_what_was_written_is_none() {
    close(|_| {}).expect("nothing was done to it");
    let tricks: [(&str, Trick); 6] = [
        ("moved", |dir| fs::rename(dir, dir.with_file_name("real")).expect("moved")),
        ("moved, and another made", |dir| {
            fs::rename(dir, dir.with_file_name("real")).expect("moved");
            fs::create_dir(dir).expect("made");
        }),
        ("moved, and a link made", |dir| {
            fs::rename(dir, dir.with_file_name("real")).expect("moved");
            fs::create_dir(dir.with_file_name("fake")).expect("made");
            std::os::unix::fs::symlink("fake", dir).expect("a link");
        }),
        ("the open segment taken away", |dir| {
            fs::remove_file(dir.join("events.jsonl")).expect("gone");
        }),
        ("the open segment replaced", |dir| {
            let open = dir.join("events.jsonl");
            let bytes = fs::read(&open).expect("read");
            fs::remove_file(&open).expect("gone");
            fs::write(open, bytes).expect("written");
        }),
        ("the policy changed", |dir| fs::write(dir.join("policy"), "{}").expect("written")),
    ];
    for (name, trick) in tricks {
        let error = close(trick).expect_err(name);
        let said = format!("{error:#}");
        println!("{name}: {said}");
        assert!(said.contains("/ev"), "{name}: {said}");
    }
}

/// What is done with it afterwards is done to the directory that was written,
/// whatever lies where it lay.
#[test]
fn what_comes_after_the_verdict_goes_where_the_evidence_is() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().join("ev");
    let kept = Kept { policy: ENVELOPE, note: None, segment_bytes: 1 << 20, signer: None };
    let mut evidence = Evidence::create(&dir, kept).expect("evidence");
    let mut job = Job::begin();
    let opened = job.opened();
    let (last, verdict) = job.end();
    for line in opened.iter().chain(&last) {
        evidence.append(line).expect("append");
    }
    let mut written = evidence.close(&verdict).expect("closed");
    let real = place.path().join("real");
    fs::rename(&dir, &real).expect("moved");
    fs::create_dir(&dir).expect("another");
    written.put("report.html", b"page").expect("written");
    assert_eq!(fs::read_dir(&dir).expect("the other").count(), 0);
    let list = fs::read_to_string(real.join("MANIFEST.sha256")).expect("the list");
    assert!(list.contains("report.html") && real.join("report.html").exists(), "{list}");
}
