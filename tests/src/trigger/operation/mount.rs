//! What is mounted where, by both generations of calls, and namespaces.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::data::write;
use crate::file;
use crate::sys::{Args, NULL, call, invalid, open, open_call};

/// `linux/mount.h`
const OPEN_TREE_CLONE: u32 = 1;
const MOVE_FROM_EMPTY: u32 = 4;
const CREATE: u32 = 6;
const SET_STRING: u32 = 1;

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "mount-tmpfs" => args.c(0).and_then(|at| mount(c"tmpfs", at, c"tmpfs", 0, c"")),
        "mount-overlay" => overlay(args),
        "mount-proc" => args.c(0).and_then(|at| mount(c"proc", at, c"proc", 0, c"")),
        "remount-read-only" => args.c(0).and_then(|at| {
            mount(c"", at, c"", libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY, c"")
        }),
        "mount-private" => args.c(0).and_then(|at| mount(c"", at, c"", libc::MS_PRIVATE, c"")),
        "mount-move" => args.c(0).and_then(|from| mount(from, args.c(1)?, c"", libc::MS_MOVE, c"")),
        "open-tree-write" => tree_write(args),
        "fsmount" => args.c(0).and_then(|at| attach(&detached()?, at)),
        "fsmount-write" => detached().and_then(|mounted| write_in(&mounted, c"new")),
        "fsmount-overlay" => overlay_detached(args),
        "unmount-plain" => {
            args.c(0).and_then(|at| call!(libc::SYS_umount2, at.as_ptr(), 0).map(drop))
        }
        "unshare" => args.number(0).and_then(|flags| call!(libc::SYS_unshare, flags).map(drop)),
        "own-user" => own_user(),
        "join-namespace" => args.c(0).and_then(|path| {
            let namespace = open(path, libc::O_RDONLY)?;
            call!(libc::SYS_setns, namespace.as_raw_fd(), args.number(1)?).map(drop)
        }),
        "join-process" => args.number(0).and_then(|pid| {
            let process: OwnedFd = open_call!(libc::SYS_pidfd_open, pid, 0)?;
            call!(libc::SYS_setns, process.as_raw_fd(), libc::CLONE_NEWNS).map(drop)
        }),
        "chroot-out" => chroot_out(args),
        _ => return None,
    })
}

fn mount(source: &CStr, at: &CStr, kind: &CStr, flags: u64, data: &CStr) -> io::Result<()> {
    let (source, kind, data) = (source.as_ptr(), kind.as_ptr(), data.as_ptr());
    call!(libc::SYS_mount, source, at.as_ptr(), kind, flags, data).map(drop)
}

/// `LOWER UPPER WORK AT`
fn overlay(args: &Args) -> io::Result<()> {
    let (lower, upper, work) = (args.text(0)?, args.text(1)?, args.text(2)?);
    let options = CString::new(format!("lowerdir={lower},upperdir={upper},workdir={work}"))
        .map_err(|_| invalid())?;
    mount(c"overlay", args.c(3)?, c"overlay", 0, &options)
}

fn clone_tree(from: &CStr) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE as i32 | libc::O_CLOEXEC;
    open_call!(libc::SYS_open_tree, libc::AT_FDCWD, from.as_ptr(), flags)
}

fn attach(mounted: &OwnedFd, at: &CStr) -> io::Result<()> {
    let (cwd, empty) = (libc::AT_FDCWD, c"".as_ptr());
    let from = mounted.as_raw_fd();
    call!(libc::SYS_move_mount, from, empty, cwd, at.as_ptr(), MOVE_FROM_EMPTY).map(drop)
}

/// A tmpfs that is mounted nowhere.
fn detached() -> io::Result<OwnedFd> {
    let context: OwnedFd = open_call!(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0)?;
    configured(&context)
}

fn configured(context: &OwnedFd) -> io::Result<OwnedFd> {
    let fd = context.as_raw_fd();
    call!(libc::SYS_fsconfig, fd, CREATE, NULL, NULL, 0)?;
    open_call!(libc::SYS_fsmount, fd, 0, 0)
}

/// An overlay that is mounted nowhere, written through its directory.
fn overlay_detached(args: &Args) -> io::Result<()> {
    let context: OwnedFd = open_call!(libc::SYS_fsopen, c"overlay".as_ptr(), 0)?;
    for (key, index) in [(c"lowerdir", 0), (c"upperdir", 1), (c"workdir", 2)] {
        let (fd, value) = (context.as_raw_fd(), args.c(index)?);
        call!(libc::SYS_fsconfig, fd, SET_STRING, key.as_ptr(), value.as_ptr(), 0)?;
    }
    write_in(&configured(&context)?, args.c(3)?)
}

fn write_in(directory: &OwnedFd, name: &CStr) -> io::Result<()> {
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
    let (at, name) = (directory.as_raw_fd(), name.as_ptr());
    let file: OwnedFd = open_call!(libc::SYS_openat, at, name, flags, 0o644)?;
    write(&file)
}

/// `DIRECTORY NAME`: in a clone of the mount that is mounted nowhere.
fn tree_write(args: &Args) -> io::Result<()> {
    write_in(&clone_tree(args.c(0)?)?, args.c(1)?)
}

/// A user and a mount namespace of its own, in which it is root.
fn own_user() -> io::Result<()> {
    // SAFETY: takes nothing.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    call!(libc::SYS_unshare, libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
}

/// `DIRECTORY PATH`: a root directory below the one it stands in, and up from
/// there to the real root.
fn chroot_out(args: &Args) -> io::Result<()> {
    call!(libc::SYS_chroot, args.c(0)?.as_ptr())?;
    let up = format!("{}{}", "../".repeat(32), args.text(1)?.trim_start_matches('/'));
    file::create(&CString::new(up).map_err(|_| invalid())?)
}
