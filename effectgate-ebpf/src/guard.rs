//! What a job reaches for that is not its own: the machine and its settings,
//! what is mounted where, other processes, the observer.

use core::{
    mem::{offset_of, size_of},
    ptr::null,
};

use aya_ebpf::{
    helpers::{
        bpf_probe_read_user,
        generated::{bpf_get_current_task_btf, bpf_task_pt_regs},
    },
    programs::LsmContext,
};
use effectgate_common::{
    maps::{Seen, class, mode},
    wire::{GuardBody, decision, kind, op, reach},
};

use crate::{
    cgroup,
    emit::{self, Record},
    hook::{Hook, gates, hooks},
    judge,
    kernel::{
        OFF_CRED_GID, OFF_CRED_UID, OFF_FILE_PATH_DENTRY, OFF_FILE_PATH_MNT, OFF_NSPROXY_PID,
        OFF_NSPROXY_UTS, OFF_PATH_DENTRY, OFF_PATH_MNT, OFF_PIDNS_LEVEL, OFF_SB_ROOT,
        OFF_SIGNAL_LIVE, OFF_TASK_NSPROXY, OFF_TASK_PID, OFF_TASK_SIGNAL, OFF_TASK_STATUS,
        OFF_TASK_TGID, OFF_USERNS_LEVEL, OFF_UTS_NUMBER, OFF_VFSMOUNT_ROOT, Ptr, peek, peek_ptr,
    },
    object::{self, Path, Place},
    open, scope,
    syscall::{TS_COMPAT, X32},
};

/// What is reached for. What is only recorded is nobody's but the job's.
#[derive(Clone, Copy)]
pub struct Reach {
    /// One of `wire::reach`.
    pub what: u32,
    pub detail: u32,
    /// The other process.
    pub pid: u32,
    pub violates: bool,
    pub path: Path,
}

const NOWHERE: Path = Path { mnt: null(), dentry: null() };

impl Reach {
    #[inline(always)]
    pub fn out(what: u32, detail: u32) -> Reach {
        Reach { what, detail, pid: 0, violates: true, path: NOWHERE }
    }

    #[inline(always)]
    pub fn recorded(what: u32, detail: u32) -> Reach {
        Reach { violates: false, ..Reach::out(what, detail) }
    }

    #[inline(always)]
    fn at(what: u32, path: Path) -> Reach {
        Reach { path, ..Reach::out(what, 0) }
    }

    #[inline(always)]
    pub fn process(what: u32, detail: u32, task: Ptr) -> Reach {
        Reach { pid: peek(task, &OFF_TASK_TGID), ..Reach::out(what, detail) }
    }
}

/// Reports a reach; returns what a hook that `denies` is to answer.
#[inline(always)]
pub fn reached(job: u64, reach: Reach, denies: bool) -> i32 {
    let how = u64::from(reach.violates) << 32 | u64::from(denies) << 33;
    report(
        job,
        u64::from(reach.what) | how,
        u64::from(reach.detail) | u64::from(reach.pid) << 32,
        reach.path.mnt,
        reach.path.dentry,
    )
}

/// Out of line, and its arguments packed: five are all that a function can have.
#[inline(never)]
fn report(job: u64, how: u64, whom: u64, mnt: Ptr, dentry: Ptr) -> i32 {
    const BODY: usize = size_of::<GuardBody>();
    let (violates, denies) = (how >> 32 & 1 != 0, how >> 33 & 1 != 0);
    let finding = match () {
        () if !judge::judges(job) => decision::NONE,
        () if violates => decision::OUTSIDE,
        () => decision::WITHIN,
    };
    let decision = judge::settle(job, finding, denies);
    let repeats = decision == decision::WITHIN;
    let key = Seen {
        job,
        what: [how, whom],
        name: 0,
        program: open::program(),
        dev: 0,
        op: u32::from(op::REACHED),
    };
    if repeats && emit::seen(&key, class::GUARD) {
        return 0;
    }
    let sent = match Record::begin(job, class::GUARD, kind::GUARD, op::REACHED, BODY) {
        None => false,
        Some(record) => {
            record.put(0, GuardBody::default());
            record.put(offset_of!(GuardBody, value), how as u32);
            record.put(offset_of!(GuardBody, detail), whom as u32);
            record.put(offset_of!(GuardBody, pid), (whom >> 32) as u32);
            if !dentry.is_null() {
                let place = Place { at: offset_of!(GuardBody, file), body: BODY };
                let path = Path { mnt, dentry };
                object::describe(record, place, path, object::NO_NAME, judge::place(job, path));
            }
            record.submit(decision)
        }
    };
    if repeats && sent {
        emit::note(&key);
    }
    judge::answer(job, decision, sent, denies)
}

