//! What a file holds, changed through a descriptor: by all the calls that
//! write without the word. The first argument is the number of a descriptor
//! that was handed to the process.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;

use crate::sys::{Args, NULL, call, given, keep, name_of, open, open_call};

const HARM: &[u8] = b"harm";

/// `FICLONE` (`linux/fs.h`).
const FICLONE: u64 = 0x4004_9409;

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "write-file" => args.c(0).and_then(|path| write(&open(path, libc::O_WRONLY)?)),
        "hold" => args.c(0).and_then(|path| keep(open(path, libc::O_RDWR)?, args.number(1)?)),
        "hold-path" => args.c(0).and_then(|path| keep(open(path, libc::O_PATH)?, args.number(1)?)),
        "write-fd" => on(args, |fd| write(&fd)),
        "pwritev2-fd" => on(args, |fd| {
            let part =
                libc::iovec { iov_base: HARM.as_ptr().cast_mut().cast(), iov_len: HARM.len() };
            call!(libc::SYS_pwritev2, fd.as_raw_fd(), &raw const part, 1, 0, 0, 0).map(drop)
        }),
        "mmap-store-fd" => on(args, |fd| store(&fd)),
        "mmap-store-later-fd" => on(args, |fd| store_later(&fd)),
        "ftruncate-fd" => on(args, |fd| call!(libc::SYS_ftruncate, fd.as_raw_fd(), 0).map(drop)),
        "fchmod-fd" => on(args, |fd| call!(libc::SYS_fchmod, fd.as_raw_fd(), 0o600).map(drop)),
        "fallocate-fd" => {
            on(args, |fd| call!(libc::SYS_fallocate, fd.as_raw_fd(), 0, 0, 8192).map(drop))
        }
        "punch-fd" => on(args, |fd| {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            call!(libc::SYS_fallocate, fd.as_raw_fd(), mode, 0, 1).map(drop)
        }),
        "copy-file-range-fd" => from(args, |to, source| {
            let (to, source) = (to.as_raw_fd(), source.as_raw_fd());
            call!(libc::SYS_copy_file_range, source, NULL, to, NULL, 1, 0)
        }),
        "sendfile-fd" => from(args, |to, source| {
            call!(libc::SYS_sendfile, to.as_raw_fd(), source.as_raw_fd(), NULL, 1)
        }),
        "splice-fd" => from(args, splice),
        "vmsplice-fd" => on(args, vmsplice),
        "ficlone-fd" => from(args, |to, source| {
            call!(libc::SYS_ioctl, to.as_raw_fd(), FICLONE, source.as_raw_fd())
        }),
        "reopen-fd" => on(args, |fd| write(&open(&name_of(&fd), libc::O_WRONLY)?)),
        "aio-write-fd" => on(args, |fd| aio(&fd)),
        "map-exec" => args.c(0).and_then(|path| map_exec(path)),
        "mprotect-exec" => args.c(0).and_then(|path| mprotect_exec(path)),
        _ => return None,
    })
}

