//! File effects. Where libc has a wrapper it is called; on x86-64 those reach
//! the old system calls (`mkdir`, `unlink`, ...), so that both generations are
//! tried.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::{Args, descriptor, done, invalid};

const MODE: libc::mode_t = 0o644;

pub(crate) fn open(path: &CStr, flags: i32) -> io::Result<()> {
    open_at(libc::AT_FDCWD, path, flags).map(drop)
}

fn open_at(directory: i32, path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    descriptor(unsafe { libc::openat(directory, path.as_ptr(), flags | libc::O_CLOEXEC, MODE) })
}

fn directory(path: &CStr) -> io::Result<OwnedFd> {
    open_at(libc::AT_FDCWD, path, libc::O_PATH | libc::O_DIRECTORY)
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn open_legacy(path: &CStr, flags: i32) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    descriptor(unsafe { libc::syscall(libc::SYS_open, path.as_ptr(), flags, 0) }).map(drop)
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn open_legacy(path: &CStr, flags: i32) -> io::Result<()> {
    open(path, flags)
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn creat(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    descriptor(unsafe { libc::syscall(libc::SYS_creat, path.as_ptr(), MODE) }).map(drop)
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn creat(path: &CStr) -> io::Result<()> {
    open(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC)
}

/// `struct open_how` (`linux/openat2.h`).
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

pub(crate) fn openat2(path: &CStr, flags: i32) -> io::Result<()> {
    let how = OpenHow { flags: flags as u64, mode: 0, resolve: 0 };
    // SAFETY: path and structure live across the call, and the size is theirs.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    })
    .map(drop)
}

/// `O_PATH` first, then for writing through `/proc/self/fd`.
pub(crate) fn reopen_path(path: &CStr) -> io::Result<()> {
    let held = open_at(libc::AT_FDCWD, path, libc::O_PATH)?;
    open(&own_descriptor(&held), libc::O_WRONLY)
}

fn own_descriptor(fd: &OwnedFd) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("no NUL")
}

pub(crate) fn open_relative(base: &CStr, name: &CStr) -> io::Result<()> {
    // SAFETY: `base` is NUL-terminated and lives across the call.
    done(unsafe { libc::chdir(base.as_ptr()) })?;
    open(name, libc::O_WRONLY)
}

pub(crate) fn open_in_thread(path: &CStr) -> io::Result<()> {
    std::thread::scope(|scope| {
        scope.spawn(|| open(path, libc::O_WRONLY)).join().map_err(|_| invalid())?
    })
}

/// Opens while another descriptor is taken away and given back, so that the
/// number found at the end of the call is one that was used before.
pub(crate) fn open_fixed_descriptor(path: &CStr) -> io::Result<()> {
    let first = open_at(libc::AT_FDCWD, c"/dev/null", libc::O_RDONLY)?;
    let number = first.as_raw_fd();
    drop(first);
    let second = open_at(libc::AT_FDCWD, path, libc::O_WRONLY)?;
    if second.as_raw_fd() == number { Ok(()) } else { Err(invalid()) }
}

pub(crate) fn create(path: &CStr) -> io::Result<()> {
    open(path, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY)
}

/// A file without a name in `base`, which then gets the name `target`.
pub(crate) fn tmpfile(base: &CStr, target: &CStr) -> io::Result<()> {
    let file = open_at(libc::AT_FDCWD, base, libc::O_TMPFILE | libc::O_WRONLY)?;
    let source = own_descriptor(&file);
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            source.as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    })
    .map(drop)
}

pub(crate) fn memfd_reopen() -> io::Result<()> {
    // SAFETY: the name is NUL-terminated and static.
    let memory = descriptor(unsafe { libc::memfd_create(c"trigger".as_ptr(), 0) })?;
    open(&own_descriptor(&memory), libc::O_RDWR)
}

pub(crate) fn mkdir(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::mkdir(path.as_ptr(), 0o755) }).map(drop)
}

pub(crate) fn mkdirat(base: &CStr, name: &CStr) -> io::Result<()> {
    let base = directory(base)?;
    // SAFETY: `name` is NUL-terminated and lives across the call.
    done(unsafe { libc::mkdirat(base.as_raw_fd(), name.as_ptr(), 0o755) }).map(drop)
}

