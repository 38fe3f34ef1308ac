//! What newer calls and older corners reach, beside the usual ways.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::ptr::null_mut;

use crate::sys::{Args, NULL, call, open_call};

/// `arch/x86/entry/syscalls/syscall_64.tbl`
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
/// `linux/mount.h`
const CREATE_EXCLUSIVELY: u32 = 8;
/// `linux/netlink.h`
const NETLINK_KOBJECT_UEVENT: i32 = 15;
/// `asm-generic/mman-common.h`
const MADV_SOFT_OFFLINE: i32 = 101;

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "open-tree-attr" => args.c(0).and_then(|at| {
            // `struct mount_attr`: `MOUNT_ATTR_RDONLY` is set, of the mount itself.
            let attributes = [1_u64, 0, 0, 0];
            let (cwd, size) = (libc::AT_FDCWD, size_of_val(&attributes));
            open_call!(SYS_OPEN_TREE_ATTR, cwd, at.as_ptr(), 0, attributes.as_ptr(), size).map(drop)
        }),
        "make-file-system-exclusively" => make_file_system(),
        // Of nobody's terminal: the call is what is looked at.
        "hang-up" => call!(libc::SYS_setsid).and_then(|_| call!(libc::SYS_vhangup)).map(drop),
        "terminal-input-fd" => args
            .number(0)
            .and_then(|fd| call!(libc::SYS_ioctl, fd, libc::TIOCSTI, c"h".as_ptr()).map(drop)),
        "take-page-away" => take_page_away(),
        "join-group" => join_group(),
        "remove-shared-memory" => args
            .number(0)
            .and_then(|id| call!(libc::SYS_shmctl, id, libc::IPC_RMID, NULL).map(drop)),
        "tell-device-manager" => tell_device_manager(),
        "unix-in-the-place-of" => in_the_place_of(args),
        _ => return None,
    })
}

fn make_file_system() -> io::Result<()> {
    let context: OwnedFd = open_call!(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0)?;
    call!(libc::SYS_fsconfig, context.as_raw_fd(), CREATE_EXCLUSIVELY, NULL, NULL, 0).map(drop)
}

/// A page of the machine's memory is used by nobody any more.
fn take_page_away() -> io::Result<()> {
    // SAFETY: a new mapping, placed by the kernel.
    let page = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(null_mut(), 4096, protection, kind, -1, 0)
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping may be written.
    unsafe { page.cast::<u8>().write_volatile(1) };
    call!(libc::SYS_madvise, page, 4096, MADV_SOFT_OFFLINE).map(drop)
}

/// The kernel tells everybody in the network of whoever joins.
fn join_group() -> io::Result<()> {
    let socket: OwnedFd = open_call!(libc::SYS_socket, libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // `struct ip_mreqn`: 239.104.97.114, any address, the loopback interface.
    let request = [u32::from_ne_bytes(*b"\xefhar"), 0, 1];
    let (fd, level, option) = (socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP);
    call!(libc::SYS_setsockopt, fd, level, option, request.as_ptr(), 12).map(drop)
}

/// `TARGET DIRECTORY BELL`: so many addresses were the job's own that one of
/// another program, which takes one when the bell rings, lies where one was.
fn in_the_place_of(args: &Args) -> io::Result<()> {
    let (target, directory) = (args.text(0)?, args.text(1)?);
    let mut listeners = Vec::new();
    for number in 0..900 {
        // As long as the other's, to lie among its like.
        let start = format!("{directory}/s{number}");
        let path = format!("{start:x<width$}", width = target.len());
        listeners.push(UnixListener::bind(&path)?);
        std::fs::remove_file(path)?;
    }
    drop(listeners);
    std::fs::write(args.os(2)?, "x")?;
    loop {
        match UnixStream::connect(target) {
            Ok(mut stream) => return stream.write_all(b"harm"),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) => std::thread::yield_now(),
        }
    }
}

/// An event of a device that is none, as if the kernel had said it.
fn tell_device_manager() -> io::Result<()> {
    const EVENT: &[u8] =
        b"change@/effectgate\0ACTION=change\0DEVPATH=/effectgate\0SUBSYSTEM=none\0";
    let kind = libc::SOCK_RAW;
    let socket: OwnedFd =
        open_call!(libc::SYS_socket, libc::AF_NETLINK, kind, NETLINK_KOBJECT_UEVENT)?;
    // `struct nlmsghdr`: any type that is no control message, a request that is
    // to be answered.
    let mut message = vec![0_u8; 16];
    message[0] = (16 + EVENT.len()) as u8;
    message[4..8].copy_from_slice(&[16, 0, 5, 0]);
    message.extend_from_slice(EVENT);
    call!(libc::SYS_sendto, socket.as_raw_fd(), message.as_ptr(), message.len(), 0, NULL, 0)?;
    let mut answer = [0_i32; 64];
    call!(libc::SYS_recvfrom, socket.as_raw_fd(), answer.as_mut_ptr(), 256, 0, NULL, NULL)?;
    // `struct nlmsgerr` begins with the error.
    match answer[4] {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
