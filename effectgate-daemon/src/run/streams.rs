//! The standard streams that the job is handed.

use std::os::fd::{AsFd, BorrowedFd};

use effectgate_core::input::Device;
use rustix::{
    fs::{OFlags, fcntl_getfl, fstat},
    termios::isatty,
};

use crate::observe::proc::device;

/// Files and terminals that are the job's own.
#[derive(Debug, Default)]
pub struct Handed {
    pub files: Vec<(Device, u64)>,
    pub terminals: Vec<Device>,
}

/// What stands behind standard input, output and error, and may be written.
#[must_use]
pub fn handed() -> Handed {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams: [BorrowedFd<'_>; 3] = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let mut handed = Handed::default();
    for stream in streams {
        let Ok(stat) = fstat(stream) else { continue };
        // What was handed over for reading is not given for writing.
        let writable =
            fcntl_getfl(stream).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR));
        if writable {
            handed.files.push((device(stat.st_dev), stat.st_ino));
        }
        if isatty(stream) {
            handed.terminals.push(device(stat.st_rdev));
        }
    }
    handed.files.dedup();
    handed.terminals.dedup();
    handed
}
