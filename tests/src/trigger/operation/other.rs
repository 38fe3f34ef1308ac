//! Other processes: their memory, their descriptors, their lives. The first
//! argument is the number of a process outside the job.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::data::write;
use crate::sys::{Args, NULL, call, keep, open, open_call};

const PTRACE_SEIZE: i32 = 0x4206;
const F_SETSIG: i32 = 10;
const F_SETOWN: i32 = 8;

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    let on = |reach: fn(i32) -> io::Result<i64>| Some(args.number(0).and_then(reach).map(drop));
    match effect {
        "ptrace-attach" => on(|pid| call!(libc::SYS_ptrace, libc::PTRACE_ATTACH as i32, pid, 0, 0)),
        "ptrace-seize" => on(|pid| call!(libc::SYS_ptrace, PTRACE_SEIZE, pid, 0, 0)),
        "write-memory" => Some(write_memory(args)),
        "read-memory-at" => Some(read_memory(args)),
        "write-proc-memory" => Some(write_proc_memory(args)),
        "open-proc-memory" => on(|pid| {
            let path = format!("/proc/{pid}/mem");
            std::fs::OpenOptions::new().read(true).write(true).open(path).map(|_| 0)
        }),
        "write-taken" => Some(take_descriptor(args)),
        "take-descriptor-by-name" => args.text(0).ok().map(|pid| {
            let path = format!("/proc/{pid}/fd/{}", args.text(1)?);
            write(&std::fs::OpenOptions::new().write(true).open(path)?)
        }),
        "signal-thread" => on(|pid| call!(libc::SYS_tgkill, pid, pid, libc::SIGTERM)),
        "signal-queue" => on(queue),
        "signal-pidfd" => on(|pid| {
            let process: OwnedFd = open_call!(libc::SYS_pidfd_open, pid, 0)?;
            call!(libc::SYS_pidfd_send_signal, process.as_raw_fd(), libc::SIGTERM, NULL, 0)
        }),
        "signal-by-pipe" => on(signal_by_pipe),
        "signal-by-ioctl" => on(signal_by_ioctl),
        "io-nice-other" => on(|pid| {
            const IDLE: i32 = 3 << 13;
            call!(libc::SYS_ioprio_set, 1, pid, IDLE)
        }),
        "move-memory-other" => on(|pid| {
            let node = 1_u64;
            call!(libc::SYS_migrate_pages, pid, 8, &raw const node, &raw const node)
        }),
        "limit-other" => on(|pid| {
            let limit = [1_u64, 1];
            call!(libc::SYS_prlimit64, pid, libc::RLIMIT_CORE as i32, limit.as_ptr(), NULL)
        }),
        "schedule-other" => on(|pid| {
            call!(libc::SYS_sched_setscheduler, pid, libc::SCHED_IDLE, &raw const PRIORITY)
        }),
        "nice-other" => on(|pid| call!(libc::SYS_setpriority, 0, pid, 19)),
        "pin-other" => on(|pid| {
            let cpus = 1_u64;
            call!(libc::SYS_sched_setaffinity, pid, 8, &raw const cpus)
        }),
        "advise-other" => Some(address(args).and_then(|at| advise(args.number(0)?, at))),
        "advise-program" => on(|pid| {
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
            let start = maps.split('-').next().and_then(|hex| usize::from_str_radix(hex, 16).ok());
            // Whoever refused it, the kernel gives this answer.
            let refused = |error: io::Error| match error.raw_os_error() {
                Some(libc::EACCES) => io::Error::from_raw_os_error(libc::EPERM),
                _ => error,
            };
            advise(pid, start.ok_or_else(crate::sys::invalid)?).map(|()| 0).map_err(refused)
        }),
        "victim" => Some(victim(args)),
        "unmap-other" => on(|pid| {
            let process: OwnedFd = open_call!(libc::SYS_pidfd_open, pid, 0)?;
            call!(libc::SYS_process_mrelease, process.as_raw_fd(), 0)
        }),
        _ => None,
    }
}

static PRIORITY: libc::c_int = 0;

/// `PID ADDRESS`: one byte there becomes an `h`.
fn write_memory(args: &Args) -> io::Result<()> {
    let (from, to) = vectors(args)?;
    let pid = args.number(0)?;
    call!(libc::SYS_process_vm_writev, pid, &raw const from, 1, &raw const to, 1, 0).map(drop)
}

