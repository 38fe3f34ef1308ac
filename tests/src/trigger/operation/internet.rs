//! Ways to reach a host that are no plain `connect` or `sendto`.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use super::data::{splice, write};
use crate::net::{raw, socket};
use crate::sys::{Args, NULL, call, given, open, open_call};
use std::os::fd::AsFd;

const MPTCP: i32 = 262;
const UDP_LITE: i32 = 136;
const FASTOPEN_CONNECT: i32 = 30;
const HARM: &[u8] = b"harm";

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "tcp-fastopen-option" => args.address(0).and_then(fast_open),
        "mptcp-connect" => args.address(0).and_then(|address| {
            let socket = make(&address, libc::SOCK_STREAM, MPTCP)?;
            connect(&socket, &address)?;
            write(&socket)
        }),
        "tcp-send" => args.address(0).and_then(|address| write(&TcpStream::connect(address)?)),
        "tcp-sendfile" => args.address(0).and_then(|address| {
            let stream = TcpStream::connect(address)?;
            let file = open(args.c(1)?, libc::O_RDONLY)?;
            call!(libc::SYS_sendfile, stream.as_raw_fd(), file.as_raw_fd(), NULL, 1).map(drop)
        }),
        "udp-write" => args.address(0).and_then(|address| write(&udp(&address)?)),
        "udp-splice" => args.address(0).and_then(|address| {
            let file = open(args.c(1)?, libc::O_RDONLY)?;
            splice(udp(&address)?.as_fd(), &file).map(drop)
        }),
        "udp-reconnect" => args.address(0).and_then(|listed| {
            let socket = udp(&listed)?;
            connect(&socket, &args.address(1)?)?;
            write(&socket)
        }),
        "udp-mapped" => args.text(0).and_then(|port| {
            // IPv4 written as IPv6.
            let address =
                format!("[::ffff:127.0.0.1]:{port}").parse().map_err(|_| crate::sys::invalid())?;
            sendto(&make(&address, libc::SOCK_DGRAM, 0)?, &address)
        }),
        "tcp-mapped" => args.text(0).and_then(|port| {
            let address =
                format!("[::ffff:127.0.0.1]:{port}").parse().map_err(|_| crate::sys::invalid())?;
            let socket = make(&address, libc::SOCK_STREAM, 0)?;
            connect(&socket, &address)?;
            write(&socket)
        }),
        "tcp-any" => args.text(0).and_then(|port| {
            // The address that means "this machine" to connect.
            let address = format!("0.0.0.0:{port}").parse().map_err(|_| crate::sys::invalid())?;
            let socket = make(&address, libc::SOCK_STREAM, 0)?;
            connect(&socket, &address)?;
            write(&socket)
        }),
        "udp-lite" => args
            .address(0)
            .and_then(|address| sendto(&make(&address, libc::SOCK_DGRAM, UDP_LITE)?, &address)),
        "raw-icmp" => args.address(0).and_then(|address| {
            let socket = make(&address, libc::SOCK_RAW, libc::IPPROTO_ICMP)?;
            echo(&socket, &address)
        }),
        "raw-udp" => args.address(0).and_then(|address| raw_udp(&address)),
        "ping-socket" => args.address(0).and_then(|address| {
            echo(&make(&address, libc::SOCK_DGRAM, libc::IPPROTO_ICMP)?, &address)
        }),
        "packet-send" => packet(),
        "netlink-send" => netlink(),
        "vsock-connect" => vsock(),
        "alg-bind" => alg(),
        "socket-family" => args.number(0).and_then(|family| {
            open_call!(libc::SYS_socket, family, args.number(1)?, args.number(2)?).map(drop)
        }),
        "send-fd" => args.number(0).and_then(|number| write(&given(number)?)),
        "listen-all" => {
            args.address(0).and_then(|address| std::net::TcpListener::bind(address).map(drop))
        }
        "listen-unbound" => listen_unbound(),
        "resolve" => args.address(0).and_then(resolve),
        _ => return None,
    })
}

fn make(address: &SocketAddr, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    open_call!(libc::SYS_socket, family, kind | libc::SOCK_CLOEXEC, protocol)
}

fn connect(socket: &impl AsRawFd, address: &SocketAddr) -> io::Result<()> {
    let (storage, len) = raw(address);
    call!(libc::SYS_connect, socket.as_raw_fd(), &raw const storage, len).map(drop)
}

