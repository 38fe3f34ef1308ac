//! Unix sockets of other programs, by path and by name, and the descriptors
//! that come through them.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};

use crate::sys::{Args, call, keep, open, open_call};

const HARM: &[u8] = b"harm";

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "unix-stream" => args.os(0).and_then(|path| UnixStream::connect(path)?.write_all(HARM)),
        "unix-abstract" => abstract_name(args)
            .and_then(|address| UnixStream::connect_addr(&address)?.write_all(HARM)),
        "unix-seqpacket" => args.os(0).and_then(|path| send(path, libc::SOCK_SEQPACKET)),
        "unix-datagram" => {
            args.os(0).and_then(|path| UnixDatagram::unbound()?.send_to(HARM, path).map(drop))
        }
        "unix-datagram-abstract" => abstract_name(args)
            .and_then(|address| UnixDatagram::unbound()?.send_to_addr(HARM, &address).map(drop)),
        "unix-datagram-connect" => args.os(0).and_then(|path| {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            socket.send(HARM).map(drop)
        }),
        "unix-opath" => args.c(0).and_then(|path| {
            let held = open(path, libc::O_PATH)?;
            let name = crate::sys::name_of(&held);
            UnixStream::connect(OsStr::from_bytes(name.as_bytes()))?.write_all(HARM)
        }),
        "unix-bind" => args.os(0).and_then(|path| UnixListener::bind(path).map(drop)),
        "unix-pair" => UnixStream::pair().map(drop),
        "receive-descriptor" => args.os(0).and_then(|path| receive(path, args.number(1)?)),
        "send-descriptor" => send_descriptor(args),
        "give-descriptor" => give_descriptor(args),
        _ => return None,
    })
}

fn abstract_name(args: &Args) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(args.text(0)?)
}

fn send(path: &OsStr, kind: i32) -> io::Result<()> {
    // SAFETY: every field of `sockaddr_un` may be zero.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    for (to, from) in address.sun_path.iter_mut().zip(path.as_bytes()) {
        *to = *from as libc::c_char;
    }
    let len = offset_of!(libc::sockaddr_un, sun_path) + path.len() + 1;
    let socket: OwnedFd = open_call!(libc::SYS_socket, libc::AF_UNIX, kind, 0)?;
    call!(libc::SYS_connect, socket.as_raw_fd(), &raw const address, len)?;
    super::data::write(&socket)
}

/// `PATH NUMBER`: whoever listens there gives a descriptor away.
fn receive(path: &OsStr, number: i32) -> io::Result<()> {
    let stream = UnixStream::connect(path)?;
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = [0_u64; 8];
    // SAFETY: every field of `msghdr` may be zero.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    call!(libc::SYS_recvmsg, stream.as_raw_fd(), &raw mut message, 0)?;
    // The first word is the header's length, the second its level and type,
    // the third holds the number.
    if message.msg_controllen == 0 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: the kernel just gave this descriptor to us, nobody else owns it.
    keep(unsafe { OwnedFd::from_raw_fd(control[2] as u32 as i32) }, number)
}

/// `PATH FILE`: the file, opened to write, is given to whoever listens.
fn send_descriptor(args: &Args) -> io::Result<()> {
    give(&UnixStream::connect(args.os(0)?)?, args)
}

/// The same, to the first who connects there.
fn give_descriptor(args: &Args) -> io::Result<()> {
    give(&UnixListener::bind(args.os(0)?)?.accept()?.0, args)
}

fn give(stream: &UnixStream, args: &Args) -> io::Result<()> {
    let file = open(args.c(1)?, libc::O_RDWR)?;
    let mut part = libc::iovec { iov_base: HARM.as_ptr().cast_mut().cast(), iov_len: 1 };
    let kind = (libc::SOL_SOCKET as u64) | (libc::SCM_RIGHTS as u64) << 32;
    let mut control = [20_u64, kind, file.as_raw_fd() as u64];
    // SAFETY: every field of `msghdr` may be zero.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    call!(libc::SYS_sendmsg, stream.as_raw_fd(), &raw const message, 0).map(drop)
}
