//! The standard streams that the job is handed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use effectgate_core::input::Device;
use rustix::{
    fs::{OFlags, fcntl_getfl, fstat},
    termios::isatty,
};

use crate::observe::proc::device;

/// One of them.
#[derive(Debug)]
pub struct Stream {
    /// Another descriptor of it.
    pub file: OwnedFd,
    /// It was handed over open for reading, and may be opened so again.
    pub read: bool,
    /// The same for writing.
    pub write: bool,
}

/// Major numbers of the terminals of devpts (`UNIX98_PTY_SLAVE_MAJOR`,
/// include/uapi/linux/major.h).
const PTYS: std::ops::RangeInclusive<u32> = 136..=143;

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
        // One that was closed is none.
        let (Ok(stat), Ok(flags), Ok(file)) =
            (fstat(stream), fcntl_getfl(stream), stream.try_clone_to_owned())
        else {
            continue;
        };
        let both = flags.contains(OFlags::RDWR);
        let write = both || flags.contains(OFlags::WRONLY);
        let read = both || !write;
        let terminal = Some(device(stat.st_rdev)).filter(|_| isatty(stream));
        // Each mount of devpts counts its terminals from 0: the number is that of
        // others too, and only the file is the job's own, in both directions.
        let pty = terminal.is_some_and(|terminal| PTYS.contains(&terminal.major));
        handed.files.push(Stream { file, read: read || pty, write: write || pty });
        handed.terminals.extend(terminal.filter(|_| !pty));
    }
    handed.terminals.dedup();
    handed
}
