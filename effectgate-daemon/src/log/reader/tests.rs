use std::fs;
use std::io::Cursor;

use effectgate_core::{chain::Flaw, replay::verify};
use proptest::prelude::*;

use super::*;

type Source = (String, Open);

/// Bytes as a segment, as they are or compressed.
fn segment(number: usize, bytes: &[u8], compress: bool) -> Source {
    let bytes = if compress { packed(bytes) } else { bytes.to_vec() };
    let open = move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
    (format!("events-{number:06}"), Box::new(open))
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory takes everything")
}

fn whole(log: &mut Log) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).map(|_| bytes)
}

/// Gives so many bytes, then this error.
struct Failing(Cursor<Vec<u8>>, i32);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::from_raw_os_error(self.1)),
            length => Ok(length),
        }
    }
}

fn failing(bytes: &[u8], code: i32) -> Source {
    let bytes = bytes.to_vec();
    let open = move || {
        let source = Cursor::new(bytes.clone());
        Ok(Box::new(Failing(source, code)) as Box<dyn Read>)
    };
    ("events.jsonl".to_owned(), Box::new(open))
}

fn corpus(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/logs").join(name);
    whole(&mut Log::open(&path).expect("a log")).expect("it reads")
}

#[test]
fn a_disk_that_fails_is_no_flaw_of_the_log() {
    let log = corpus("tracepoint-kill");
    for length in [0, 1, log.len() / 2, log.len()] {
        for (bytes, compressed) in [(log[..length].to_vec(), false), (packed(&log), true)] {
            let bytes = if compressed { bytes[..bytes.len() / 2].to_vec() } else { bytes };
            let mut failing = Log::from_sources(vec![failing(&bytes, libc::EIO)]);
            let error = verify(&mut failing).expect_err("it cannot be read");
            let ReplayError::Io { source, .. } = error else { panic!("{error}") };
            assert_eq!(source.raw_os_error(), Some(libc::EIO), "{length}");
        }
    }
}

#[test]
fn a_segment_that_is_not_there_any_more_is_no_flaw_either() {
    let log = corpus("tracepoint-kill");
    let line = log.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    let gone = || Err(io::Error::from_raw_os_error(libc::ENOENT));
    let mut log = Log::from_sources(vec![
        segment(0, &log[..line], true),
        ("events.jsonl".to_owned(), Box::new(gone)),
    ]);
    let error = verify(&mut log).expect_err("it cannot be read");
    assert!(matches!(error, ReplayError::Io { good: 1, .. }), "{error}");
}

#[test]
fn a_segment_that_is_compressed_meanwhile_is_read_all_the_same() {
    let dir = TempDir::new().unwrap();
    let file = |name: &str| dir.path().join(name);
    fs::write(file("events-000001.jsonl"), "one\n").unwrap();
    fs::write(file(EVENTS), "two\n").unwrap();
    let mut log = Log::open(dir.path()).unwrap();
    fs::write(file("events-000001.jsonl.zst"), packed(b"one\n")).unwrap();
    fs::remove_file(file("events-000001.jsonl")).unwrap();
    assert_eq!(whole(&mut log).unwrap(), b"one\ntwo\n");
}

#[test]
fn a_segment_that_is_closed_meanwhile_is_read_all_the_same() {
    let dir = TempDir::new().unwrap();
    let file = |name: &str| dir.path().join(name);
    fs::write(file("events-000000.jsonl"), "one\n").unwrap();
    fs::write(file(EVENTS), "two\n").unwrap();
    let mut log = Log::open(dir.path()).unwrap();
    fs::rename(file(EVENTS), file("events-000001.jsonl")).unwrap();
    fs::write(file(EVENTS), "three\n").unwrap();
    assert_eq!(whole(&mut log).unwrap(), b"one\ntwo\n");
    let place = log.place(4).unwrap();
    assert_eq!((place.segment.as_str(), place.line, place.byte), (EVENTS, 1, 0));
}

