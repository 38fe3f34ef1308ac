//! Where the process stands: its directory, its root, its mounts.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::ptr::null;

use crate::sys::{done, invalid};

pub(crate) fn chdir(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::chdir(path.as_ptr()) }).map(drop)
}

/// Its directory with it.
pub(crate) fn chroot(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::chroot(path.as_ptr()) })?;
    chdir(c"/")
}

/// A mount namespace of its own, out of which no mount gets.
pub(crate) fn own_mounts() -> io::Result<()> {
    // SAFETY: takes a number.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the string is static, and the call takes no others.
    done(unsafe { libc::mount(null(), c"/".as_ptr(), null(), private, null()) }).map(drop)
}

pub(crate) fn bind_mount(source: &CStr, target: &CStr) -> io::Result<()> {
    let (from, to) = (source.as_ptr(), target.as_ptr());
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::mount(from, to, null(), libc::MS_BIND, null()) }).map(drop)
}

/// Mounts `source` on a new directory in the temporary directory.
pub(crate) fn tmpdir_mount(source: &CStr) -> io::Result<()> {
    let target = std::env::temp_dir().join("mounted");
    let target = CString::new(target.into_os_string().into_vec()).map_err(|_| invalid())?;
    crate::file::mkdir(&target)?;
    bind_mount(source, &target)
}