/// Whether a task is of the job, or there is nothing of it left to be reached.
#[inline(always)]
pub fn is_own(job: u64, task: Ptr) -> bool {
    if let Some(label) = scope::label(peek(task, &OFF_TASK_PID)) {
        return label.job == job;
    }
    // A thread that has ended has no label any more, but is still in its cgroup:
    // the first one of a process whose others live on is what is found by the
    // process's id.
    let living: u32 = peek(peek_ptr(task, &OFF_TASK_SIGNAL), &OFF_SIGNAL_LIVE);
    living == 0 || cgroup::of(task).map_or(0, cgroup::job) == job
}

hooks! {
    "bpf" "security_bpf" bpf fexit_bpf given _ => bpf_used;
    "perf_event_open" "security_perf_event_open" perf_event_open fexit_perf_event_open given _ => perf_used;
    "sb_mount" "security_sb_mount" sb_mount fexit_sb_mount given 5 => mounted;
    "move_mount" "security_move_mount" move_mount fexit_move_mount given 2 => mount_moved;
    "sb_remount" "security_sb_remount" sb_remount fexit_sb_remount given 2 => remounted;
    "sb_kern_mount" "security_sb_kern_mount" sb_kern_mount fexit_sb_kern_mount given 1 => made;
    "sb_umount" "security_sb_umount" sb_umount fexit_sb_umount given 2 => unmounted;
    "sb_pivotroot" "security_sb_pivotroot" sb_pivotroot fexit_sb_pivotroot given 2 => pivoted;
    "kernel_read_file" "security_kernel_read_file" kernel_read_file fexit_kernel_read_file given 3 => file_loaded;
    "kernel_load_data" "security_kernel_load_data" kernel_load_data fexit_kernel_load_data given 2 => data_loaded;
    "ptrace_access_check" "security_ptrace_access_check" ptrace_access_check fexit_ptrace_access_check given 2 => attached;
    "ptrace_traceme" "security_ptrace_traceme" ptrace_traceme fexit_ptrace_traceme given 1 => offered;
    "task_kill" "security_task_kill" task_kill fexit_task_kill given 4 => signalled;
    "file_fcntl" "security_file_fcntl" file_fcntl fexit_file_fcntl given 3 => controlled;
    "capable" "security_capable" capable fexit_capable given 4 => capable_of;
    "settime" "security_settime64" settime fexit_settime given 2 => time_set;
    "syslog" "security_syslog" syslog fexit_syslog given 1 => log_used;
    "quotactl" "security_quotactl" quotactl fexit_quotactl given 4 => quotas_used;
    "key_permission" "security_key_permission" key_permission fexit_key_permission given 3 => key_used;
    "userns_create" "security_create_user_ns" userns_create fexit_userns_create given 1 => namespace_made;
    "task_fix_setuid" "security_task_fix_setuid" task_fix_setuid fexit_task_fix_setuid given 3 => user_changed;
    "task_fix_setgid" "security_task_fix_setgid" task_fix_setgid fexit_task_fix_setgid given 3 => group_changed;
}

/// A reach of the current task, if a job's.
#[inline(always)]
fn by_job<H: Hook>(reach: impl FnOnce() -> Reach) -> i32 {
    match scope::current_job() {
        Some(job) => reached(job, reach(), H::DENIES),
        None => 0,
    }
}

/// `bpf(cmd, attr, size)`, from 6.15 on also whether the kernel itself asks.
#[inline(always)]
fn bpf_used<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::BPF, ctx.arg(0)))
}

