//! What is not the job's own: the machine, its mounts, other processes.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};

use crate::place::{bind_mount, own_mounts, unmount};
use crate::process;
use crate::sys::{Args, descriptor, done, invalid};

/// A map of one entry (`BPF_MAP_CREATE`, `BPF_MAP_TYPE_ARRAY`).
pub(crate) fn bpf() -> io::Result<()> {
    #[repr(C)]
    struct MapCreate {
        kind: u32,
        key: u32,
        value: u32,
        entries: u32,
        flags: u32,
    }
    let map = MapCreate { kind: 2, key: 4, value: 8, entries: 1, flags: 0 };
    // SAFETY: the structure lives across the call, which is told its size.
    descriptor(unsafe { libc::syscall(libc::SYS_bpf, 0, &raw const map, size_of::<MapCreate>()) })
        .map(drop)
}

/// A counter of nothing (`PERF_COUNT_SW_DUMMY`) for this process.
pub(crate) fn perf_event() -> io::Result<()> {
    const PERF_FLAG_FD_CLOEXEC: u32 = 8;
    // `PERF_ATTR_SIZE_VER0`; type, size and counter come first, then flags.
    let mut attr = [0u64; 8];
    attr[0] = 1 | 64 << 32;
    attr[1] = 9;
    // SAFETY: the structure lives across the call, and says its size itself.
    descriptor(unsafe {
        libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, PERF_FLAG_FD_CLOEXEC)
    })
    .map(drop)
}

/// In a mount namespace of its own.
pub(crate) fn mount(target: &CStr) -> io::Result<()> {
    own_mounts()?;
    mount_memory(target, 0)
}

/// The same, and then read-only.
pub(crate) fn remount(target: &CStr) -> io::Result<()> {
    mount(target)?;
    mount_memory(target, libc::MS_REMOUNT | libc::MS_RDONLY)
}

fn mount_memory(target: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let kind = c"tmpfs".as_ptr();
    // SAFETY: the names are NUL-terminated and live across the call.
    done(unsafe { libc::mount(kind, target.as_ptr(), kind, flags, null()) }).map(drop)
}

/// Attributes of a mount, in a namespace of its own.
pub(crate) fn mount_setattr(target: &CStr) -> io::Result<()> {
    const MOUNT_ATTR_NOSUID: u64 = 2;
    // SAFETY: takes a number.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let attr = [MOUNT_ATTR_NOSUID, 0, 0, 0];
    let (at, path) = (libc::AT_FDCWD, target.as_ptr());
    // SAFETY: name and structure live across the call, which is told its size.
    done(unsafe { libc::syscall(libc::SYS_mount_setattr, at, path, 0, attr.as_ptr(), 32) })
        .map(drop)
}

/// A file system that is mounted nowhere.
pub(crate) fn make_file_system() -> io::Result<()> {
    const FSCONFIG_CMD_CREATE: u32 = 6;
    // SAFETY: the name is static.
    let fs = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 1) })?;
    let (fd, create) = (fs.as_raw_fd(), FSCONFIG_CMD_CREATE);
    // SAFETY: takes no memory with this command.
    done(unsafe { libc::syscall(libc::SYS_fsconfig, fd, create, 0, 0, 0) }).map(drop)
}

/// A mount that is taken from one place and attached at another.
pub(crate) fn move_mount(source: &CStr, target: &CStr) -> io::Result<()> {
    const OPEN_TREE_CLONE: u32 = 1;
    const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
    // SAFETY: takes a number.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (at, from, to) = (libc::AT_FDCWD, source.as_ptr(), target.as_ptr());
    // SAFETY: the name is NUL-terminated and lives across the call.
    let tree =
        descriptor(unsafe { libc::syscall(libc::SYS_open_tree, at, from, OPEN_TREE_CLONE) })?;
    let (fd, empty) = (tree.as_raw_fd(), c"".as_ptr());
    // SAFETY: both names are NUL-terminated and live across the call.
    done(unsafe { libc::syscall(libc::SYS_move_mount, fd, empty, at, to, MOVE_MOUNT_F_EMPTY_PATH) })
        .map(drop)
}

/// Takes `/proc` away, in a namespace of its own.
pub(crate) fn umount() -> io::Result<()> {
    own_mounts()?;
    unmount(c"/proc")
}

pub(crate) fn pivot_root(target: &CStr) -> io::Result<()> {
    own_mounts()?;
    bind_mount(target, target)?;
    pivot_to(target)
}

/// Of the namespace that it is in.
pub(crate) fn pivot_to(target: &CStr) -> io::Result<()> {
    let path = target.as_ptr();
    // SAFETY: the name is NUL-terminated and lives across the call.
    done(unsafe { libc::syscall(libc::SYS_pivot_root, path, path) }).map(drop)
}

