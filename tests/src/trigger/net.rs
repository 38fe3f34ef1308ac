//! Socket effects.

use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::{descriptor, done, invalid};

const PAYLOAD: &[u8] = b"trigger";

pub(crate) fn socket(address: &SocketAddr, kind: i32) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: takes numbers.
    descriptor(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) })
}

/// The address as the kernel reads it, and its length in bytes.
pub(crate) fn raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: every field of `sockaddr_storage` may be zero.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let len = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: `sockaddr_storage` is large enough for, and aligned as,
            // every socket address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, len as libc::socklen_t)
}

/// Opens a socket and does nothing with it.
pub(crate) fn open(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: takes numbers.
    descriptor(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) }).map(drop)
}

/// Listens until the process ends.
pub(crate) fn listen(address: SocketAddr) -> io::Result<()> {
    std::mem::forget(std::net::TcpListener::bind(address)?);
    Ok(())
}

/// Listens at `any`, on the port that the kernel chooses if it names none, and
/// connects to that port of `address`.
pub(crate) fn own_connect(any: SocketAddr, address: &str) -> io::Result<()> {
    let listener = std::net::TcpListener::bind(any)?;
    let port = listener.local_addr()?.port();
    connect(SocketAddr::new(address.parse().map_err(|_| invalid())?, port))
}

pub(crate) fn connect(address: SocketAddr) -> io::Result<()> {
    connect_socket(&socket(&address, libc::SOCK_STREAM)?, &address)
}

pub(crate) fn connect_udp(address: SocketAddr) -> io::Result<()> {
    connect_socket(&socket(&address, libc::SOCK_DGRAM)?, &address)
}

fn connect_socket(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    let (storage, len) = raw(address);
    // SAFETY: the address lives across the call and has this length.
    done(unsafe { libc::connect(socket.as_raw_fd(), (&raw const storage).cast(), len) }).map(drop)
}

pub(crate) fn bind(address: SocketAddr) -> io::Result<()> {
    bind_socket(&socket(&address, libc::SOCK_STREAM)?, &address)
}

fn bind_socket(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    let (storage, len) = raw(address);
    // SAFETY: the address lives across the call and has this length.
    done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const storage).cast(), len) }).map(drop)
}

pub(crate) fn sendto(address: SocketAddr) -> io::Result<()> {
    send_socket(&socket(&address, libc::SOCK_DGRAM)?, &address, 0)
}

/// Data with the connection's first packet: no `connect` call is made.
pub(crate) fn tcp_fastopen(address: SocketAddr) -> io::Result<()> {
    send_socket(&socket(&address, libc::SOCK_STREAM)?, &address, libc::MSG_FASTOPEN)
}

fn send_socket(socket: &OwnedFd, address: &SocketAddr, flags: i32) -> io::Result<()> {
    let (storage, len) = raw(address);
    // SAFETY: data and address live across the call and have these lengths.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            PAYLOAD.as_ptr().cast(),
            PAYLOAD.len(),
            flags | libc::MSG_NOSIGNAL,
            (&raw const storage).cast(),
            len,
        )
    };
    done(sent as i64).map(drop)
}

/// A message to an address; the pointers live as long as the borrows.
fn message(
    storage: &mut libc::sockaddr_storage,
    len: libc::socklen_t,
    part: &mut libc::iovec,
) -> libc::msghdr {
    // SAFETY: every field of `msghdr` may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut *storage).cast();
    message.msg_namelen = len;
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message
}

fn payload() -> libc::iovec {
    libc::iovec { iov_base: PAYLOAD.as_ptr().cast_mut().cast(), iov_len: PAYLOAD.len() }
}

pub(crate) fn sendmsg(address: SocketAddr) -> io::Result<()> {
    let socket = socket(&address, libc::SOCK_DGRAM)?;
    let (mut storage, len) = raw(&address);
    let mut part = payload();
    let message = message(&mut storage, len, &mut part);
    // SAFETY: everything that the message points to lives across the call.
    done(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, 0) } as i64).map(drop)
}

/// One call, one message to each address.
pub(crate) fn sendmmsg(addresses: &[SocketAddr]) -> io::Result<()> {
    let socket = socket(addresses.first().ok_or_else(invalid)?, libc::SOCK_DGRAM)?;
    let mut raws: Vec<_> = addresses.iter().map(raw).collect();
    let mut parts: Vec<_> = addresses.iter().map(|_| payload()).collect();
    let mut messages: Vec<_> = raws
        .iter_mut()
        .zip(&mut parts)
        .map(|((storage, len), part)| libc::mmsghdr {
            msg_hdr: message(storage, *len, part),
            msg_len: 0,
        })
        .collect();
    // SAFETY: everything that the messages point to lives across the call.
    let sent = done(unsafe {
        libc::syscall(
            libc::SYS_sendmmsg,
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len(),
            0,
        )
    })?;
    if sent == messages.len() as i64 { Ok(()) } else { Err(invalid()) }
}

/// Listens on a port that the kernel chooses and connects to itself.
pub(crate) fn self_connect(family: &str) -> io::Result<()> {
    let any: SocketAddr = match family {
        "4" => SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into(),
        "6" => SocketAddrV6::new(Ipv6Addr::LOCALHOST, 0, 0, 0).into(),
        _ => return Err(invalid()),
    };
    let listener = std::net::TcpListener::bind(any)?;
    connect(listener.local_addr()?)
}

/// Binds a local socket to a path, which comes into being.
pub(crate) fn bind_path(path: &OsStr) -> io::Result<()> {
    std::os::unix::net::UnixDatagram::bind(path).map(drop)
}

/// `IPOPT_LSRR` with one address, and the end of the list (RFC 791).
fn source_route(first: Ipv4Addr) -> [u8; 8] {
    let [a, b, c, d] = first.octets();
    [131, 7, 4, a, b, c, d, 0]
}

/// A datagram by way of the loopback address, as an option of its socket.
pub(crate) fn routed(address: SocketAddr) -> io::Result<()> {
    let socket = socket(&address, libc::SOCK_DGRAM)?;
    let route = source_route(Ipv4Addr::LOCALHOST);
    let (fd, at, len) = (socket.as_raw_fd(), (&raw const route).cast(), route.len() as u32);
    // SAFETY: the option lives across the call and has this length.
    done(unsafe { libc::setsockopt(fd, libc::IPPROTO_IP, libc::IP_OPTIONS, at, len) })?;
    send_socket(&socket, &address, 0)
}

/// The same as part of the message.
pub(crate) fn routed_message(address: SocketAddr) -> io::Result<()> {
    let socket = socket(&address, libc::SOCK_DGRAM)?;
    let (mut storage, len) = raw(&address);
    let mut part = payload();
    let mut message = message(&mut storage, len, &mut part);
    // `struct cmsghdr`: its length, level and type, and then the options.
    let kind = libc::IPPROTO_IP as u64 | (libc::IP_RETOPTS as u64) << 32;
    let route = u64::from_ne_bytes(source_route(Ipv4Addr::LOCALHOST));
    let mut control = [24_u64, kind, route];
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: everything that the message points to lives across the call.
    done(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, 0) } as i64).map(drop)
}