/// `perf_event_open(attr, type)`, from 6.16 on `(type)`.
#[inline(always)]
fn perf_used<H: Hook>(_: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::PERF, 0))
}

/// `sb_mount(dev_name, path, type, flags, data)`
#[inline(always)]
fn mounted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::MOUNT, place(ctx.arg(1))))
}

/// `move_mount(from_path, to_path)`
#[inline(always)]
fn mount_moved<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::MOUNT, place(ctx.arg(1))))
}

/// `sb_remount(sb, mnt_opts)`
#[inline(always)]
fn remounted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::MOUNT, root_of(ctx.arg(0))))
}

/// `sb_kern_mount(sb)`: a file system comes into being. `mount` has been asked
/// for already, and what the kernel mounts by itself, on the way of a path that
/// leads there, is not the job's doing: `fsconfig` is left.
#[inline(always)]
fn made<H: Hook>(ctx: &H) -> i32 {
    match scope::current_job() {
        Some(job) if call().number == nr::FSCONFIG => {
            reached(job, Reach::at(reach::MOUNT, root_of(ctx.arg(0))), H::DENIES)
        }
        _ => 0,
    }
}

/// `sb_umount(mnt, flags)`
#[inline(always)]
fn unmounted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| {
        let mnt: Ptr = ctx.arg(0);
        Reach::at(reach::UMOUNT, Path { mnt, dentry: peek_ptr(mnt, &OFF_VFSMOUNT_ROOT) })
    })
}

/// `sb_pivotroot(old_path, new_path)`
#[inline(always)]
fn pivoted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::PIVOT_ROOT, place(ctx.arg(1))))
}

/// `kernel_read_file(file, id, contents)`
#[inline(always)]
fn file_loaded<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| {
        let file: Ptr = ctx.arg(0);
        let path = Path {
            mnt: peek_ptr(file, &OFF_FILE_PATH_MNT),
            dentry: peek_ptr(file, &OFF_FILE_PATH_DENTRY),
        };
        Reach { detail: ctx.arg(1), ..Reach::at(reach::LOAD, path) }
    })
}

/// `kernel_load_data(id, contents)`
#[inline(always)]
fn data_loaded<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::LOAD, ctx.arg(0)))
}

/// `PTRACE_MODE_ATTACH` (`include/linux/ptrace.h`); the other mode only looks.
const ATTACH: u32 = 2;

/// `ptrace_access_check(child, mode)`: tracing, `/proc/PID/mem`,
/// `process_vm_readv`, `process_vm_writev`, `pidfd_getfd`; `process_madvise`, which
/// says that it only looks.
#[inline(always)]
fn attached<H: Hook>(ctx: &H) -> i32 {
    let mode: u32 = ctx.arg(1);
    if mode & ATTACH == 0 && call().number != nr::PROCESS_MADVISE {
        return 0;
    }
    to_process::<H>(reach::PTRACE, 0, ctx.arg(0))
}

/// `ptrace_traceme(parent)`
#[inline(always)]
fn offered<H: Hook>(ctx: &H) -> i32 {
    to_process::<H>(reach::PTRACE, 0, ctx.arg(0))
}

/// `task_kill(task, info, sig, cred)`: only signals that a process sends come
/// here (`check_kill_permission`, kernel/signal.c).
#[inline(always)]
fn signalled<H: Hook>(ctx: &H) -> i32 {
    let signal: u32 = ctx.arg(2);
    // Nothing is sent: whether there is such a process is asked.
    if signal == 0 {
        return 0;
    }
    to_process::<H>(reach::SIGNAL, signal, ctx.arg(0))
}

#[inline(always)]
fn to_process<H: Hook>(what: u32, detail: u32, task: Ptr) -> i32 {
    match scope::current_job() {
        Some(job) if !is_own(job, task) => {
            reached(job, Reach::process(what, detail, task), H::DENIES)
        }
        _ => 0,
    }
}

// include/uapi/asm-generic/fcntl.h, include/uapi/asm-generic/sockios.h
const F_SETOWN: u32 = 8;
const F_SETOWN_EX: u32 = 15;
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
/// The signal that an owner gets, unless another one is asked for.
pub const SIGIO: u32 = 29;

