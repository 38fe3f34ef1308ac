//! Effects through an io_uring, which no system-call tracepoint sees. The ring
//! is made by hand: one entry, submitted and awaited.

use std::ffi::CStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::net;
use crate::sys::{descriptor, done};

/// `enum io_uring_op` (`linux/io_uring.h`).
mod op {
    pub(super) const CONNECT: u8 = 16;
    pub(super) const OPENAT: u8 = 18;
    pub(super) const RENAMEAT: u8 = 35;
    pub(super) const UNLINKAT: u8 = 36;
    pub(super) const MKDIRAT: u8 = 37;
}

const OFF_SQ_RING: libc::off_t = 0;
const OFF_CQ_RING: libc::off_t = 0x0800_0000;
const OFF_SQES: libc::off_t = 0x1000_0000;
const ENTER_GETEVENTS: libc::c_uint = 1;

/// Leaves it to one of the kernel's own threads, `IOSQE_ASYNC`.
pub(crate) const BY_WORKER: u8 = 1 << 4;

pub(crate) fn open(path: &CStr, flags: u8) -> io::Result<()> {
    let fd = submit(Entry {
        opcode: op::OPENAT,
        flags,
        fd: libc::AT_FDCWD,
        addr: path.as_ptr() as u64,
        op_flags: libc::O_WRONLY as u32,
        ..Entry::default()
    })?;
    // SAFETY: the ring opened this descriptor for us, nobody else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

pub(crate) fn unlink(path: &CStr) -> io::Result<()> {
    submit(Entry {
        opcode: op::UNLINKAT,
        fd: libc::AT_FDCWD,
        addr: path.as_ptr() as u64,
        ..Entry::default()
    })
    .map(drop)
}

pub(crate) fn mkdir(path: &CStr) -> io::Result<()> {
    submit(Entry {
        opcode: op::MKDIRAT,
        fd: libc::AT_FDCWD,
        addr: path.as_ptr() as u64,
        len: 0o755,
        ..Entry::default()
    })
    .map(drop)
}

pub(crate) fn rename(old: &CStr, new: &CStr) -> io::Result<()> {
    submit(Entry {
        opcode: op::RENAMEAT,
        fd: libc::AT_FDCWD,
        addr: old.as_ptr() as u64,
        len: libc::AT_FDCWD as u32,
        off: new.as_ptr() as u64,
        ..Entry::default()
    })
    .map(drop)
}

pub(crate) fn connect(address: SocketAddr, flags: u8) -> io::Result<()> {
    let socket = net::socket(&address, libc::SOCK_STREAM)?;
    let (storage, len) = net::raw(&address);
    submit(Entry {
        opcode: op::CONNECT,
        flags,
        fd: socket.as_raw_fd(),
        addr: (&raw const storage) as u64,
        off: u64::from(len),
        ..Entry::default()
    })
    .map(drop)
}

/// `struct io_uring_sqe`
#[repr(C)]
#[derive(Default)]
struct Entry {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    off: u64,
    addr: u64,
    len: u32,
    op_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

const _: () = assert!(size_of::<Entry>() == 64);

/// `struct io_sqring_offsets` and `struct io_cqring_offsets`
#[repr(C)]
#[derive(Default)]
struct Offsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    /// `flags` of the submission ring, `overflow` of the completion ring.
    fourth: u32,
    /// `dropped` of the submission ring, `cqes` of the completion ring.
    fifth: u32,
    /// `array` of the submission ring.
    sixth: u32,
    reserved: u32,
    user_addr: u64,
}

/// `struct io_uring_params`
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: Offsets,
    cq: Offsets,
}

const _: () = assert!(size_of::<Params>() == 120);

/// Runs one entry to its end and gives its result.
fn submit(entry: Entry) -> io::Result<i32> {
    let mut params = Params::default();
    // SAFETY: the structure has the kernel's layout and lives across the call.
    let ring = descriptor(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut params) })?;
    let sq = map(&ring, OFF_SQ_RING)?;
    let cq = map(&ring, OFF_CQ_RING)?;
    let entries = map(&ring, OFF_SQES)?;

    // SAFETY: each address lies in a mapping of one page that the kernel made
    // for this ring, at the offset that the kernel gave, and is aligned for its
    // type; one entry fits.
    unsafe {
        entries.cast::<Entry>().write(entry);
        sq.add(params.sq.sixth as usize).cast::<u32>().write(0);
        let tail = AtomicU32::from_ptr(sq.add(params.sq.tail as usize).cast());
        tail.store(1, Ordering::Release);
    }
    // SAFETY: takes numbers and no signal mask.
    done(unsafe {
        libc::syscall(
            libc::SYS_io_uring_enter,
            ring.as_raw_fd(),
            1,
            1,
            ENTER_GETEVENTS,
            std::ptr::null::<libc::sigset_t>(),
            0,
        )
    })?;
    // SAFETY: as above; the call waited for the one completion, whose result is
    // the 32 bits after `user_data`.
    let result = unsafe {
        AtomicU32::from_ptr(cq.add(params.cq.tail as usize).cast()).load(Ordering::Acquire);
        cq.add(params.cq.fifth as usize + 8).cast::<i32>().read()
    };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) }
}

/// One page of the ring, until the process ends.
fn map(ring: &OwnedFd, offset: libc::off_t) -> io::Result<*mut u8> {
    // SAFETY: a new mapping, placed by the kernel.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            ring.as_raw_fd(),
            offset,
        )
    };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.cast()) }
}
