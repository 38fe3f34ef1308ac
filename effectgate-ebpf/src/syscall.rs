//! The `tracepoint` backend's file effects, at the return of system calls.
//!
//! After an open the file object is read from the descriptor table and judged
//! like any other. What leaves no descriptor is known only by its arguments,
//! which the process could have changed in the meantime: such objects say
//! `ARGUMENT`.

use core::mem::{offset_of, size_of};

use aya_ebpf::{
    bindings::pt_regs,
    helpers::{bpf_probe_read_kernel, bpf_probe_read_user, generated::bpf_probe_read_user_str},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use effectgate_common::{
    maps::{REGISTRAR_JOB, Task, class, task},
    wire::{FileBody, GuardBody, PATH_MAX, decision, kind, op},
};

use crate::{
    emit::{self, Record},
    ioctl, judge,
    kernel::{
        OFF_FDTABLE_FD, OFF_FDTABLE_MAX, OFF_FILES_FDT, OFF_FS_PWD_DENTRY, OFF_FS_PWD_MNT,
        OFF_FS_ROOT_DENTRY, OFF_FS_ROOT_MNT, OFF_TASK_FILES, OFF_TASK_FS, OFF_TASK_STATUS, Ptr,
        follow, read,
    },
    object::{self, Name, Path, Place},
    open, registrar, scope, socket,
    verifier::veiled,
};

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
mod nr {
    pub const OPEN: u64 = 2;
    pub const IOCTL: u64 = 16;
    pub const SOCKET: u64 = 41;
    pub const BIND: u64 = 49;
    pub const FCNTL: u64 = 72;
    pub const TRUNCATE: u64 = 76;
    pub const FTRUNCATE: u64 = 77;
    pub const RENAME: u64 = 82;
    pub const MKDIR: u64 = 83;
    pub const RMDIR: u64 = 84;
    pub const CREAT: u64 = 85;
    pub const LINK: u64 = 86;
    pub const UNLINK: u64 = 87;
    pub const SYMLINK: u64 = 88;
    pub const CHMOD: u64 = 90;
    pub const FCHMOD: u64 = 91;
    pub const CHOWN: u64 = 92;
    pub const FCHOWN: u64 = 93;
    pub const LCHOWN: u64 = 94;
    pub const UTIME: u64 = 132;
    pub const MKNOD: u64 = 133;
    pub const PIVOT_ROOT: u64 = 155;
    pub const CHROOT: u64 = 161;
    pub const MOUNT: u64 = 165;
    pub const UMOUNT2: u64 = 166;
    pub const SETXATTR: u64 = 188;
    pub const LSETXATTR: u64 = 189;
    pub const FSETXATTR: u64 = 190;
    pub const REMOVEXATTR: u64 = 197;
    pub const LREMOVEXATTR: u64 = 198;
    pub const FREMOVEXATTR: u64 = 199;
    pub const UTIMES: u64 = 235;
    pub const MQ_OPEN: u64 = 240;
    pub const MQ_UNLINK: u64 = 241;
    pub const OPENAT: u64 = 257;
    pub const MKDIRAT: u64 = 258;
    pub const MKNODAT: u64 = 259;
    pub const FCHOWNAT: u64 = 260;
    pub const FUTIMESAT: u64 = 261;
    pub const UNLINKAT: u64 = 263;
    pub const RENAMEAT: u64 = 264;
    pub const LINKAT: u64 = 265;
    pub const SYMLINKAT: u64 = 266;
    pub const FCHMODAT: u64 = 268;
    pub const UNSHARE: u64 = 272;
    pub const UTIMENSAT: u64 = 280;
    pub const OPEN_BY_HANDLE_AT: u64 = 304;
    pub const SETNS: u64 = 308;
    pub const RENAMEAT2: u64 = 316;
    pub const IO_URING_SETUP: u64 = 425;
    pub const IO_URING_ENTER: u64 = 426;
    pub const MOVE_MOUNT: u64 = 429;
    pub const OPENAT2: u64 = 437;
    pub const FCHMODAT2: u64 = 452;
    pub const SETXATTRAT: u64 = 463;
    pub const REMOVEXATTRAT: u64 = 466;
    pub const FILE_SETATTR: u64 = 469;
}

pub const AT_FDCWD: i32 = -100;
/// `include/uapi/linux/sched.h`
pub const CLONE_NEWNS: u64 = 0x2_0000;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AF_UNIX: u16 = 1;
const AT_REMOVEDIR: u64 = 0x200;
/// `thread_info::status` while in a 32-bit system call (`asm/thread_info.h`).
pub const TS_COMPAT: u32 = 2;
/// Marks the numbers of the x32 ABI.
pub const X32: u32 = 0x4000_0000;

/// `sys_exit(regs, ret)`
#[btf_tracepoint(function = "sys_exit")]
pub fn syscall_exit(ctx: BtfTracePointContext) -> i32 {
    let ret: i64 = ctx.arg(1);
    // What failed had no effect.
    if ret < 0 {
        return 0;
    }
    let Some(label) = scope::label(scope::tid()) else { return 0 };
    let regs: *const pt_regs = ctx.arg(0);
    // SAFETY: the tracepoint's first argument; the verifier knows its type.
    let call = unsafe {
        Call {
            nr: (*regs).orig_rax,
            ret,
            args: [(*regs).rdi, (*regs).rsi, (*regs).rdx, (*regs).r10, (*regs).r8],
            task: scope::task(),
            job: label.job,
        }
    };
    if foreign(&call, label) || uses_ring(&call, label) {
        return 0;
    }
    returned(&call);
    0
}

/// A system call that returned without an error.
struct Call {
    nr: u64,
    ret: i64,
    args: [u64; 5],
    task: Ptr,
    job: u64,
}

/// A call through another ABI has other numbers; it is reported once a thread.
#[inline(always)]
fn foreign(call: &Call, label: Task) -> bool {
    let compat = read::<u32>(call.task, &OFF_TASK_STATUS).unwrap_or(0) & TS_COMPAT != 0;
    // A return from a signal handler has the number -1.
    let x32 = call.nr & u64::from(X32) != 0 && (call.nr as i64) >= 0;
    if !compat && !x32 {
        return false;
    }
    if first(label, task::COMPAT_REPORTED) {
        guard(call.job, op::COMPAT_SYSCALL, call.nr as u32);
    }
    true
}

/// What an io_uring is told to do passes no system call, wherever the job has it
/// from; that there is one is reported once a thread.
#[inline(always)]
fn uses_ring(call: &Call, label: Task) -> bool {
    let uses = matches!(call.nr, nr::IO_URING_SETUP | nr::IO_URING_ENTER);
    if uses && call.job != REGISTRAR_JOB && first(label, task::RING_REPORTED) {
        guard(call.job, op::IO_URING, 0);
    }
    uses
}

/// Whether the thread did not have this flag, which it has now.
#[inline(always)]
fn first(label: Task, flag: u64) -> bool {
    let seen = Task { job: label.job, flags: label.flags | flag };
    label.flags & flag == 0 && scope::TASKS.insert(scope::tid(), seen, 0).is_ok()
}

#[inline(always)]
pub fn guard(job: u64, op: u16, value: u32) {
    let body = size_of::<GuardBody>();
    if let Some(record) = Record::begin(job, class::GUARD, kind::GUARD, op, body) {
        record.put(0, GuardBody { value, ..GuardBody::default() });
        record.submit(decision::NONE);
    }
}

/// How the arguments of a system call name what it changed.
#[derive(Clone, Copy)]
struct Named {
    how: u64,
    /// A descriptor: of the file itself or of a directory.
    fd: u64,
    /// A string that starts from the directory.
    name: u64,
    max: u64,
}

/// Values of [`Named::how`].
mod how {
    pub const NOTHING: u64 = 0;
    pub const FILE: u64 = 1;
    pub const STRING: u64 = 2;
}

impl Named {
    const NOTHING: Named = Named { how: how::NOTHING, fd: 0, name: 0, max: 0 };

    #[inline(always)]
    fn file(fd: u64) -> Named {
        Named { how: how::FILE, fd, ..Named::NOTHING }
    }

    #[inline(always)]
    fn at(directory: u64, name: u64) -> Named {
        Named { how: how::STRING, fd: directory, name, max: PATH_MAX as u64 }
    }

    #[inline(always)]
    fn veiled(self) -> Named {
        Named {
            how: veiled(self.how),
            fd: veiled(self.fd),
            name: veiled(self.name),
            max: veiled(self.max),
        }
    }
}

/// Decides first and acts once: the verifier follows every call of the walks,
/// so there must be few.
#[inline(always)]
fn returned(call: &Call) {
    const NOTHING: Named = Named::NOTHING;
    let (file, at) = (Named::file, Named::at);
    let [a, b, c, d, e] = call.args;
    let cwd = u64::from(AT_FDCWD as u32);
    let mut flags = 0;
    let (op, object, other) = match call.nr {
        nr::FCNTL if call.job == REGISTRAR_JOB => {
            if let Some(file) = descriptor(call.task, a) {
                registrar::answer(file, c);
            }
            return;
        }
        _ if call.job == REGISTRAR_JOB => return,
        nr::OPEN | nr::CREAT | nr::MQ_OPEN | nr::OPENAT | nr::OPENAT2 | nr::OPEN_BY_HANDLE_AT => {
            let flags = match call.nr {
                nr::OPEN | nr::MQ_OPEN => b,
                nr::OPENAT | nr::OPEN_BY_HANDLE_AT => c,
                // `struct open_how` begins with them. What another thread took
                // away meanwhile may have asked for anything.
                // SAFETY: the helper checks the address.
                nr::OPENAT2 => unsafe { bpf_probe_read_user(c as *const u64) }
                    .unwrap_or(u64::from(open::O_TRUNC)),
                _ => 0,
            };
            match descriptor(call.task, call.ret as u64) {
                Some(file) => {
                    open::opened(file, call.job, flags as u32, false);
                }
                // Closed by another thread in the meantime.
                None => emit::lost(call.job, class::FILE),
            }
            return;
        }
        nr::FTRUNCATE => (op::TRUNCATE, file(a), NOTHING),
        nr::FCHMOD => (op::CHMOD, file(a), NOTHING),
        nr::FCHOWN => (op::CHOWN, file(a), NOTHING),
        nr::TRUNCATE => (op::TRUNCATE, at(cwd, a), NOTHING),
        nr::CHMOD => (op::CHMOD, at(cwd, a), NOTHING),
        nr::FCHMODAT => (op::CHMOD, at(a, b), NOTHING),
        nr::FCHMODAT2 => {
            flags = d & AT_SYMLINK_NOFOLLOW;
            (op::CHMOD, at(a, b), NOTHING)
        }
        nr::CHOWN => (op::CHOWN, at(cwd, a), NOTHING),
        nr::LCHOWN => {
            flags = AT_SYMLINK_NOFOLLOW;
            (op::CHOWN, at(cwd, a), NOTHING)
        }
        nr::FCHOWNAT => {
            flags = e & AT_SYMLINK_NOFOLLOW;
            (op::CHOWN, at(a, b), NOTHING)
        }
        nr::UTIME | nr::UTIMES => (op::UTIMES, at(cwd, a), NOTHING),
        // Without a name it is the descriptor's own file.
        nr::FUTIMESAT | nr::UTIMENSAT if b == 0 => (op::UTIMES, file(a), NOTHING),
        nr::FUTIMESAT => (op::UTIMES, at(a, b), NOTHING),
        nr::UTIMENSAT => {
            flags = d & AT_SYMLINK_NOFOLLOW;
            (op::UTIMES, at(a, b), NOTHING)
        }
        nr::SETXATTR | nr::REMOVEXATTR => (op::SETXATTR, at(cwd, a), NOTHING),
        nr::LSETXATTR | nr::LREMOVEXATTR => {
            flags = AT_SYMLINK_NOFOLLOW;
            (op::SETXATTR, at(cwd, a), NOTHING)
        }
        nr::FSETXATTR | nr::FREMOVEXATTR => (op::SETXATTR, file(a), NOTHING),
        nr::SETXATTRAT | nr::REMOVEXATTRAT => {
            flags = c & AT_SYMLINK_NOFOLLOW;
            (op::SETXATTR, at(a, b), NOTHING)
        }
        nr::FILE_SETATTR => {
            flags = e & AT_SYMLINK_NOFOLLOW;
            (op::IOCTL, at(a, b), NOTHING)
        }
        nr::IOCTL if ioctl::sets_flags(b as u32) => (op::IOCTL, file(a), NOTHING),
        nr::MKNOD => (op::CREATE, at(cwd, a), NOTHING),
        nr::MKNODAT => (op::CREATE, at(a, b), NOTHING),
        nr::MKDIR => (op::MKDIR, at(cwd, a), NOTHING),
        nr::MKDIRAT => (op::MKDIR, at(a, b), NOTHING),
        nr::RMDIR => (op::RMDIR, at(cwd, a), NOTHING),
        nr::UNLINK => (op::UNLINK, at(cwd, a), NOTHING),
        nr::UNLINKAT if c & AT_REMOVEDIR != 0 => (op::RMDIR, at(a, b), NOTHING),
        nr::UNLINKAT => (op::UNLINK, at(a, b), NOTHING),
        // Where such names are is not known here.
        nr::MQ_UNLINK => (op::UNLINK, file(NO_DESCRIPTOR), NOTHING),
        // With what the link says, which later names may lead through.
        nr::SYMLINK => (op::SYMLINK, at(cwd, b), at(cwd, a)),
        nr::SYMLINKAT => (op::SYMLINK, at(b, c), at(cwd, a)),
        nr::RENAME => (op::RENAME, at(cwd, a), at(cwd, b)),
        nr::RENAMEAT => (op::RENAME, at(a, b), at(c, d)),
        nr::RENAMEAT2 => {
            flags = e;
            (op::RENAME, at(a, b), at(c, d))
        }
        nr::LINK => (op::LINK, at(cwd, a), at(cwd, b)),
        nr::LINKAT => {
            flags = e & AT_SYMLINK_FOLLOW;
            (op::LINK, at(a, b), at(c, d))
        }
        nr::BIND => match bound_path(cwd, b, c) {
            Some(path) => (op::CREATE, path, NOTHING),
            None => return,
        },
        nr::SOCKET => {
            socket::made(call.job, a as u32, b as u32, c as u32, false);
            return;
        }
        nr::UNSHARE if a & CLONE_NEWNS == 0 => return,
        nr::UNSHARE
        | nr::SETNS
        | nr::CHROOT
        | nr::PIVOT_ROOT
        | nr::MOUNT
        | nr::UMOUNT2
        | nr::MOVE_MOUNT => {
            let value = match call.nr {
                nr::MOUNT | nr::UMOUNT2 | nr::MOVE_MOUNT => 1,
                _ => 0,
            };
            return guard(call.job, op::VIEW, veiled(value) as u32);
        }
        _ => return,
    };
    let op = veiled(u64::from(op)) as u16;
    let flags = veiled(flags) as u32;
    let Some(record) = object::begin(call.job, op) else { return };
    record.put(offset_of!(FileBody, f_flags), flags);
    let one = describe(call.job, op, record, Place::OBJECT, object.veiled());
    let two = describe(call.job, op, record, Place::OTHER, other.veiled());
    let finding = judge::worse(one, two);
    record.submit(judge::settle(call.job, finding, false));
}

/// Out of line: the verifier is to meet it twice, not once a system call. It
/// is not handed the call, which would then have to lie in memory: up to 6.12,
/// 512 bytes of stack are all that a program and what it calls have together.
///
/// Returns what the object's own finding is; what only a name speaks of is not
/// judged here.
#[inline(never)]
fn describe(job: u64, op: u16, record: Record, place: Place, named: Named) -> u32 {
    let task = scope::task();
    let (path, name) = match named.how {
        how::NOTHING => {
            object::none(record, place);
            return decision::WITHIN;
        }
        how::FILE => (descriptor(task, named.fd).and_then(open::path_of), object::NO_NAME),
        _ => {
            let name = Name { at: named.name as Ptr, max: named.max as u32 };
            match veiled(own_descriptor(name.at)) {
                NO_DESCRIPTOR => (base(task, named.fd, name), name),
                fd => (descriptor(task, fd).and_then(open::path_of), object::NO_NAME),
            }
        }
    };
    match path {
        None => {
            object::unknown(record, place);
            decision::NONE
        }
        Some(path) => {
            let found = judge::file(job, path, op, judge::EXISTS);
            object::describe(record, place, path, name, found);
            if name.max == 0 { found.finding } else { decision::NONE }
        }
    }
}

/// Where a string starts from.
#[inline(always)]
pub fn base(task: Ptr, directory: u64, name: Name) -> Option<Path> {
    // SAFETY: the helper checks the address; a string that cannot be read is
    // found out when all of it is read.
    let first = unsafe { bpf_probe_read_user(name.at) }.unwrap_or(0);
    if first != b'/' && directory as u32 as i32 != AT_FDCWD {
        return descriptor(task, u64::from(directory as u32)).and_then(open::path_of);
    }
    let fs = follow(task, &OFF_TASK_FS)?;
    if first == b'/' {
        Some(Path { mnt: follow(fs, &OFF_FS_ROOT_MNT)?, dentry: follow(fs, &OFF_FS_ROOT_DENTRY)? })
    } else {
        Some(Path { mnt: follow(fs, &OFF_FS_PWD_MNT)?, dentry: follow(fs, &OFF_FS_PWD_DENTRY)? })
    }
}

/// The path of a Unix socket's address: binding it makes a new file. One
/// without a name, or with an abstract one, is no file.
#[inline(always)]
fn bound_path(directory: u64, address: u64, len: u64) -> Option<Named> {
    let at = address as *const u16;
    // SAFETY: the helper checks the address.
    let family = unsafe { bpf_probe_read_user(at) }.unwrap_or(0);
    let path = at.wrapping_add(1).cast::<u8>();
    // SAFETY: as above.
    let first = unsafe { bpf_probe_read_user(path) }.unwrap_or(0);
    (family == AF_UNIX && len > 2 && first != 0)
        .then(|| Named { max: len - 2, ..Named::at(directory, path as u64) })
}

/// What [`own_descriptor`] answers to other names.
const NO_DESCRIPTOR: u64 = u64::MAX;

/// The descriptor that a name `/proc/self/fd/N` speaks of: how a file without
/// a name (`O_TMPFILE`) gets one, and how libraries change the mode of a file
/// without following links. No call succeeds on such a name itself.
///
/// Out of line, so that its text is not on the stack under the walks.
#[inline(never)]
fn own_descriptor(name: Ptr) -> u64 {
    const PREFIX: &[u8; 14] = b"/proc/self/fd/";
    let mut text = [0u8; 24];
    // SAFETY: the helper checks the address, and writes no more than there is.
    unsafe { bpf_probe_read_user_str(text.as_mut_ptr().cast(), 24, name.cast()) };
    let mut fd = 0u64;
    for (index, byte) in text.iter().enumerate() {
        if index < PREFIX.len() {
            if *byte != PREFIX[index] {
                return NO_DESCRIPTOR;
            }
        } else if *byte == 0 {
            return if index > PREFIX.len() { fd } else { NO_DESCRIPTOR };
        } else if byte.is_ascii_digit() {
            fd = fd * 10 + u64::from(*byte - b'0');
        } else {
            return NO_DESCRIPTOR;
        }
    }
    NO_DESCRIPTOR
}

/// The open file of descriptor `fd`.
#[inline(always)]
pub fn descriptor(task: Ptr, fd: u64) -> Option<Ptr> {
    let table = follow(task, &OFF_TASK_FILES).and_then(|files| follow(files, &OFF_FILES_FDT))?;
    if fd >= u64::from(read::<u32>(table, &OFF_FDTABLE_MAX)?) {
        return None;
    }
    let array = follow(table, &OFF_FDTABLE_FD)?;
    // SAFETY: the helper checks the address.
    let file = unsafe { bpf_probe_read_kernel(array.wrapping_add(fd as usize * 8).cast::<u64>()) };
    match file {
        Ok(0) | Err(_) => None,
        Ok(file) => Some(file as Ptr),
    }
}