/// The process, or the leader of the group, that a file's signals are to go to by
/// this call of `fcntl` or `ioctl`, unless it is the job's own. Whoever can choose
/// the signal kills with it.
#[inline(always)]
pub fn owner(job: u64, command: u32, argument: u64) -> Option<u32> {
    // SAFETY: the helper checks the address.
    let word = |n| unsafe { bpf_probe_read_user((argument as *const i32).wrapping_add(n)) }.ok();
    let who = match command {
        F_SETOWN => argument as i32,
        // `struct f_owner_ex`: what kind of number, and the number.
        F_SETOWN_EX => word(1)?,
        FIOSETOWN | SIOCSPGRP => word(0)?,
        _ => return None,
    };
    let number = who.unsigned_abs();
    (number != 0 && !is_own_number(job, number)).then_some(number)
}

/// Whether a process id means one of the job's. It is one of the task's own
/// namespace: in another than the first only what was started there has one.
#[inline(always)]
pub fn is_own_number(job: u64, number: u32) -> bool {
    let pids = peek_ptr(peek_ptr(scope::task(), &OFF_TASK_NSPROXY), &OFF_NSPROXY_PID);
    scope::label(number).is_some_and(|label| label.job == job)
        || peek::<u32>(pids, &OFF_PIDNS_LEVEL) != 0
}

/// Whether a socket's signals are given to somebody by this `ioctl`.
#[inline(always)]
pub fn gives_signals(command: u32) -> bool {
    matches!(command, FIOSETOWN | SIOCSPGRP)
}

/// `file_fcntl(file, cmd, arg)`
#[inline(always)]
fn controlled<H: Hook>(ctx: &H) -> i32 {
    let command: u32 = ctx.arg(1);
    if !matches!(command, F_SETOWN | F_SETOWN_EX) {
        return 0;
    }
    match scope::current_job() {
        Some(job) => signals_given(job, command, ctx.arg(2), H::DENIES),
        None => 0,
    }
}

/// Reports whom a file's signals are given to, unless it is the job's own.
#[inline(always)]
pub fn signals_given(job: u64, command: u32, argument: u64, denies: bool) -> i32 {
    match owner(job, command, argument) {
        Some(pid) => reached(job, Reach { pid, ..Reach::out(reach::SIGNAL, SIGIO) }, denies),
        None => 0,
    }
}

/// `include/uapi/linux/sched.h`
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

gates! {
    "task_alloc" task_alloc given 2 => cloned;
}

/// `task_alloc(task, clone_flags)`. A child that found no room for its label would
/// be nobody's, and free: where a job is kept from things, it is kept from having
/// one. Which cgroup is meant is looked up later, and
/// the process could still change what it passed: where it is to be kept from
/// leaving, it is kept from choosing. Otherwise `task_newtask` says where it went.
#[inline(always)]
fn cloned(ctx: &LsmContext) -> i32 {
    let flags: u64 = ctx.arg(1);
    match scope::current_job() {
        Some(job) if judge::mode(job) == mode::ENFORCE => {
            if !scope::keep_place() {
                emit::lost(job, class::GUARD);
                return judge::answer(job, decision::DENIED, true, true);
            }
            if flags & CLONE_INTO_CGROUP == 0 {
                return 0;
            }
            reached(job, Reach::out(reach::CLONE_INTO_CGROUP, 0), true)
        }
        _ => 0,
    }
}

/// Privileges (`include/uapi/linux/capability.h`) that are good for nothing but
/// to change the whole machine: `CAP_NET_ADMIN` 12, `CAP_SYS_MODULE` 16,
/// `CAP_SYS_RAWIO` 17, `CAP_SYS_PACCT` 20, `CAP_SYS_BOOT` 22, `CAP_SYS_TIME` 25,
/// `CAP_SYS_TTY_CONFIG` 26, `CAP_AUDIT_CONTROL` 30, `CAP_MAC_ADMIN` 33. Owners, modes and devices are
/// seen where a file gets them; tracing, BPF and mounts have hooks of their own.
const NAMED: u64 =
    1 << 12 | 1 << 16 | 1 << 17 | 1 << 20 | 1 << 22 | 1 << 25 | 1 << 26 | 1 << 30 | 1 << 33;
