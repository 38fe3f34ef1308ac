//! Effects through an io_uring, which no system-call tracepoint sees. The ring
//! is made by hand: one entry, submitted and awaited.

use std::ffi::CStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::net;
use crate::sys::{call, descriptor, done};

/// `enum io_uring_op` (`linux/io_uring.h`).
pub(crate) mod op {
    pub(crate) const SENDMSG: u8 = 9;
    pub(crate) const CONNECT: u8 = 16;
    pub(crate) const FALLOCATE: u8 = 17;
    pub(crate) const OPENAT: u8 = 18;
    pub(crate) const WRITE: u8 = 23;
    pub(crate) const SPLICE: u8 = 30;
    pub(crate) const RENAMEAT: u8 = 35;
    pub(crate) const UNLINKAT: u8 = 36;
    pub(crate) const MKDIRAT: u8 = 37;
    pub(crate) const SYMLINKAT: u8 = 38;
    pub(crate) const LINKAT: u8 = 39;
    pub(crate) const FSETXATTR: u8 = 41;
    pub(crate) const SETXATTR: u8 = 42;
    pub(crate) const SOCKET: u8 = 45;
    pub(crate) const FTRUNCATE: u8 = 55;
}

const OFF_SQ_RING: libc::off_t = 0;
const OFF_CQ_RING: libc::off_t = 0x0800_0000;
const OFF_SQES: libc::off_t = 0x1000_0000;
const ENTER_GETEVENTS: libc::c_uint = 1;
const ENTER_SQ_WAKEUP: libc::c_uint = 2;
const REGISTER_FILES: libc::c_uint = 2;

/// A thread of the kernel's looks for entries by itself.
pub(crate) const SETUP_SQPOLL: u32 = 2;

/// The descriptor is one of the ring's own.
pub(crate) const FIXED_FILE: u8 = 1;

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
pub(crate) struct Entry {
    pub(crate) opcode: u8,
    pub(crate) flags: u8,
    pub(crate) ioprio: u16,
    pub(crate) fd: i32,
    pub(crate) off: u64,
    pub(crate) addr: u64,
    pub(crate) len: u32,
    pub(crate) op_flags: u32,
    pub(crate) user_data: u64,
    pub(crate) buf_index: u16,
    pub(crate) personality: u16,
    /// One more than the place among the ring's own descriptors.
    pub(crate) file_index: u32,
    pub(crate) addr3: u64,
    pub(crate) rest: u64,
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

/// Runs one entry to its end, in a ring of its own, and gives its result.
fn submit(entry: Entry) -> io::Result<i32> {
    Ring::new(0)?.run(entry)
}

/// A ring for one entry at a time.
pub(crate) struct Ring {
    fd: OwnedFd,
    params: Params,
    sq: *mut u8,
    cq: *mut u8,
    entries: *mut Entry,
    done: u32,
}

impl Ring {
    /// `flags`: those of `io_uring_setup`.
    pub(crate) fn new(flags: u32) -> io::Result<Ring> {
        let mut params = Params { flags, sq_thread_idle: 1000, ..Params::default() };
        // SAFETY: the structure has the kernel's layout and lives across the call.
        let fd =
            descriptor(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut params) })?;
        let (sq, cq) = (map(&fd, OFF_SQ_RING)?, map(&fd, OFF_CQ_RING)?);
        let entries = map(&fd, OFF_SQES)?.cast();
        Ok(Ring { fd, params, sq, cq, entries, done: 0 })
    }

    /// Runs one entry to its end and gives its result.
    pub(crate) fn run(&mut self, entry: Entry) -> io::Result<i32> {
        let slot = self.done & (self.params.sq_entries - 1);
        // SAFETY: each address lies in a mapping of one page that the kernel made
        // for this ring, at the offset that the kernel gave, and is aligned for
        // its type; the slot is one of the ring's.
        unsafe {
            self.entries.add(slot as usize).write(entry);
            self.sq.add(self.params.sq.sixth as usize).cast::<u32>().add(slot as usize).write(slot);
            let tail = AtomicU32::from_ptr(self.sq.add(self.params.sq.tail as usize).cast());
            tail.store(self.done + 1, Ordering::Release);
        }
        let flags = match self.params.flags & SETUP_SQPOLL {
            0 => ENTER_GETEVENTS,
            _ => ENTER_GETEVENTS | ENTER_SQ_WAKEUP,
        };
        // SAFETY: takes numbers and no signal mask.
        done(unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.fd.as_raw_fd(),
                1,
                1,
                flags,
                std::ptr::null::<libc::sigset_t>(),
                0,
            )
        })?;
        let at = (self.done & (self.params.cq_entries - 1)) as usize;
        self.done += 1;
        // SAFETY: as above; the call waited for the one completion, whose result
        // is the 32 bits after `user_data`. What was seen is given back.
        let result = unsafe {
            let tail = AtomicU32::from_ptr(self.cq.add(self.params.cq.tail as usize).cast());
            tail.load(Ordering::Acquire);
            let head = AtomicU32::from_ptr(self.cq.add(self.params.cq.head as usize).cast());
            head.store(self.done, Ordering::Release);
            self.cq.add(self.params.cq.fifth as usize + 16 * at + 8).cast::<i32>().read()
        };
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) }
    }

    /// Makes room for so many descriptors of its own (`IORING_REGISTER_FILES`).
    pub(crate) fn register(&self, files: &[i32]) -> io::Result<()> {
        let (fd, count) = (self.fd.as_raw_fd(), files.len());
        call!(libc::SYS_io_uring_register, fd, REGISTER_FILES, files.as_ptr(), count).map(drop)
    }
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