pub(crate) fn rmdir(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::rmdir(path.as_ptr()) }).map(drop)
}

pub(crate) fn unlink(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::unlink(path.as_ptr()) }).map(drop)
}

pub(crate) fn unlinkat(base: &CStr, name: &CStr, flags: i32) -> io::Result<()> {
    let base = directory(base)?;
    // SAFETY: `name` is NUL-terminated and lives across the call.
    done(unsafe { libc::unlinkat(base.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

pub(crate) fn rename(old: &CStr, new: &CStr) -> io::Result<()> {
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::rename(old.as_ptr(), new.as_ptr()) }).map(drop)
}

pub(crate) fn renameat(base: &CStr, old: &CStr, new: &CStr) -> io::Result<()> {
    let base = directory(base)?;
    let base = base.as_raw_fd();
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::renameat(base, old.as_ptr(), base, new.as_ptr()) }).map(drop)
}

pub(crate) fn renameat2(old: &CStr, new: &CStr, flags: u32) -> io::Result<()> {
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            old.as_ptr(),
            libc::AT_FDCWD,
            new.as_ptr(),
            flags,
        )
    })
    .map(drop)
}

pub(crate) fn link(old: &CStr, new: &CStr) -> io::Result<()> {
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::link(old.as_ptr(), new.as_ptr()) }).map(drop)
}

pub(crate) fn linkat(base: &CStr, old: &CStr, new: &CStr) -> io::Result<()> {
    let base = directory(base)?;
    let base = base.as_raw_fd();
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::linkat(base, old.as_ptr(), base, new.as_ptr(), 0) }).map(drop)
}

/// With what a symbolic link leads to, where `old` is one.
pub(crate) fn link_follow(old: &CStr, new: &CStr) -> io::Result<()> {
    let (cwd, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::linkat(cwd, old.as_ptr(), cwd, new.as_ptr(), follow) }).map(drop)
}

pub(crate) fn symlink(target: &CStr, path: &CStr) -> io::Result<()> {
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }).map(drop)
}

pub(crate) fn symlinkat(target: &CStr, base: &CStr, name: &CStr) -> io::Result<()> {
    let base = directory(base)?;
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::symlinkat(target.as_ptr(), base.as_raw_fd(), name.as_ptr()) }).map(drop)
}

pub(crate) fn truncate(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::truncate(path.as_ptr(), 0) }).map(drop)
}

pub(crate) fn ftruncate(path: &CStr) -> io::Result<()> {
    let file = open_at(libc::AT_FDCWD, path, libc::O_WRONLY)?;
    // SAFETY: takes a descriptor that we own.
    done(unsafe { libc::ftruncate(file.as_raw_fd(), 0) }).map(drop)
}

pub(crate) fn chmod(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::chmod(path.as_ptr(), 0o600) }).map(drop)
}

/// By the name of a descriptor that only says where: so do tar and others, to
/// follow no link.
pub(crate) fn chmod_descriptor(path: &CStr) -> io::Result<()> {
    let held = open_at(libc::AT_FDCWD, path, libc::O_PATH | libc::O_NOFOLLOW)?;
    chmod(&own_descriptor(&held))
}

pub(crate) fn fchmod(path: &CStr) -> io::Result<()> {
    let file = open_at(libc::AT_FDCWD, path, libc::O_RDONLY)?;
    // SAFETY: takes a descriptor that we own.
    done(unsafe { libc::fchmod(file.as_raw_fd(), 0o600) }).map(drop)
}

pub(crate) fn fchmodat(base: &CStr, name: &CStr) -> io::Result<()> {
    let base = directory(base)?;
    // SAFETY: `name` is NUL-terminated and lives across the call.
    done(unsafe { libc::fchmodat(base.as_raw_fd(), name.as_ptr(), 0o600, 0) }).map(drop)
}

/// Linux 6.6; libc has no number for it everywhere yet.
const SYS_FCHMODAT2: libc::c_long = 452;

pub(crate) fn fchmodat2(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::syscall(SYS_FCHMODAT2, libc::AT_FDCWD, path.as_ptr(), 0o600, 0) }).map(drop)
}