/// Good for so much that the system call has to say for what.
const SYS_ADMIN: u32 = 21;
/// Where `ptrace_access_check` said no to who only looks, the kernel asks for this
/// from 7.x on, and then for `CAP_SYS_ADMIN` (`may_access_mm`, kernel/fork.c).
const PERFMON: u32 = 38;
/// `CAP_OPT_NOAUDIT` (`include/linux/security.h`): nothing fails if the answer
/// is no, such as how much may be shown.
const NOAUDIT: u32 = 2;

/// `capable(cred, ns, cap, opts)`
#[inline(always)]
fn capable_of<H: Hook>(ctx: &H) -> i32 {
    let capability: u32 = ctx.arg(2);
    let options: u32 = ctx.arg(3);
    let asked = (NAMED | 1 << SYS_ADMIN | 1 << PERFMON) >> (capability & 63) & 1 != 0;
    if !asked || options & NOAUDIT != 0 {
        return 0;
    }
    let Some(job) = scope::current_job() else { return 0 };
    let what = match capability {
        // A file system that is made may be of others' directories, in which it
        // makes its own: overlayfs does, long before it is mounted.
        SYS_ADMIN if call().number == nr::FSCONFIG => reach::MOUNT,
        // Over a user namespace of its own a job has every privilege.
        _ if peek::<u32>(ctx.arg(1), &OFF_USERNS_LEVEL) != 0 => 0,
        SYS_ADMIN | PERFMON => administered(),
        _ => reach::CAPABILITY,
    };
    match what {
        0 => 0,
        reach::CAPABILITY => reached(job, Reach::out(what, capability), H::DENIES),
        reach::MOUNT | reach::PTRACE => reached(job, Reach::out(what, 0), H::DENIES),
        _ => reached(job, Reach::out(what, call().number), H::DENIES),
    }
}

/// The system call that is being made.
#[derive(Clone, Copy)]
pub struct Call {
    pub number: u32,
    /// By the table of 32-bit calls.
    pub compat: bool,
}

/// Where `orig_ax` lies in `struct pt_regs`, in bytes (`asm/ptrace.h`).
static ORIG_AX: u64 = 15 * 8;

#[inline(always)]
pub fn call() -> Call {
    let regs = registers();
    let status: u32 = peek(scope::task(), &OFF_TASK_STATUS);
    Call { number: peek::<u32>(regs, &ORIG_AX) & !X32, compat: status & TS_COMPAT != 0 }
}

