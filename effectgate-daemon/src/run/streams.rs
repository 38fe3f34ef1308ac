//! The standard streams that the job is handed.

use std::os::fd::{AsFd, BorrowedFd};

use effectgate_core::input::{Device, Stream};
use rustix::{
    fs::{OFlags, fcntl_getfl, fstat},
    termios::isatty,
};

use crate::observe::proc::device;

/// Files and terminals that are the job's own.
#[derive(Debug, Default)]
pub struct Handed {
    pub files: Vec<Stream>,
    pub terminals: Vec<Device>,
}

/// What stands behind standard input, output and error. What was handed over
/// for reading is not given for writing.
#[must_use]
pub fn handed() -> Handed {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams: [BorrowedFd<'_>; 3] = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let mut handed = Handed::default();
    for stream in streams {
        let Ok(stat) = fstat(stream) else { continue };
        let Ok(flags) = fcntl_getfl(stream) else { continue };
        let both = flags.contains(OFlags::RDWR);
        let write = both || flags.contains(OFlags::WRONLY);
        let read = both || !write;
        handed.files.push(Stream { dev: device(stat.st_dev), ino: stat.st_ino, read, write });
        if isatty(stream) {
            handed.terminals.push(device(stat.st_rdev));
        }
    }
    handed.files.dedup();
    handed.terminals.dedup();
    handed
}
