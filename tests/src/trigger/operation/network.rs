//! Network namespaces.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::net::raw;
use crate::process::wait;
use crate::sys::{Args, call, given, keep, open, open_call};

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "loopback-up" => loopback(),
        "clone-then" => clone_then(args),
        "hold-socket-of" => hold_socket(args),
        "connect-fd" => args.number(0).and_then(|number| connect(number, &args.address(1)?)),
        _ => return None,
    })
}

fn socket() -> io::Result<OwnedFd> {
    open_call!(libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0)
}

/// Brings the loopback device up.
fn loopback() -> io::Result<()> {
    // SAFETY: every field of `ifreq` may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
    let socket = socket()?;
    call!(libc::SYS_ioctl, socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request).map(drop)
}

/// `FLAGS EFFECT ARG...`: the effect, in a child that `clone` makes so.
fn clone_then(args: &Args) -> io::Result<()> {
    let flags = args.number(0)? | libc::SIGCHLD;
    // Without a stack it goes on on a copy of this one.
    match call!(libc::SYS_clone, flags, 0, 0, 0, 0)? {
        0 => {
            let status = crate::cause(args.text(1)?, &args.from(2));
            let status = status.err().map_or(0, |error| error.raw_os_error().unwrap_or(255));
            // SAFETY: ends the child at once, without the parent's clean-up.
            unsafe { libc::_exit(status) }
        }
        pid => wait(pid as libc::pid_t),
    }
}

/// `PATH NUMBER`: a socket that was made in the network namespace there, kept
/// when its maker is back.
fn hold_socket(args: &Args) -> io::Result<()> {
    let own = open(c"/proc/self/ns/net", libc::O_RDONLY)?;
    let other = open(args.c(0)?, libc::O_RDONLY)?;
    call!(libc::SYS_setns, other.as_raw_fd(), libc::CLONE_NEWNET)?;
    let socket = socket()?;
    call!(libc::SYS_setns, own.as_raw_fd(), libc::CLONE_NEWNET)?;
    keep(socket, args.number(1)?)
}

fn connect(number: i32, address: &SocketAddr) -> io::Result<()> {
    let (storage, len) = raw(address);
    call!(libc::SYS_connect, given(number)?.as_raw_fd(), &raw const storage, len).map(drop)
}
