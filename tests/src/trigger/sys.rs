//! Arguments and return values of system calls.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
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

/// What a register holds of an argument.
pub(crate) trait Word {
    fn word(self) -> usize;
}

macro_rules! words {
    ($($type:ty)+) => {$(
        impl Word for $type {
            fn word(self) -> usize {
                self as usize
            }
        }
    )+};
}

words! { i32 u32 i64 u64 usize }

impl<T> Word for *const T {
    fn word(self) -> usize {
        self.addr()
    }
}

impl<T> Word for *mut T {
    fn word(self) -> usize {
        self.addr()
    }
}

/// A system call by its number, for those without a wrapper. Who uses it
/// promises that what an argument points to lives across the call and is as
/// large as the call takes it to be.
macro_rules! call {
    ($number:expr $(, $argument:expr)* $(,)?) => {{
        let number: libc::c_long = $number;
        // SAFETY: as the macro's user promises.
        $crate::sys::done(unsafe { libc::syscall(number $(, $crate::sys::Word::word($argument))*) })
    }};
}

/// The same, for calls that give a new descriptor.
macro_rules! open_call {
    ($($argument:expr),+ $(,)?) => {
        $crate::sys::call!($($argument),+).and_then($crate::sys::descriptor)
    };
}

pub(crate) use {call, open_call};

/// No path, no structure.
pub(crate) const NULL: usize = 0;

/// A file, opened as `flags` say.
pub(crate) fn open(path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    open_call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o644)
}

/// `/proc/self/fd/N`
pub(crate) fn name_of(fd: &impl AsRawFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("no NUL")
}

/// A descriptor that this process was started with, or got, and keeps.
pub(crate) fn given(number: i32) -> io::Result<BorrowedFd<'static>> {
    call!(libc::SYS_fcntl, number, libc::F_GETFD)?;
    // SAFETY: it is open, and nothing here closes what was given.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

/// Keeps a descriptor, under the number that `given` gets.
pub(crate) fn keep(fd: OwnedFd, number: i32) -> io::Result<()> {
    call!(libc::SYS_dup3, fd.as_raw_fd(), number, 0).map(drop)
}