/// The owner stays who it was: the call is the effect.
fn owner() -> (libc::uid_t, libc::gid_t) {
    // SAFETY: both calls take nothing and cannot fail.
    unsafe { (libc::getuid(), libc::getgid()) }
}

pub(crate) fn chown(path: &CStr) -> io::Result<()> {
    let (uid, gid) = owner();
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::chown(path.as_ptr(), uid, gid) }).map(drop)
}

pub(crate) fn fchown(path: &CStr) -> io::Result<()> {
    let (uid, gid) = owner();
    let file = open_at(libc::AT_FDCWD, path, libc::O_RDONLY)?;
    // SAFETY: takes a descriptor that we own.
    done(unsafe { libc::fchown(file.as_raw_fd(), uid, gid) }).map(drop)
}

pub(crate) fn lchown(path: &CStr) -> io::Result<()> {
    let (uid, gid) = owner();
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::lchown(path.as_ptr(), uid, gid) }).map(drop)
}

pub(crate) fn fchownat(base: &CStr, name: &CStr) -> io::Result<()> {
    let (uid, gid) = owner();
    let base = directory(base)?;
    // SAFETY: `name` is NUL-terminated and lives across the call.
    done(unsafe { libc::fchownat(base.as_raw_fd(), name.as_ptr(), uid, gid, 0) }).map(drop)
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn mknod(path: &CStr, kind: libc::mode_t) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::syscall(libc::SYS_mknod, path.as_ptr(), kind | MODE, 0) }).map(drop)
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn mknod(path: &CStr, kind: libc::mode_t) -> io::Result<()> {
    mknodat_in(libc::AT_FDCWD, path, kind)
}

/// `number`: `MAJOR:MINOR`.
pub(crate) fn mknod_device(path: &CStr, kind: libc::mode_t, number: &str) -> io::Result<()> {
    let (major, minor) = number.split_once(':').ok_or_else(invalid)?;
    let part = |text: &str| text.parse().map_err(|_| invalid());
    let device = libc::makedev(part(major)?, part(minor)?);
    // SAFETY: `path` is NUL-terminated and lives across the call.
    done(unsafe { libc::mknod(path.as_ptr(), kind | MODE, device) }).map(drop)
}

pub(crate) fn mknodat(base: &CStr, name: &CStr, kind: libc::mode_t) -> io::Result<()> {
    mknodat_in(directory(base)?.as_raw_fd(), name, kind)
}

fn mknodat_in(base: i32, name: &CStr, kind: libc::mode_t) -> io::Result<()> {
    // SAFETY: `name` is NUL-terminated and lives across the call.
    done(unsafe { libc::mknodat(base, name.as_ptr(), kind | MODE, 0) }).map(drop)
}

/// Goes down `depth` times into the directory `step`, then creates a file.
/// The whole path is longer than any one call could take.
pub(crate) fn deep_create(base: &CStr, step: &CStr, depth: i32) -> io::Result<()> {
    descend(base, step, depth)?;
    create(c"deep")
}

fn descend(base: &CStr, step: &CStr, depth: i32) -> io::Result<()> {
    // SAFETY: `base` is NUL-terminated and lives across the call.
    done(unsafe { libc::chdir(base.as_ptr()) })?;
    for _ in 0..depth {
        // SAFETY: `step` is NUL-terminated and lives across the call.
        done(unsafe { libc::chdir(step.as_ptr()) })?;
    }
    Ok(())
}

/// `deep-flood BASE STEP DEPTH COUNT DONE`: creates and removes `COUNT` files
/// far down, as fast as it can, then creates `DONE`.
pub(crate) fn deep_flood(args: &Args) -> io::Result<()> {
    descend(args.c(0)?, args.c(1)?, args.number(2)?)?;
    for count in 0..args.number(3)? {
        let name = CString::new(format!("flood-{count}")).expect("no NUL");
        create(&name)?;
        unlink(&name)?;
    }
    create(args.c(4)?)
}

pub(crate) fn tmpdir_create(name: &str) -> io::Result<()> {
    let path = std::env::temp_dir().join(name);
    create(&CString::new(path.to_string_lossy().as_bytes()).map_err(|_| invalid())?)
}