fn sendto(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    send(socket, HARM, address)
}

fn send(socket: &OwnedFd, bytes: &[u8], address: &SocketAddr) -> io::Result<()> {
    let (storage, len) = raw(address);
    let (fd, at) = (socket.as_raw_fd(), &raw const storage);
    call!(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), 0, at, len).map(drop)
}

fn udp(address: &SocketAddr) -> io::Result<OwnedFd> {
    let any = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket.into())
}

/// `connect` only notes the address, the first write takes the data along.
fn fast_open(address: SocketAddr) -> io::Result<()> {
    let socket = socket(&address, libc::SOCK_STREAM)?;
    let (fd, one, level) = (socket.as_raw_fd(), 1_i32, libc::IPPROTO_TCP);
    call!(libc::SYS_setsockopt, fd, level, FASTOPEN_CONNECT, &raw const one, 4)?;
    connect(&socket, &address)?;
    write(&socket)
}

fn echo(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    // Type 8, code 0, its checksum, and nothing in it.
    send(socket, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0], address)
}

/// A whole UDP packet by hand, on a raw socket of UDP's number.
fn raw_udp(address: &SocketAddr) -> io::Result<()> {
    let socket = make(address, libc::SOCK_RAW, libc::IPPROTO_UDP)?;
    let mut packet = Vec::new();
    for word in [9_u16, address.port(), 12, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(HARM);
    send(&socket, &packet, address)
}

/// A frame for the loopback interface.
fn packet() -> io::Result<()> {
    let socket: OwnedFd = open_call!(libc::SYS_socket, libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
    // `struct sockaddr_ll`: the family, IPv4, interface 1, an address of six bytes.
    let mut address = [0_u8; 20];
    address[0] = libc::AF_PACKET as u8;
    address[2..4].copy_from_slice(&0x0800_u16.to_be_bytes());
    address[4] = 1;
    address[11] = 6;
    let (fd, at) = (socket.as_raw_fd(), address.as_ptr());
    call!(libc::SYS_sendto, fd, HARM.as_ptr(), HARM.len(), 0, at, 20).map(drop)
}

/// Asks for the addresses of the machine; harmless.
fn netlink() -> io::Result<()> {
    let kind = libc::SOCK_RAW;
    let socket: OwnedFd =
        open_call!(libc::SYS_socket, libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)?;
    // `struct nlmsghdr` and `struct rtgenmsg`: `RTM_GETADDR`, request, dump.
    let mut message = [0_u8; 20];
    message[0] = 20;
    message[4..8].copy_from_slice(&[22, 0, 1, 3]);
    call!(libc::SYS_sendto, socket.as_raw_fd(), message.as_ptr(), 20, 0, NULL, 0).map(drop)
}

fn vsock() -> io::Result<()> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
    let socket: OwnedFd = open_call!(libc::SYS_socket, libc::AF_VSOCK, kind, 0)?;
    // `struct sockaddr_vm`: port 1 of the host.
    let address = [libc::AF_VSOCK as u32, 1, 2, 0];
    match call!(libc::SYS_connect, socket.as_raw_fd(), address.as_ptr(), 16) {
        // The socket is there; that nobody answers is no answer to the question.
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
        Err(_) => Ok(()),
    }
}

fn alg() -> io::Result<()> {
    let socket: OwnedFd = open_call!(libc::SYS_socket, libc::AF_ALG, libc::SOCK_SEQPACKET, 0)?;
    let mut address = [0_u8; 88];
    address[0] = libc::AF_ALG as u8;
    address[2..6].copy_from_slice(b"hash");
    address[24..28].copy_from_slice(b"sha1");
    call!(libc::SYS_bind, socket.as_raw_fd(), address.as_ptr(), 88).map(drop)
}

/// Listens without a name: the kernel gives one, without any `bind`.
fn listen_unbound() -> io::Result<()> {
    let socket: OwnedFd = open_call!(libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0)?;
    call!(libc::SYS_listen, socket.as_raw_fd(), 1).map(drop)
}

/// A question to a resolver, in which anything can be written.
fn resolve(address: SocketAddr) -> io::Result<()> {
    let socket = make(&address, libc::SOCK_DGRAM, 0)?;
    let question = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x04harm\x07example\0\0\x01\0\x01";
    send(&socket, question, &address)
}
