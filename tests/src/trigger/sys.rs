//! Arguments and return values of system calls.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// What follows the effect's name on the command line.
#[derive(Debug)]
pub(crate) struct Args {
    given: Vec<OsString>,
    c: Vec<CString>,
}

impl Args {
    pub(crate) fn new(given: Vec<OsString>) -> Args {
        let c = given
            .iter()
            .map(|arg| CString::new(arg.as_bytes()).expect("arguments hold no NUL"))
            .collect();
        Args { given, c }
    }

    pub(crate) fn from(&self, first: usize) -> Args {
        Args::new(self.given.iter().skip(first).cloned().collect())
    }

    /// What stands between words that are `mark`.
    pub(crate) fn split(&self, mark: &str) -> Vec<Args> {
        self.given.split(|word| word == mark).map(|part| Args::new(part.to_vec())).collect()
    }

    pub(crate) fn os(&self, index: usize) -> io::Result<&OsStr> {
        self.given.get(index).map(OsString::as_os_str).ok_or_else(invalid)
    }

    pub(crate) fn c(&self, index: usize) -> io::Result<&CString> {
        self.c.get(index).ok_or_else(invalid)
    }

    pub(crate) fn all(&self) -> &[CString] {
        &self.c
    }

    pub(crate) fn text(&self, index: usize) -> io::Result<&str> {
        self.os(index)?.to_str().ok_or_else(invalid)
    }

    pub(crate) fn number(&self, index: usize) -> io::Result<i32> {
        self.text(index)?.parse().map_err(|_| invalid())
    }

    /// `127.0.0.1:80` or `[::1]:80`.
    pub(crate) fn address(&self, index: usize) -> io::Result<SocketAddr> {
        self.text(index)?.parse().map_err(|_| invalid())
    }

    pub(crate) fn addresses(&self, first: usize) -> io::Result<Vec<SocketAddr>> {
        (first..self.given.len()).map(|index| self.address(index)).collect()
    }
}

pub(crate) fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

/// The result of a call that says -1 and leaves `errno`.
pub(crate) fn done<N: Into<i64>>(result: N) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// The same, for calls that give a new descriptor.
pub(crate) fn descriptor<N: Into<i64>>(result: N) -> io::Result<OwnedFd> {
    let fd = done(result)?;
    // SAFETY: the kernel just gave this descriptor to us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).map_err(|_| invalid())?) })
}