fn read_memory(args: &Args) -> io::Result<()> {
    let mut byte = 0_u8;
    let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let (_, there) = vectors(args)?;
    let pid = args.number(0)?;
    call!(libc::SYS_process_vm_readv, pid, &raw const here, 1, &raw const there, 1, 0).map(drop)
}

fn vectors(args: &Args) -> io::Result<(libc::iovec, libc::iovec)> {
    static HARM: u8 = b'h';
    let here = libc::iovec { iov_base: (&raw const HARM).cast_mut().cast(), iov_len: 1 };
    let address = std::ptr::without_provenance_mut(address(args)?);
    Ok((here, libc::iovec { iov_base: address, iov_len: 1 }))
}

fn address(args: &Args) -> io::Result<usize> {
    args.text(1)?.parse().map_err(|_| crate::sys::invalid())
}

fn write_proc_memory(args: &Args) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let path = format!("/proc/{}/mem", args.number(0)?);
    let memory = std::fs::OpenOptions::new().write(true).open(path)?;
    memory.write_at(b"h", address(args)? as u64).map(drop)
}

/// `PID FD`: writes through what it holds.
fn take_descriptor(args: &Args) -> io::Result<()> {
    let process: OwnedFd = open_call!(libc::SYS_pidfd_open, args.number(0)?, 0)?;
    let taken: OwnedFd =
        open_call!(libc::SYS_pidfd_getfd, process.as_raw_fd(), args.number(1)?, 0)?;
    write(&taken)?;
    keep(taken, 9)
}

fn queue(pid: i32) -> io::Result<i64> {
    // `siginfo_t`: the number, no error, `SI_QUEUE`.
    let mut info = [0_i32; 32];
    (info[0], info[2]) = (libc::SIGTERM, -1);
    call!(libc::SYS_rt_sigqueueinfo, pid, libc::SIGTERM, info.as_ptr())
}

/// The kernel itself sends it, when a pipe that "belongs" to the process has
/// something to read.
fn signal_by_pipe(pid: i32) -> io::Result<i64> {
    let (read, writer) = io::pipe()?;
    let fd = read.as_raw_fd();
    call!(libc::SYS_fcntl, fd, F_SETOWN, pid)?;
    call!(libc::SYS_fcntl, fd, F_SETSIG, libc::SIGTERM)?;
    call!(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_ASYNC)?;
    write(&writer).map(|()| 0)
}

/// The same with a socket, which is given away by another call.
fn signal_by_ioctl(pid: i32) -> io::Result<i64> {
    const FIOSETOWN: i32 = 0x8901;
    let (socket, peer) = std::os::unix::net::UnixStream::pair()?;
    let fd = socket.as_raw_fd();
    call!(libc::SYS_ioctl, fd, FIOSETOWN, &raw const pid)?;
    call!(libc::SYS_fcntl, fd, F_SETSIG, libc::SIGTERM)?;
    call!(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_ASYNC)?;
    write(&peer).map(|()| 0)
}

fn advise(pid: i32, address: usize) -> io::Result<()> {
    let process: OwnedFd = open_call!(libc::SYS_pidfd_open, pid, 0)?;
    let page = address & !4095;
    let range = libc::iovec { iov_base: std::ptr::without_provenance_mut(page), iov_len: 4096 };
    let fd = process.as_raw_fd();
    call!(libc::SYS_process_madvise, fd, &raw const range, 1, libc::MADV_COLD, 0).map(drop)
}

/// Opens `/proc/PID/NAME` to write there.
pub(super) fn write_proc(pid: &str, name: &str, text: &str) -> io::Result<()> {
    std::fs::write(format!("/proc/{pid}/{name}"), text)
}

/// Whether a path can be opened at all, without a trace of it.
pub(super) fn exists(path: &std::ffi::CStr) -> bool {
    open(path, libc::O_PATH).is_ok()
}

/// `FILE NUMBER`: lives outside the job to be reached for: has a byte in its
/// memory, whose address it prints, and a file open under this number. To each
/// line it answers with the byte.
pub(super) fn victim(args: &Args) -> io::Result<()> {
    keep(open(args.c(0)?, libc::O_RDWR)?, args.number(1)?)?;
    let byte = std::ptr::from_mut(Box::leak(Box::new(b'x')));
    println!("{}", byte.expose_provenance());
    // Until it is killed, or whoever started it is gone.
    while io::stdin().read_line(&mut String::new())? > 0 {
        // SAFETY: it is never freed; who writes to it from outside writes a byte.
        println!("{}", char::from(unsafe { byte.read_volatile() }));
    }
    Ok(())
}