/// A module that is none: it is refused when it is looked into.
pub(crate) fn load_module_file(path: &CStr) -> io::Result<()> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the name is NUL-terminated and lives across the call.
    let file = descriptor(unsafe { libc::open(path.as_ptr(), flags) })?;
    // SAFETY: as above.
    done(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) })
        .map(drop)
}

/// The same from memory.
pub(crate) fn load_module() -> io::Result<()> {
    let none = [0u8; 4096];
    // SAFETY: the bytes and the name live across the call.
    done(unsafe { libc::syscall(libc::SYS_init_module, none.as_ptr(), none.len(), c"".as_ptr()) })
        .map(drop)
}

/// Traces a process until this one ends.
pub(crate) fn trace(pid: i32) -> io::Result<()> {
    let nothing = null_mut::<libc::c_void>();
    // SAFETY: takes numbers with this request.
    done(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, nothing, nothing) }).map(drop)
}

pub(crate) fn trace_me() -> io::Result<()> {
    let nothing = null_mut::<libc::c_void>();
    // SAFETY: takes nothing with this request.
    done(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) }).map(drop)
}

/// Reads from where the process's program lies.
pub(crate) fn read_memory(pid: i32) -> io::Result<()> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = maps.split('-').next().and_then(|hex| usize::from_str_radix(hex, 16).ok());
    let mut bytes = [0u8; 8];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec {
        iov_base: start.ok_or_else(invalid)? as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: eight bytes are written to where there are eight.
    done(unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) } as i64)
        .map(drop)
}

/// Its standard input.
pub(crate) fn take_descriptor(pid: i32) -> io::Result<()> {
    // SAFETY: takes numbers.
    let process = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: as above.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), 0, 0) }).map(drop)
}

pub(crate) fn signal(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers.
    done(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// By a descriptor of the process.
pub(crate) fn pidfd_signal(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers.
    let process = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let (fd, nothing) = (process.as_raw_fd(), null::<libc::siginfo_t>());
    // SAFETY: takes numbers and no information.
    done(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, nothing, 0) }).map(drop)
}

/// With a code of its own choice, as if a timer had sent it.
pub(crate) fn queue_signal(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: all zero is a value of it.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    info.si_signo = signal;
    info.si_code = libc::SI_TIMER;
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, &raw const info) })
        .map(drop)
}

/// Has a process told when a pipe can be read.
pub(crate) fn own_signals(pid: i32) -> io::Result<()> {
    let (read, _write) = io::pipe()?;
    // SAFETY: takes numbers.
    done(unsafe { libc::fcntl(read.as_raw_fd(), libc::F_SETOWN, pid) }).map(drop)
}

/// A child of its own, alive and then dead.
pub(crate) fn signal_children() -> io::Result<()> {
    // SAFETY: the child only waits for a signal.
    let child = done(unsafe { libc::fork() })? as libc::pid_t;
    if child == 0 {
        // SAFETY: takes nothing.
        unsafe { libc::pause() };
    }
    signal(child, libc::SIGKILL)?;
    // SAFETY: all zero is a value of it.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    let (id, how) = (child as libc::id_t, libc::WEXITED | libc::WNOWAIT);
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::waitid(libc::P_PID, id, &raw mut info, how) })?;
    // It has ended, but nobody has asked how.
    signal(child, libc::SIGTERM)
}

/// The name that the machine has already.
pub(crate) fn set_host_name() -> io::Result<()> {
    let mut name = [0u8; 65];
    // SAFETY: the kernel is told how much there is.
    done(unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) })?;
    let len = name.iter().position(|byte| *byte == 0).ok_or_else(invalid)?;
    // SAFETY: as many bytes as are said.
    done(unsafe { libc::sethostname(name.as_ptr().cast(), len) }).map(drop)
}

/// In a namespace of its own a name is nobody else's.
pub(crate) fn set_own_host_name() -> io::Result<()> {
    // SAFETY: takes a number.
    done(unsafe { libc::unshare(libc::CLONE_NEWUTS) })?;
    set_host_name()
}

/// No accounting, which there was none of.
pub(crate) fn stop_accounting() -> io::Result<()> {
    // SAFETY: takes nothing.
    done(unsafe { libc::acct(null()) }).map(drop)
}

/// That Ctrl-Alt-Del does nothing at once.
pub(crate) fn reboot_keys() -> io::Result<()> {
    // SAFETY: takes a number.
    done(unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_CAD_OFF) }).map(drop)
}

/// The time that it is.
pub(crate) fn set_clock() -> io::Result<()> {
    // SAFETY: all zero is a value of it.
    let mut now: libc::timespec = unsafe { zeroed() };
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) })?;
    // SAFETY: as above.
    done(unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &raw const now) }).map(drop)
}

/// `SYSLOG_ACTION_…`: 3 reads the kernel's log, 5 clears it.
pub(crate) fn kernel_log(action: i32) -> io::Result<()> {
    let mut text = [0u8; 64];
    // SAFETY: the kernel is told how much there is.
    done(unsafe { libc::klogctl(action, text.as_mut_ptr().cast(), 64) }).map(drop)
}

