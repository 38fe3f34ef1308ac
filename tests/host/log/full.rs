//! A disk that is full, a reader that fails, and a second writer.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use effectgate_daemon::log::Found;
use effectgate_daemon::sinks::evidence::{Evidence, Kept};
use effectgate_tests::made::ENVELOPE;

/// A small file system, unmounted at the end.
struct Small(PathBuf);

impl Small {
    fn new(path: PathBuf) -> Small {
        std::fs::create_dir(&path).expect("mkdir");
        let (kind, target, size) = (c"tmpfs".as_ptr(), c(&path), c"size=256k");
        // SAFETY: all strings live across the call.
        let result = unsafe { libc::mount(kind, target.as_ptr(), kind, 0, size.as_ptr().cast()) };
        assert_eq!(result, 0, "mounting needs root: {}", std::io::Error::last_os_error());
        Small(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let path = c(&self.0);
        // SAFETY: the string lives across the call.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no zero byte")
}

/// Closed segments stay uncompressed when their compressed form has no room;
/// what was durable is there, and no verdict is.
#[test]
fn a_full_disk_ends_the_log_and_takes_nothing_back() {
    let place = tempfile::tempdir().expect("a directory");
    for segment_bytes in [16 << 10, 100 << 10, 1 << 20] {
        let small = Small::new(place.path().join(format!("small-{segment_bytes}")));
        let dir = small.0.join("evidence");
        let output = Command::new(env!("CARGO_BIN_EXE_log_writer"))
            .arg(&dir)
            .args(["100000".to_owned(), segment_bytes.to_string()])
            .output()
            .expect("the writer");
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("No space left") && said.contains("evidence"), "{said}");
        let told = String::from_utf8_lossy(&output.stdout);
        let synced = told.lines().filter_map(|line| line.strip_prefix("synced ")).next_back();
        let synced: u64 = synced.expect("something was durable").parse().expect("a number");
        let found = Found::of(&dir, None).expect("it can be read");
        assert!(!found.holds && found.verdict.is_none());
        let good = found.log.expect("an opening record").records;
        assert!(good >= synced, "{synced} were durable, {good} are there");
        assert!(!dir.join("verdict.json").exists() && !dir.join("MANIFEST.sha256").exists());
    }
}

#[test]
fn a_second_writer_is_refused_while_there_is_a_first_and_afterwards() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().join("evidence");
    let begin = || {
        let kept = Kept { policy: ENVELOPE, note: None, segment_bytes: 4096, signer: None };
        Evidence::create(&dir, kept)
    };
    let first = begin().expect("nobody else is there");
    let error = begin().expect_err("there is one");
    assert!(error.to_string().contains("is being written to"), "{error:#}");
    let other = Command::new(env!("CARGO_BIN_EXE_log_writer"))
        .arg(&dir)
        .args(["10", "4096"])
        .output()
        .expect("the writer");
    assert!(String::from_utf8_lossy(&other.stderr).contains("is being written to"));
    drop(first);
    let error = begin().expect_err("something is there");
    assert!(error.to_string().contains("is not empty"), "{error:#}");
}
