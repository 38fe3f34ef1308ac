//! What a file is, beside its content: times, extended attributes, access
//! control lists, flags. Each by name, and by a descriptor opened for reading.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::{Args, NULL, call, open};

const NAME: &CStr = c"user.effectgate";
const VALUE: &[u8] = b"harm";
const ACL: &CStr = c"system.posix_acl_access";
const CAPABILITY: &CStr = c"security.capability";

/// `FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR` (`linux/fs.h`).
const GET_FLAGS: u64 = 0x8008_6601;
const SET_FLAGS: u64 = 0x4008_6602;
const SET_FSXATTR: u64 = 0x401c_5820;
const NODUMP: u64 = 0x40;

/// Linux 6.13.
const SYS_SETXATTRAT: libc::c_long = 463;
/// Linux 6.17.
const SYS_FILE_SETATTR: libc::c_long = 469;

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    let on = |change: fn(&CStr) -> io::Result<i64>| {
        Some(args.c(0).and_then(|path| change(path)).map(drop))
    };
    match effect {
        "utimes" => {
            on(|path| call!(libc::SYS_utimensat, libc::AT_FDCWD, path.as_ptr(), TIMES.as_ptr(), 0))
        }
        "futimens" => on(|path| {
            let file = open(path, libc::O_RDONLY)?;
            call!(libc::SYS_utimensat, file.as_raw_fd(), NULL, TIMES.as_ptr(), 0)
        }),
        "setxattr" => on(|path| set(libc::SYS_setxattr, path, NAME, VALUE)),
        "lsetxattr" => on(|path| set(libc::SYS_lsetxattr, path, NAME, VALUE)),
        "fsetxattr" => on(|path| {
            let file = open(path, libc::O_RDONLY)?;
            let (name, value) = (NAME.as_ptr(), VALUE.as_ptr());
            call!(libc::SYS_fsetxattr, file.as_raw_fd(), name, value, VALUE.len(), 0)
        }),
        "setxattrat" => on(setxattrat),
        "removexattr" => on(|path| call!(libc::SYS_removexattr, path.as_ptr(), NAME.as_ptr())),
        "lremovexattr" => on(|path| call!(libc::SYS_lremovexattr, path.as_ptr(), NAME.as_ptr())),
        "fremovexattr" => on(|path| {
            let file = open(path, libc::O_RDONLY)?;
            call!(libc::SYS_fremovexattr, file.as_raw_fd(), NAME.as_ptr())
        }),
        "set-acl" => on(|path| set(libc::SYS_setxattr, path, ACL, &acl())),
        "remove-acl" => on(|path| {
            set(libc::SYS_setxattr, path, ACL, &acl())?;
            call!(libc::SYS_removexattr, path.as_ptr(), ACL.as_ptr())
        }),
        "set-capability" => on(|path| set(libc::SYS_setxattr, path, CAPABILITY, &capability())),
        "remove-capability" => on(|path| {
            set(libc::SYS_setxattr, path, CAPABILITY, &capability())?;
            call!(libc::SYS_removexattr, path.as_ptr(), CAPABILITY.as_ptr())
        }),
        "file-setattr" => on(|path| {
            // `struct file_attr` (`linux/fs.h`): `FS_XFLAG_NODUMP`, and nothing else.
            let attributes = [0x80_u64, 0, 0];
            let (cwd, size) = (libc::AT_FDCWD, size_of_val(&attributes));
            call!(SYS_FILE_SETATTR, cwd, path.as_ptr(), attributes.as_ptr(), size, 0)
        }),
        "compat-ioctl-setflags" => Some(args.c(0).and_then(|path| compat_set_flags(path))),
        "ioctl-setflags" => on(|path| {
            let file = open(path, libc::O_RDONLY)?;
            let flags = with_nodump(&file)?;
            call!(libc::SYS_ioctl, file.as_raw_fd(), SET_FLAGS, &raw const flags)
        }),
        "ioctl-fssetxattr" => on(|path| {
            let file = open(path, libc::O_RDONLY)?;
            // `struct fsxattr`: `FS_XFLAG_NODUMP`, and nothing else.
            let attributes = [0x80_u32, 0, 0, 0, 0, 0, 0];
            call!(libc::SYS_ioctl, file.as_raw_fd(), SET_FSXATTR, attributes.as_ptr())
        }),
        _ => None,
    }
}

/// A file's flags and that one: a file system need not let go of others.
fn with_nodump(file: &OwnedFd) -> io::Result<u64> {
    let mut flags: u64 = 0;
    call!(libc::SYS_ioctl, file.as_raw_fd(), GET_FLAGS, &raw mut flags)?;
    Ok(flags | NODUMP)
}

/// Long ago.
const TIMES: [libc::timespec; 2] = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];

fn set(number: libc::c_long, path: &CStr, name: &CStr, value: &[u8]) -> io::Result<i64> {
    call!(number, path.as_ptr(), name.as_ptr(), value.as_ptr(), value.len(), 0)
}

/// `struct xattr_args` (`linux/xattr.h`).
#[repr(C)]
struct XattrArgs {
    value: u64,
    size: u32,
    flags: u32,
}

fn setxattrat(path: &CStr) -> io::Result<i64> {
    let args = XattrArgs { value: VALUE.as_ptr() as u64, size: VALUE.len() as u32, flags: 0 };
    let size = size_of::<XattrArgs>();
    call!(SYS_SETXATTRAT, libc::AT_FDCWD, path.as_ptr(), 0, NAME.as_ptr(), &raw const args, size)
}

/// `struct posix_acl_xattr_header` and its entries: the owner, one other user,
/// the group, the mask, the rest.
fn acl() -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 7, 1000),
        (4, 4, u32::MAX),
        (16, 7, u32::MAX),
        (32, 4, u32::MAX),
    ] {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// `struct vfs_cap_data`, version 2, effective: `CAP_CHOWN`.
fn capability() -> Vec<u8> {
    [0x0200_0001_u32, 1, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `FS_IOC32_SETFLAGS` (`linux/fs.h`) through the entry for 32-bit programs,
/// which has pointers of 32 bits.
#[cfg(target_arch = "x86_64")]
fn compat_set_flags(path: &CStr) -> io::Result<()> {
    let file = open(path, libc::O_RDONLY)?;
    // SAFETY: a new mapping, placed by the kernel, of which nobody else knows.
    let flags = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
        libc::mmap(std::ptr::null_mut(), 4096, protection, kind, -1, 0)
    };
    if flags == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping may be written.
    unsafe { flags.cast::<u32>().write(with_nodump(&file)? as u32) };
    let answer: u64;
    // SAFETY: `ioctl` (54), which reads the number; rbx, which the compiler keeps
    // for itself, is given back.
    unsafe {
        std::arch::asm!(
            "xchg {fd}, rbx", "int 0x80", "xchg {fd}, rbx",
            fd = inout(reg) file.as_raw_fd() as u64 => _,
            inout("rax") 54_u64 => answer,
            in("rcx") 0x4004_6602_u64,
            in("rdx") flags.addr() as u64,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    match answer as i32 {
        error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
        _ => Ok(()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn compat_set_flags(_: &CStr) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}
