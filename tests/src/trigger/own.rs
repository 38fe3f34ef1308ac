//! Sockets at both ends of which the job itself is.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

use crate::net::{raw, socket};
use crate::sys::{done, invalid};

const BYTE: &[u8] = b"x";

/// Unix sockets of every kind, by path below `directory` and by name.
pub(crate) fn unix(directory: &OsStr) -> io::Result<()> {
    let directory = Path::new(directory);
    let name = |kind: &str| {
        Name::from_abstract_name(format!("effectgate-test-{kind}-{}", std::process::id()))
    };
    let path = directory.join("stream");
    let listener = UnixListener::bind(&path)?;
    exchange(UnixStream::connect(&path)?, listener.accept()?.0)?;
    let stream = name("stream")?;
    let listener = UnixListener::bind_addr(&stream)?;
    exchange(UnixStream::connect_addr(&stream)?, listener.accept()?.0)?;
    let (one, other) = UnixStream::pair()?;
    exchange(one, other)?;

    let path = directory.join("datagram");
    let _by_path = UnixDatagram::bind(&path)?;
    let sender = UnixDatagram::unbound()?;
    sender.send_to(BYTE, &path)?;
    let datagram = name("datagram")?;
    let _by_name = UnixDatagram::bind_addr(&datagram)?;
    sender.send_to_addr(BYTE, &datagram)?;
    sender.connect(&path)?;
    sender.send(BYTE)?;
    let (one, other) = UnixDatagram::pair()?;
    one.send(BYTE)?;
    other.send(BYTE).map(drop)
}

fn exchange(mut one: UnixStream, mut other: UnixStream) -> io::Result<()> {
    let mut byte = [0];
    one.write_all(BYTE)?;
    other.read_exact(&mut byte)?;
    other.write_all(BYTE)?;
    one.read_exact(&mut byte)
}

/// Datagrams to a server, and its answers to a port that the kernel chose.
pub(crate) fn answers(any: SocketAddr, address: &str) -> io::Result<()> {
    let address: IpAddr = address.parse().map_err(|_| invalid())?;
    let server = UdpSocket::bind(any)?;
    let to = SocketAddr::new(address, server.local_addr()?.port());
    let unconnected = socket(&to, libc::SOCK_DGRAM)?;
    let (storage, len) = raw(&to);
    let (fd, bytes, at) =
        (unconnected.as_raw_fd(), BYTE.as_ptr().cast(), (&raw const storage).cast());
    // SAFETY: data and address live across the call and have these lengths.
    done(unsafe { libc::sendto(fd, bytes, BYTE.len(), 0, at, len) } as i64)?;
    let connected = socket(&to, libc::SOCK_DGRAM)?;
    // SAFETY: as above.
    done(unsafe { libc::connect(connected.as_raw_fd(), at, len) })?;
    // SAFETY: as above.
    done(unsafe { libc::send(connected.as_raw_fd(), bytes, BYTE.len(), 0) } as i64)?;
    for _ in 0..2 {
        let (_, from) = server.recv_from(&mut [0])?;
        server.send_to(BYTE, from)?;
    }
    Ok(())
}

/// Shares a port with whoever has it already (`SO_REUSEPORT`) and connects to it.
pub(crate) fn shared_port(address: SocketAddr) -> io::Result<()> {
    let own = socket(&address, libc::SOCK_STREAM)?;
    let one = 1_i32;
    let (fd, at, size) = (own.as_raw_fd(), (&raw const one).cast(), size_of::<i32>() as u32);
    let (storage, len) = raw(&address);
    // SAFETY: the number lives across the call and has this length.
    done(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, at, size) })?;
    // SAFETY: the address lives across the call and has this length.
    done(unsafe { libc::bind(fd, (&raw const storage).cast(), len) })?;
    // SAFETY: takes numbers.
    done(unsafe { libc::listen(fd, 16) })?;
    TcpStream::connect(address).map(drop)
}

/// Listens at a port, stops, and connects to where nobody is any more.
pub(crate) fn closed(address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    drop(listener);
    match TcpStream::connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(invalid()),
    }
}
