//! Names of files: the ways to make, move and reach them that libc has no
//! plain call for.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;

use super::data::{open_by_handle, write};
use crate::file;
use crate::sys::{Args, call, given, name_of, open};

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    let on = |change: fn(&CStr) -> io::Result<()>| Some(args.c(0).and_then(|path| change(path)));
    match effect {
        "open-opath" => on(|path| open(path, libc::O_PATH).map(drop)),
        "read-file" => on(|path| {
            let file = open(path, libc::O_RDONLY)?;
            let mut byte = 0_u8;
            call!(libc::SYS_read, file.as_raw_fd(), &raw mut byte, 1).map(drop)
        }),
        "read-directory" => on(|path| {
            let directory = open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
            let mut bytes = [0_u8; 1024];
            call!(libc::SYS_getdents64, directory.as_raw_fd(), bytes.as_mut_ptr(), 1024).map(drop)
        }),
        "handle-open" => on(|path| write(&open_by_handle(path, libc::O_WRONLY)?)),
        "handle-read" => on(|path| open_by_handle(path, libc::O_RDONLY).map(drop)),
        "opath-write" => on(|path| {
            let held = open(path, libc::O_PATH)?;
            write(&open(&name_of(&held), libc::O_WRONLY)?)
        }),
        "opath-chmod" => on(|path| {
            let held = open(path, libc::O_PATH)?;
            call!(libc::SYS_fchmodat, libc::AT_FDCWD, name_of(&held).as_ptr(), 0o600).map(drop)
        }),
        "tmpfile-write" => on(|path| write(&open(path, libc::O_TMPFILE | libc::O_WRONLY)?)),
        "tmpfile-link-empty" => Some(link_empty(args)),
        "link-fd" => Some(link_fd(args)),
        "rename-whiteout" => {
            let names = args.c(0).and_then(|old| Ok((old, args.c(1)?)));
            Some(names.and_then(|(old, new)| file::renameat2(old, new, libc::RENAME_WHITEOUT)))
        }
        "mknod-socket" => on(|path| file::mknod(path, libc::S_IFSOCK)),
        "open-through-link" => on(|path| file::open(path, libc::O_WRONLY)),
        "lchmod" => on(|path| {
            let no_follow = libc::AT_SYMLINK_NOFOLLOW;
            call!(452, libc::AT_FDCWD, path.as_ptr(), 0o600, no_follow).map(drop)
        }),
        "lutimes" => on(|path| {
            let times = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];
            let no_follow = libc::AT_SYMLINK_NOFOLLOW;
            let cwd = libc::AT_FDCWD;
            call!(libc::SYS_utimensat, cwd, path.as_ptr(), times.as_ptr(), no_follow).map(drop)
        }),
        _ => None,
    }
}

/// A file without a name in a directory gets one, by its descriptor alone.
fn link_empty(args: &Args) -> io::Result<()> {
    let file = open(args.c(0)?, libc::O_TMPFILE | libc::O_WRONLY)?;
    write(&file)?;
    link(&file, args.c(1)?)
}

/// Another name for what the descriptor holds.
fn link_fd(args: &Args) -> io::Result<()> {
    link(&given(args.number(0)?)?, args.c(1)?)
}

fn link(file: &impl AsRawFd, target: &CStr) -> io::Result<()> {
    let (from, cwd) = (file.as_raw_fd(), libc::AT_FDCWD);
    call!(libc::SYS_linkat, from, c"".as_ptr(), cwd, target.as_ptr(), libc::AT_EMPTY_PATH).map(drop)
}
