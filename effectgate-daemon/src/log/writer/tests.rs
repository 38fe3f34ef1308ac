use std::io::Read as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::log::Log;

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().expect("text")).collect();
    names.sort();
    names
}

fn held(dir: &Path) -> Held {
    Held::open(dir).expect("a directory")
}

fn read(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    Log::open(dir).expect("a log").read_to_end(&mut bytes).expect("it reads");
    bytes
}

#[test]
fn a_log_that_fits_is_one_segment() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(&held(dir.path()), 10).expect("a log");
    writer.append(b"abcd").expect("append");
    writer.append(b"efgh").expect("append");
    let files = writer.close().expect("close");
    assert_eq!(names(dir.path()), [EVENTS]);
    assert_eq!(files, [(EVENTS.to_owned(), pin::digest(b"abcd\nefgh\n"))]);
}

#[test]
fn a_segment_is_closed_before_it_would_be_too_long_and_never_empty() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(&held(dir.path()), 10).expect("a log");
    for line in [&b"abcd"[..], b"efgh", b"i", &[b'x'; 50], b"j"] {
        writer.append(line).expect("append");
    }
    writer.close().expect("close");
    let (a, b, c) =
        ("events-000000.jsonl.zst", "events-000001.jsonl.zst", "events-000002.jsonl.zst");
    assert_eq!(names(dir.path()), [a, b, c, EVENTS]);
    let lengths = [a, b, c].map(|name| read(&dir.path().join(name)).len());
    assert_eq!(lengths, [10, 2, 51]);
    assert_eq!(fs::read(dir.path().join(EVENTS)).expect("read"), b"j\n");
}

#[test]
fn where_there_is_no_room_to_compress_the_segment_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    // What stands in the way is not removed: it is nobody's but its owner's.
    fs::create_dir(dir.path().join(unfinished(0))).expect("make");
    let mut writer = Writer::create(&held(dir.path()), 5).expect("a log");
    for line in [b"abcd", b"efgh", b"ijkl"] {
        writer.append(line).expect("append");
    }
    let files = writer.close().expect("close");
    let found: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, ["events-000000.jsonl", "events-000001.jsonl.zst", EVENTS]);
    assert_eq!(read(dir.path()), b"abcd\nefgh\nijkl\n");
}

#[test]
fn what_is_durable_is_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(&held(dir.path()), 9).expect("a log");
    writer.append(b"abcd").expect("append");
    assert_eq!(writer.synced(), 0);
    writer.sync().expect("sync");
    assert_eq!(writer.synced(), 1);
    writer.append(b"efgh").expect("append");
    assert_eq!(writer.synced(), 1, "the segment was closed, and nothing since is durable");
    writer.append(b"ijkl").expect("append");
    assert_eq!(writer.synced(), 2);
    assert_eq!(read(dir.path()), b"abcd\nefgh\n", "the rest is still on its way");
}

#[test]
fn what_is_read_while_it_is_written_is_how_it_begins() {
    const LINES: usize = 3000;
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(&held(dir.path()), 64).expect("a log");
    let writing = thread::spawn(move || {
        for number in 0..LINES {
            writer.append(format!("{number:07}").as_bytes()).expect("append");
        }
        writer.close().expect("close");
    });
    loop {
        let ended = writing.is_finished();
        let bytes = read(dir.path());
        for (number, line) in bytes.chunks(8).enumerate() {
            let whole = format!("{number:07}\n");
            assert_eq!(line, &whole.as_bytes()[..line.len()], "line {number}");
        }
        if ended {
            assert_eq!(bytes.len(), LINES * 8);
            break;
        }
    }
    writing.join().expect("it wrote");
}

#[test]
fn there_is_one_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let _writer = Writer::create(&held(dir.path()), 9).expect("a log");
    let error = Writer::create(&held(dir.path()), 9).expect_err("there is one");
    assert!(format!("{error:#}").contains("cannot create"), "{error:#}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_was_appended_is_read_in_order(
        lines in prop::collection::vec("[a-z]{0,20}", 0..40),
        limit in 1..120_u64,
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut writer = Writer::create(&held(dir.path()), limit).expect("a log");
        for line in &lines {
            writer.append(line.as_bytes()).expect("append");
        }
        let files = writer.close().expect("close");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(read(dir.path()), text.as_bytes());
        let mut found: Vec<_> = files.iter().map(|(name, _)| name.clone()).collect();
        found.sort();
        prop_assert_eq!(names(dir.path()), found);
        for (name, digest) in files {
            let bytes = fs::read(dir.path().join(&name)).expect("read");
            prop_assert_eq!(pin::digest(&bytes), digest, "{}", name);
        }
    }
}