/// What the current task's system call began with.
#[inline(always)]
pub fn registers() -> Ptr {
    // SAFETY: the current task has such registers as long as it lives.
    unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) as Ptr }
}

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`; those from 424 on are the
/// same in every table.
mod nr {
    pub const MADVISE: u32 = 28;
    pub const SWAPON: u32 = 167;
    pub const SWAPOFF: u32 = 168;
    pub const SETHOSTNAME: u32 = 170;
    pub const SETDOMAINNAME: u32 = 171;
    pub const FSCONFIG: u32 = 431;
    pub const PROCESS_MADVISE: u32 = 440;
    pub const MOUNT_SETATTR: u32 = 442;
    pub const OPEN_TREE_ATTR: u32 = 467;
    pub mod compat {
        pub const SETHOSTNAME: u32 = 74;
        pub const SWAPON: u32 = 87;
        pub const SWAPOFF: u32 = 115;
        pub const SETDOMAINNAME: u32 = 121;
        pub const MADVISE: u32 = 219;
    }
}

/// What of the machine or of others is changed by calls that ask for nothing but
/// `CAP_SYS_ADMIN` or `CAP_PERFMON`; 0 for nothing.
#[inline(always)]
fn administered() -> u32 {
    let Call { number, compat } = call();
    if number == nr::PROCESS_MADVISE {
        return reach::PTRACE;
    }
    if number == nr::MOUNT_SETATTR || number == nr::OPEN_TREE_ATTR {
        return reach::MOUNT;
    }
    let (name, swap) = if compat {
        (
            matches!(number, nr::compat::SETHOSTNAME | nr::compat::SETDOMAINNAME),
            matches!(number, nr::compat::SWAPON | nr::compat::SWAPOFF),
        )
    } else {
        (
            matches!(number, nr::SETHOSTNAME | nr::SETDOMAINNAME),
            matches!(number, nr::SWAPON | nr::SWAPOFF),
        )
    };
    // To take a page of memory away from everybody.
    let memory = number == if compat { nr::compat::MADVISE } else { nr::MADVISE };
    if swap || memory || name && names_the_machine() { reach::MACHINE } else { 0 }
}

/// `PROC_UTS_INIT_INO` (`include/linux/proc_ns.h`).
const FIRST_UTS: u32 = 0xefff_fffe;

/// Whether the task's host name is the machine's, not that of a namespace.
#[inline(always)]
pub fn names_the_machine() -> bool {
    let namespaces = peek_ptr(scope::task(), &OFF_TASK_NSPROXY);
    peek::<u32>(peek_ptr(namespaces, &OFF_NSPROXY_UTS), &OFF_UTS_NUMBER) == FIRST_UTS
}

/// `settime(ts, tz)`
#[inline(always)]
fn time_set<H: Hook>(_: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::MACHINE, call().number))
}

/// `SYSLOG_ACTION_…` (`include/linux/syslog.h`) that change something: reading
/// what is then gone, clearing, and what goes to the console.
const LOG_CHANGES: u32 = 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;

#[inline(always)]
pub fn changes_log(action: u32) -> bool {
    action < 32 && LOG_CHANGES >> action & 1 != 0
}

/// `syslog(type)`
#[inline(always)]
fn log_used<H: Hook>(ctx: &H) -> i32 {
    if !changes_log(ctx.arg(0)) {
        return 0;
    }
    by_job::<H>(|| Reach::out(reach::MACHINE, call().number))
}

/// Commands of `quotactl` that only ask: `Q_GETFMT`, `Q_GETINFO`, `Q_GETQUOTA`,
/// `Q_GETNEXTQUOTA` (`include/uapi/linux/quota.h`, less `0x800000`) and those of
/// XFS (`include/uapi/linux/dqblk_xfs.h`, less `'X' << 8`).
const QUOTAS_ASKED: u32 = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 9;
const XFS_QUOTAS_ASKED: u32 = 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9;

#[inline(always)]
pub fn changes_quotas(command: u32) -> bool {
    let asked = match command & !0x1f {
        0x80_0000 => QUOTAS_ASKED,
        0x5800 => XFS_QUOTAS_ASKED,
        _ => 0,
    };
    asked >> (command & 0x1f) & 1 == 0
}

/// `quotactl(cmds, type, id, sb)`
#[inline(always)]
fn quotas_used<H: Hook>(ctx: &H) -> i32 {
    if !changes_quotas(ctx.arg(0)) {
        return 0;
    }
    by_job::<H>(|| Reach { path: root_of(ctx.arg(3)), ..Reach::out(reach::MACHINE, call().number) })
}

/// `key_permission(key_ref, cred, need_perm)`
#[inline(always)]
fn key_used<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::KEY, ctx.arg(2)))
}

/// `userns_create(cred)`
#[inline(always)]
fn namespace_made<H: Hook>(_: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::USER_NAMESPACE, 0))
}

/// `task_fix_setuid(new, old, flags)`
#[inline(always)]
fn user_changed<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::IDENTITY, peek(ctx.arg(0), &OFF_CRED_UID)))
}

/// `task_fix_setgid(new, old, flags)`
#[inline(always)]
fn group_changed<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::IDENTITY, peek(ctx.arg(0), &OFF_CRED_GID)))
}

#[inline(always)]
fn place(path: Ptr) -> Path {
    Path { mnt: peek_ptr(path, &OFF_PATH_MNT), dentry: peek_ptr(path, &OFF_PATH_DENTRY) }
}

/// The top of a file system, wherever it is mounted.
#[inline(always)]
fn root_of(sb: Ptr) -> Path {
    Path { mnt: null(), dentry: peek_ptr(sb, &OFF_SB_ROOT) }
}
