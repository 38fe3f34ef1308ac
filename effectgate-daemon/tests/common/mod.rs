//! Logs of the corpus, to be damaged.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use effectgate_daemon::held::Held;
use effectgate_daemon::log::{self, Found};
use tempfile::TempDir;

pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/logs")
}

/// An evidence directory of the corpus, to be changed.
pub fn copy(name: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for entry in fs::read_dir(corpus().join(name)).expect(name) {
        let entry = entry.expect(name);
        fs::copy(entry.path(), dir.path().join(entry.file_name())).expect("copy");
    }
    dir
}

/// The same, without what was written down about the log.
pub fn unsealed(name: &str) -> TempDir {
    let dir = copy(name);
    for name in ["MANIFEST.sha256", "verdict.json"] {
        fs::remove_file(dir.path().join(name)).expect("remove");
    }
    dir
}

/// A small log in several segments, with the manifest that names them.
pub fn segmented() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer =
        log::Writer::create(&Held::open(dir.path()).expect("a directory"), 3000).expect("a log");
    for line in &Log::whole("tracepoint-kill").lines {
        writer.append(line.strip_suffix(b"\n").expect("a line")).expect("append");
    }
    let files = writer.close().expect("close");
    assert!(files.len() > 2, "{files:?}");
    let manifest: String =
        files.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    fs::write(dir.path().join("MANIFEST.sha256"), manifest).expect("write");
    dir
}

/// The same, and nobody wrote down what it is.
pub fn unnamed() -> TempDir {
    let dir = segmented();
    fs::remove_file(dir.path().join("MANIFEST.sha256")).expect("remove");
    dir
}

/// The log's files and their bytes, in order.
pub fn logs(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let log = log::Log::open(dir).expect("a log");
    log.segments().map(|name| (name.to_owned(), fs::read(dir.join(name)).expect("read"))).collect()
}

pub fn found(path: &Path) -> Found {
    Found::of(path, None).expect("it can be read")
}

pub fn refused(path: &Path) -> String {
    format!("{:#}", Found::of(path, None).expect_err("it cannot be read"))
}

pub fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    log::Log::open(path).expect("a log").read_to_end(&mut bytes).expect("it reads");
    bytes
}

/// A log as its lines.
pub struct Log {
    pub lines: Vec<Vec<u8>>,
}

impl Log {
    pub fn whole(name: &str) -> Log {
        let bytes = unpacked(&corpus().join(name));
        Log { lines: bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.lines.concat()
    }

    pub fn with(&self, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Log {
        let mut lines = self.lines.clone();
        change(&mut lines);
        Log { lines }
    }

    /// The first bad record is this one, or one before it: what was put in can
    /// be what stood there.
    pub fn is_broken(&self, at: usize) {
        let error = effectgate_core::replay::verify(&self.bytes()[..]).expect_err("it is broken");
        let effectgate_core::replay::ReplayError::Flawed { good, .. } = error else {
            panic!("{error}");
        };
        assert!(good >= at as u64, "good for {good} only, changed at {at}");
        assert!(good <= at as u64 + 1, "good for {good}, changed at {at}");
    }

    pub fn is_broken_unless_same(&self, other: &Log, at: usize) {
        if self.lines != other.lines {
            self.is_broken(at);
        }
    }
}