fn on(args: &Args, change: impl Fn(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
    change(given(args.number(0)?)?)
}

/// With the file that the second argument names as the source.
fn from(args: &Args, copy: impl Fn(BorrowedFd<'_>, &OwnedFd) -> io::Result<i64>) -> io::Result<()> {
    let source = open(args.c(1)?, libc::O_RDONLY)?;
    copy(given(args.number(0)?)?, &source).map(drop)
}

pub(super) fn write(fd: &impl AsRawFd) -> io::Result<()> {
    call!(libc::SYS_write, fd.as_raw_fd(), HARM.as_ptr(), HARM.len()).map(drop)
}

fn map(fd: &impl AsRawFd, protection: i32, kind: i32) -> io::Result<*mut u8> {
    // SAFETY: a new mapping, placed by the kernel.
    let address = unsafe { libc::mmap(null_mut(), 4096, protection, kind, fd.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.cast()) }
}

fn store(fd: &impl AsRawFd) -> io::Result<()> {
    let address = map(fd, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
    // SAFETY: the mapping may be written, and the file has a first byte.
    unsafe { address.write_volatile(b'h') };
    Ok(())
}

/// Mapped to be read; made writable afterwards.
fn store_later(fd: &impl AsRawFd) -> io::Result<()> {
    let address = map(fd, libc::PROT_READ, libc::MAP_SHARED)?;
    call!(libc::SYS_mprotect, address, 4096, libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: as above.
    unsafe { address.write_volatile(b'h') };
    Ok(())
}

/// Through a pipe, so that no call has both ends.
pub(super) fn splice(to: BorrowedFd<'_>, source: &OwnedFd) -> io::Result<i64> {
    let (read, write) = io::pipe()?;
    call!(libc::SYS_splice, source.as_raw_fd(), NULL, write.as_raw_fd(), NULL, 1, 0)?;
    call!(libc::SYS_splice, read.as_raw_fd(), NULL, to.as_raw_fd(), NULL, 1, 0)
}

fn vmsplice(to: BorrowedFd<'_>) -> io::Result<()> {
    let (read, write) = io::pipe()?;
    let part = libc::iovec { iov_base: HARM.as_ptr().cast_mut().cast(), iov_len: HARM.len() };
    call!(libc::SYS_vmsplice, write.as_raw_fd(), &raw const part, 1, 0)?;
    call!(libc::SYS_splice, read.as_raw_fd(), NULL, to.as_raw_fd(), NULL, HARM.len(), 0).map(drop)
}

/// `struct iocb` (`linux/aio_abi.h`).
#[repr(C)]
#[derive(Default)]
struct Control {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    rest: [u64; 2],
}

/// By the older asynchronous interface: `IOCB_CMD_PWRITE`.
fn aio(fd: &impl AsRawFd) -> io::Result<()> {
    let mut context = 0_u64;
    call!(libc::SYS_io_setup, 1, &raw mut context)?;
    let control = Control {
        opcode: 1,
        fd: fd.as_raw_fd() as u32,
        buffer: HARM.as_ptr() as u64,
        bytes: HARM.len() as u64,
        ..Control::default()
    };
    let list = [&raw const control];
    call!(libc::SYS_io_submit, context, 1, list.as_ptr())?;
    let mut event = [0_u64; 4];
    call!(libc::SYS_io_getevents, context, 1, 1, event.as_mut_ptr(), NULL)?;
    match event[2] as i64 {
        result if result < 0 => Err(io::Error::from_raw_os_error(-result as i32)),
        _ => Ok(()),
    }
}

fn map_exec(path: &CStr) -> io::Result<()> {
    let file = open(path, libc::O_RDONLY)?;
    map(&file, libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE).map(drop)
}

fn mprotect_exec(path: &CStr) -> io::Result<()> {
    let file = open(path, libc::O_RDONLY)?;
    let address = map(&file, libc::PROT_READ, libc::MAP_PRIVATE)?;
    call!(libc::SYS_mprotect, address, 4096, libc::PROT_READ | libc::PROT_EXEC).map(drop)
}

/// Through a handle, which names no directory.
pub(super) fn open_by_handle(path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    /// `struct file_handle` (`linux/fcntl.h`), with room.
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        handle: [u8; 128],
    }
    let mut handle = Handle { bytes: 128, kind: 0, handle: [0; 128] };
    let mut mount = 0_i32;
    let (cwd, room) = (libc::AT_FDCWD, &raw mut handle);
    call!(libc::SYS_name_to_handle_at, cwd, path.as_ptr(), room, &raw mut mount, 0)?;
    // The mount is that of the working directory: nothing else has to be opened.
    open_call!(libc::SYS_open_by_handle_at, cwd, room, flags | libc::O_CLOEXEC)
}