#[test]
fn compressed_data_that_was_cut_or_changed_says_so() {
    let log = corpus("tracepoint-kill");
    let whole = packed(&log);
    for length in 4..whole.len() {
        let bytes = whole[..length].to_vec();
        let open = move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
        let mut log = Log::from_sources(vec![("one".to_owned(), Box::new(open))]);
        let error = verify(&mut log).expect_err("it was cut");
        let ReplayError::Flawed { flaw, .. } = error else { panic!("{length}: {error}") };
        assert!(matches!(flaw, Flaw::Damaged(_) | Flaw::Empty), "{length}: {flaw}");
    }
}

/// A few bytes that become very many are read as they come.
#[test]
fn what_inflates_without_end_is_refused_at_its_first_line() {
    let zeros = zstd::encode_all(io::repeat(0).take(200 << 20), 1).expect("it compresses");
    assert!(zeros.len() < 100_000);
    let open = move || Ok(Box::new(Cursor::new(zeros.clone())) as Box<dyn Read>);
    let mut log = Log::from_sources(vec![("one".to_owned(), Box::new(open))]);
    let error = verify(&mut log).expect_err("it is no log");
    assert!(matches!(error, ReplayError::Flawed { flaw: Flaw::TooLong, .. }), "{error}");
}

/// Compressed with a window that would take gigabytes to decompress.
#[test]
fn what_asks_for_too_much_memory_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.window_log(27).expect("a window");
    encoder.include_contentsize(false).expect("a flag");
    io::copy(&mut io::repeat(b'x').take(1 << 20), &mut encoder).expect("it compresses");
    let bytes = encoder.finish().expect("it compresses");
    let open = move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
    let mut log = Log::from_sources(vec![("one".to_owned(), Box::new(open))]);
    let error = whole(&mut log).expect_err("it asks for too much");
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
}

proptest! {
    #[test]
    fn lines_come_out_as_they_went_in_and_have_their_place(
        lines in prop::collection::vec("[a-z]{0,6}", 1..40),
        cuts in prop::collection::vec((0..40_usize, any::<bool>()), 0..6),
        asked: usize,
    ) {
        let mut ends: Vec<_> = cuts.into_iter().map(|(at, zst)| (at.min(lines.len()), zst)).collect();
        ends.push((lines.len(), false));
        ends.sort();
        let mut from = 0;
        let mut sources = Vec::new();
        let mut starts = Vec::new();
        for (number, (end, zst)) in ends.into_iter().enumerate() {
            let text: String = lines[from..end].iter().map(|line| format!("{line}\n")).collect();
            sources.push(segment(number, text.as_bytes(), zst));
            starts.push((number, from, text));
            from = end;
        }
        let mut log = Log::from_sources(sources);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let read = whole(&mut log).expect("it reads");
        prop_assert_eq!(String::from_utf8(read).expect("text"), text);
        // The first byte of a line that is there.
        let asked = asked % lines.len();
        let byte: usize = lines[..asked].iter().map(|line| line.len() + 1).sum();
        let place = log.place(byte as u64).expect("it reads again");
        let (number, first, _) =
            starts.iter().rev().find(|(_, first, _)| *first <= asked).expect("a segment");
        prop_assert_eq!(place.segment, format!("events-{number:06}"));
        prop_assert_eq!(place.line, (asked - first) as u64 + 1);
    }

    #[test]
    fn anything_is_read_or_refused(segments in prop::collection::vec((any::<bool>(), any::<Vec<u8>>()), 0..5)) {
        let sources = segments.iter().enumerate();
        let mut log = Log::from_sources(sources.map(|(n, (zst, bytes))| segment(n, bytes, *zst)).collect());
        if let Err(ReplayError::Flawed { byte, .. }) = verify(&mut log) {
            let _ = log.place(byte);
        }
    }
}