/// Sets (`Q_SETINFO`) what there is not on a file system without quotas.
pub(crate) fn set_quota(device: &CStr) -> io::Result<()> {
    const Q_SETINFO_USER: i32 = 0x80_0006 << 8;
    let mut info = [0u64; 8];
    // SAFETY: the name and the structure, which is smaller, live across the call.
    done(unsafe { libc::quotactl(Q_SETINFO_USER, device.as_ptr(), 0, info.as_mut_ptr().cast()) })
        .map(drop)
}

/// A key that nobody has, with something to be told to whoever makes it. That there
/// is nobody, or that he makes none, is not the caller's failure.
pub(crate) fn request_key() -> io::Result<()> {
    let (kind, name, told) = (c"user".as_ptr(), c"effectgate-asked".as_ptr(), c"told".as_ptr());
    // SAFETY: the strings outlive the call.
    match done(unsafe { libc::syscall(libc::SYS_request_key, kind, name, told, -1) }) {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => Ok(()),
        answer => answer.map(drop),
    }
}

/// A key in the process's own ring.
pub(crate) fn add_key() -> io::Result<()> {
    let (kind, name, bytes) = (c"user".as_ptr(), c"effectgate".as_ptr(), c"key".as_ptr());
    let ring = libc::KEY_SPEC_PROCESS_KEYRING;
    // SAFETY: all three strings live across the call.
    done(unsafe { libc::syscall(libc::SYS_add_key, kind, name, bytes, 3, ring) }).map(drop)
}

pub(crate) fn user_namespace() -> io::Result<()> {
    // SAFETY: takes a number.
    done(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map(drop)
}

/// Memory that goes away with the process.
pub(crate) fn shared_memory() -> io::Result<()> {
    // SAFETY: takes numbers.
    let id = done(unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600) })? as i32;
    // SAFETY: as above; where it is mapped is the kernel's choice.
    let at = unsafe { libc::shmat(id, null(), 0) } as isize;
    // SAFETY: takes no memory with this command.
    done(unsafe { libc::shmctl(id, libc::IPC_RMID, null_mut()) })?;
    done(at as i64).map(drop)
}

/// The user that it is already, and the group.
pub(crate) fn set_ids() -> io::Result<()> {
    // SAFETY: these take numbers, or nothing.
    unsafe {
        done(libc::setgid(libc::getgid()))?;
        done(libc::setuid(libc::getuid())).map(drop)
    }
}

/// Detaches the programs that another process attached to cgroups.
pub(crate) fn detach_links(pid: i32) -> io::Result<()> {
    const BPF_LINK_GET_FD_BY_ID: i32 = 30;
    const BPF_LINK_DETACH: i32 = 34;
    let mut found = false;
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let Ok(said) = fs::read_to_string(entry?.path()) else { continue };
        if !said.contains("link_type:\tcgroup") {
            continue;
        }
        let id = said.lines().find_map(|line| line.strip_prefix("link_id:"));
        let id: u32 = id.and_then(|id| id.trim().parse().ok()).ok_or_else(invalid)?;
        let attr = [id, 0, 0, 0];
        // SAFETY: the structure lives across the call, which is told its size.
        let link = descriptor(unsafe {
            libc::syscall(libc::SYS_bpf, BPF_LINK_GET_FD_BY_ID, attr.as_ptr(), 16)
        })?;
        let attr = [link.as_raw_fd(), 0, 0, 0];
        // SAFETY: as above; it is four bytes that count.
        done(unsafe { libc::syscall(libc::SYS_bpf, BPF_LINK_DETACH, attr.as_ptr(), 4) })?;
        found = true;
    }
    if found { Ok(()) } else { Err(invalid()) }
}

/// `as-another-first EFFECT ARG...`: as the first process of a namespace, with a
/// `/proc` that speaks of nobody else.
pub(crate) fn as_another_first(args: &Args) -> io::Result<()> {
    // SAFETY: takes a number.
    done(unsafe { libc::unshare(libc::CLONE_NEWPID) })?;
    own_mounts()?;
    let effect = || {
        let kind = c"proc".as_ptr();
        // SAFETY: the names are static.
        done(unsafe { libc::mount(kind, c"/proc".as_ptr(), kind, 0, null()) })?;
        crate::cause(args.text(0)?, &args.from(1))
    };
    process::wait(process::in_child(effect)?)
}

/// `each-denied EFFECT ARG... , EFFECT ARG...`: every one is to fail with
/// `EPERM`; the first that does not is the result.
pub(crate) fn each_denied(args: &Args) -> io::Result<()> {
    for words in args.split(",") {
        let effect = words.text(0)?;
        match crate::cause(effect, &words.from(1)) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{effect}: {error}"))),
            Ok(()) => return Err(io::Error::other(format!("{effect} happened"))),
        }
    }
    Ok(())
}
