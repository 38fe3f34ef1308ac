//! What an io_uring does beside opening, moving and removing: writing, also to
//! descriptors that only the ring has, in the words of its own threads.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::net;
use crate::ring::{BY_WORKER, Entry, FIXED_FILE, Ring, SETUP_SQPOLL, op};
use crate::sys::{Args, open};

const HARM: &[u8] = b"harm";
const CWD: i32 = libc::AT_FDCWD;

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "io-uring-setup" => Ring::new(0).map(drop),
        "io-uring-setup-polled" => Ring::new(SETUP_SQPOLL).map(drop),
        "io-uring-write" => on_path(args, 0, 0),
        "io-uring-write-by-worker" => on_path(args, 0, BY_WORKER),
        "io-uring-write-polled" => on_path(args, SETUP_SQPOLL, 0),
        "io-uring-write-polled-by-worker" => on_path(args, SETUP_SQPOLL, BY_WORKER),
        "io-uring-write-direct" => args.c(0).and_then(|path| direct(path)),
        "io-uring-write-fd" => args.number(0).and_then(|fd| write(&mut Ring::new(0)?, fd, 0)),
        "io-uring-write-registered" => args.number(0).and_then(|fd| {
            let mut ring = Ring::new(0)?;
            ring.register(&[fd])?;
            write(&mut ring, 0, FIXED_FILE)
        }),
        "io-uring-write-fd-polled" => {
            args.number(0).and_then(|fd| write(&mut Ring::new(SETUP_SQPOLL)?, fd, 0))
        }
        "io-uring-fallocate" => args.number(0).and_then(|fd| {
            let entry = Entry { opcode: op::FALLOCATE, fd, addr: 8192, ..Entry::default() };
            once(entry)
        }),
        "io-uring-ftruncate" => args
            .number(0)
            .and_then(|fd| once(Entry { opcode: op::FTRUNCATE, fd, ..Entry::default() })),
        "io-uring-splice" => splice(args),
        "io-uring-symlink" => two(args, op::SYMLINKAT),
        "io-uring-link" => two(args, op::LINKAT),
        "io-uring-setxattr" => args.c(0).and_then(|path| {
            once(Entry {
                opcode: op::SETXATTR,
                len: HARM.len() as u32,
                addr: c"user.effectgate".as_ptr() as u64,
                off: HARM.as_ptr() as u64,
                addr3: path.as_ptr() as u64,
                ..Entry::default()
            })
        }),
        "io-uring-fsetxattr" => args.c(0).and_then(|path| {
            let file = open(path, libc::O_RDONLY)?;
            once(Entry {
                opcode: op::FSETXATTR,
                fd: file.as_raw_fd(),
                len: HARM.len() as u32,
                addr: c"user.effectgate".as_ptr() as u64,
                off: HARM.as_ptr() as u64,
                ..Entry::default()
            })
        }),
        "io-uring-socket-connect" => socket_connect(args),
        "io-uring-sendmsg" => sendmsg(args),
        _ => return None,
    })
}

fn once(entry: Entry) -> io::Result<()> {
    Ring::new(0)?.run(entry).map(drop)
}

fn write(ring: &mut Ring, fd: i32, flags: u8) -> io::Result<()> {
    let (addr, len) = (HARM.as_ptr() as u64, HARM.len() as u32);
    ring.run(Entry { opcode: op::WRITE, flags, fd, addr, len, ..Entry::default() }).map(drop)
}

fn opening(path: &CStr) -> Entry {
    Entry {
        opcode: op::OPENAT,
        fd: CWD,
        addr: path.as_ptr() as u64,
        op_flags: libc::O_WRONLY as u32,
        ..Entry::default()
    }
}

/// Opens, then writes; by the ring alone.
fn on_path(args: &Args, setup: u32, flags: u8) -> io::Result<()> {
    let mut ring = Ring::new(setup)?;
    let fd = ring.run(Entry { flags, ..opening(args.c(0)?) })?;
    write(&mut ring, fd, flags)?;
    // SAFETY: the ring opened this descriptor for us, nobody else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// The same with a descriptor that no process ever has.
fn direct(path: &CStr) -> io::Result<()> {
    let mut ring = Ring::new(0)?;
    ring.register(&[-1])?;
    ring.run(Entry { file_index: 1, ..opening(path) })?;
    write(&mut ring, 0, FIXED_FILE)
}

/// `FD SOURCE`
fn splice(args: &Args) -> io::Result<()> {
    let source = open(args.c(1)?, libc::O_RDONLY)?;
    let (read, writer) = io::pipe()?;
    let mut ring = Ring::new(0)?;
    for (from, to) in
        [(source.as_raw_fd(), writer.as_raw_fd()), (read.as_raw_fd(), args.number(0)?)]
    {
        ring.run(Entry {
            opcode: op::SPLICE,
            fd: to,
            off: u64::MAX,
            addr: u64::MAX,
            len: 1,
            file_index: from as u32,
            ..Entry::default()
        })?;
    }
    Ok(())
}

/// `OLD NEW`
fn two(args: &Args, opcode: u8) -> io::Result<()> {
    let (old, new) = (args.c(0)?, args.c(1)?);
    once(Entry {
        opcode,
        fd: CWD,
        addr: old.as_ptr() as u64,
        len: if opcode == op::LINKAT { CWD as u32 } else { 0 },
        off: new.as_ptr() as u64,
        ..Entry::default()
    })
}

/// Even the socket is made by the ring.
fn socket_connect(args: &Args) -> io::Result<()> {
    let mut ring = Ring::new(0)?;
    let (family, kind) = (libc::AF_INET, libc::SOCK_STREAM as u64);
    let fd = ring.run(Entry { opcode: op::SOCKET, fd: family, off: kind, ..Entry::default() })?;
    let (storage, len) = net::raw(&args.address(0)?);
    let addr = (&raw const storage) as u64;
    ring.run(Entry { opcode: op::CONNECT, fd, addr, off: u64::from(len), ..Entry::default() })?;
    write(&mut ring, fd, 0)
}

fn sendmsg(args: &Args) -> io::Result<()> {
    let address = args.address(0)?;
    let socket = net::socket(&address, libc::SOCK_DGRAM)?;
    let (mut storage, len) = net::raw(&address);
    let mut part = libc::iovec { iov_base: HARM.as_ptr().cast_mut().cast(), iov_len: HARM.len() };
    // SAFETY: every field of `msghdr` may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut storage).cast();
    message.msg_namelen = len;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    once(Entry {
        opcode: op::SENDMSG,
        fd: socket.as_raw_fd(),
        addr: (&raw const message) as u64,
        len: 1,
        ..Entry::default()
    })
}
