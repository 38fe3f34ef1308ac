//! What a job reaches for, as the `tracepoint` backend sees it: at the return of
//! system calls, and where signals are sent.

use aya_ebpf::{
    bindings::pt_regs, helpers::bpf_probe_read_user, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use effectgate_common::wire::reach;

use crate::{
    arrange::HOLD_UP,
    guard::{
        Reach, SIGIO, call, changes_log, changes_quotas, gives_signals, is_own, is_own_number,
        names_the_machine, owner, reached,
    },
    ioctl::reaches_terminal,
    ipc,
    kernel::{
        OFF_TASK_PARENT, OFF_TASK_PTRACE_ENTRY, OFF_TASK_PTRACED, Ptr, offset, peek, peek_ptr,
    },
    process, scope,
    verifier::veiled,
};

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
mod nr {
    pub const IOCTL: u64 = 16;
    pub const MADVISE: u64 = 28;
    pub const CLONE: u64 = 56;
    pub const FCNTL: u64 = 72;
    pub const PTRACE: u64 = 101;
    pub const SYSLOG: u64 = 103;
    pub const SETUID: u64 = 105;
    pub const SETGID: u64 = 106;
    pub const SETREUID: u64 = 113;
    pub const SETREGID: u64 = 114;
    pub const SETRESUID: u64 = 117;
    pub const SETRESGID: u64 = 119;
    pub const RT_SIGQUEUEINFO: u32 = 129;
    pub const VHANGUP: u64 = 153;
    pub const PIVOT_ROOT: u64 = 155;
    pub const ADJTIMEX: u64 = 159;
    pub const ACCT: u64 = 163;
    pub const SETTIMEOFDAY: u64 = 164;
    pub const MOUNT: u64 = 165;
    pub const UMOUNT2: u64 = 166;
    pub const SWAPON: u64 = 167;
    pub const SWAPOFF: u64 = 168;
    pub const REBOOT: u64 = 169;
    pub const SETHOSTNAME: u64 = 170;
    pub const SETDOMAINNAME: u64 = 171;
    pub const IOPL: u64 = 172;
    pub const IOPERM: u64 = 173;
    pub const INIT_MODULE: u64 = 175;
    pub const DELETE_MODULE: u64 = 176;
    pub const QUOTACTL: u64 = 179;
    pub const CLOCK_SETTIME: u64 = 227;
    pub const KEXEC_LOAD: u64 = 246;
    pub const ADD_KEY: u64 = 248;
    pub const REQUEST_KEY: u64 = 249;
    pub const KEYCTL: u64 = 250;
    pub const UNSHARE: u64 = 272;
    pub const RT_TGSIGQUEUEINFO: u32 = 297;
    pub const PERF_EVENT_OPEN: u64 = 298;
    pub const FANOTIFY_MARK: u64 = 301;
    pub const CLOCK_ADJTIME: u64 = 305;
    pub const PROCESS_VM_READV: u64 = 310;
    pub const PROCESS_VM_WRITEV: u64 = 311;
    pub const FINIT_MODULE: u64 = 313;
    pub const KEXEC_FILE_LOAD: u64 = 320;
    pub const BPF: u64 = 321;
    pub const PIDFD_SEND_SIGNAL: u32 = 424;
    pub const MOVE_MOUNT: u64 = 429;
    pub const FSCONFIG: u64 = 431;
    pub const CLONE3: u64 = 435;
    pub const PIDFD_GETFD: u64 = 438;
    pub const PROCESS_MADVISE: u64 = 440;
    pub const MOUNT_SETATTR: u64 = 442;
    pub const QUOTACTL_FD: u64 = 443;
    pub const OPEN_TREE_ATTR: u64 = 467;
}

/// Capabilities that the named calls need (`include/uapi/linux/capability.h`).
mod cap {
    pub const SYS_RAWIO: u32 = 17;
    pub const SYS_PACCT: u32 = 20;
    pub const SYS_BOOT: u32 = 22;
    pub const SYS_MODULE: u32 = 16;
    pub const SYS_TTY_CONFIG: u32 = 26;
}

// include/uapi/linux/ptrace.h, mount.h, sched.h
const PTRACE_TRACEME: u64 = 0;
const PTRACE_ATTACH: u64 = 16;
const PTRACE_SEIZE: u64 = 0x4206;
const FSCONFIG_CMD_CREATE: u64 = 6;
const FSCONFIG_CMD_RECONFIGURE: u64 = 7;
const FSCONFIG_CMD_CREATE_EXCL: u64 = 8;
// include/uapi/asm-generic/mman-common.h, fanotify.h
const MADV_HWPOISON: u64 = 100;
const MADV_SOFT_OFFLINE: u64 = 101;
const FAN_MARK_ADD: u64 = 1;
const CLONE_NEWUSER: u64 = 0x1000_0000;
/// `enum kernel_load_data_id` (`include/linux/kernel_read_file.h`).
const LOADING_MODULE: u32 = 2;
const LOADING_KEXEC_IMAGE: u32 = 3;

/// `sys_exit(regs, ret)`. A program beside `syscall_exit`: the verifier of old
/// kernels would go through the sum of what both can do for each call.
#[btf_tracepoint(function = "sys_exit")]
pub fn syscall_guard(ctx: BtfTracePointContext) -> i32 {
    let ret: i64 = ctx.arg(1);
    let Some(job) = scope::current_job() else { return 0 };
    // The other table's numbers are reported once (`COMPAT_SYSCALL`).
    if call().compat {
        return 0;
    }
    let regs: *const pt_regs = ctx.arg(0);
    // SAFETY: the tracepoint's first argument; the verifier knows its type.
    let (number, args, fourth) =
        unsafe { ((*regs).orig_rax, [(*regs).rdi, (*regs).rsi, (*regs).rdx], (*regs).r10) };
    // What failed had no effect, but to have a key made that is then not given.
    if ret < 0 && number != nr::REQUEST_KEY {
        return 0;
    }
    let Some((what, detail)) = reach_of(number, args, fourth, ret) else { return 0 };
    let (what, detail) = (veiled(u64::from(what)) as u32, veiled(u64::from(detail)) as u32);
    let reach = match what {
        reach::PTRACE => match other_process(job, number, args) {
            Some(pid) => Reach { pid, ..Reach::out(what, 0) },
            None => return 0,
        },
        reach::SIGNAL => match owner(job, args[1] as u32, args[2]) {
            Some(pid) => Reach { pid, ..Reach::out(what, detail) },
            None => return 0,
        },
        reach::PROCESS => match process::other(job, number, args) {
            Some(pid) => Reach { pid, ..Reach::out(what, detail) },
            None => return 0,
        },
        reach::IPC => ipc::reach(job, number, args, ret),
        reach::USER_NAMESPACE | reach::KEY | reach::IDENTITY => Reach::recorded(what, detail),
        _ => Reach::out(what, detail),
    };
    reached(job, reach, false);
    0
}

/// What a call that returned without an error reached for, and the detail.
#[inline(always)]
fn reach_of(number: u64, [a, b, c]: [u64; 3], fourth: u64, ret: i64) -> Option<(u32, u32)> {
    let machine = (reach::MACHINE, number as u32);
    Some(match number {
        nr::BPF => (reach::BPF, a as u32),
        nr::FCNTL => (reach::SIGNAL, SIGIO),
        nr::IOCTL if gives_signals(b as u32) => (reach::SIGNAL, SIGIO),
        nr::IOCTL if reaches_terminal(b as u32) => (reach::TERMINAL, b as u32),
        nr::FANOTIFY_MARK if b & FAN_MARK_ADD != 0 && c & HOLD_UP != 0 => (reach::HOLD_UP, 0),
        nr::MADVISE if c == MADV_HWPOISON || c == MADV_SOFT_OFFLINE => machine,
        nr::VHANGUP => (reach::CAPABILITY, cap::SYS_TTY_CONFIG),
        nr::PERF_EVENT_OPEN => (reach::PERF, 0),
        nr::FSCONFIG if !changes_mounts(b) => return None,
        nr::MOUNT | nr::MOVE_MOUNT | nr::FSCONFIG | nr::MOUNT_SETATTR => (reach::MOUNT, 0),
        // Without attributes it only looks for a mount.
        nr::OPEN_TREE_ATTR if fourth == 0 => return None,
        nr::OPEN_TREE_ATTR => (reach::MOUNT, 0),
        nr::UMOUNT2 => (reach::UMOUNT, 0),
        nr::PIVOT_ROOT => (reach::PIVOT_ROOT, 0),
        nr::INIT_MODULE | nr::FINIT_MODULE => (reach::LOAD, LOADING_MODULE),
        nr::KEXEC_LOAD | nr::KEXEC_FILE_LOAD => (reach::LOAD, LOADING_KEXEC_IMAGE),
        nr::DELETE_MODULE => (reach::CAPABILITY, cap::SYS_MODULE),
        nr::REBOOT => (reach::CAPABILITY, cap::SYS_BOOT),
        nr::ACCT => (reach::CAPABILITY, cap::SYS_PACCT),
        nr::IOPL | nr::IOPERM => (reach::CAPABILITY, cap::SYS_RAWIO),
        nr::PTRACE if !matches!(a, PTRACE_TRACEME | PTRACE_ATTACH | PTRACE_SEIZE) => return None,
        nr::PTRACE | nr::PROCESS_VM_READV | nr::PROCESS_VM_WRITEV => (reach::PTRACE, 0),
        nr::PIDFD_GETFD | nr::PROCESS_MADVISE => (reach::PTRACE, 0),
        nr::SETTIMEOFDAY | nr::CLOCK_SETTIME | nr::SWAPON | nr::SWAPOFF => machine,
        // Both begin with what is to be changed; 0 asks only.
        nr::ADJTIMEX if asks(a) => return None,
        nr::CLOCK_ADJTIME if asks(b) => return None,
        nr::ADJTIMEX | nr::CLOCK_ADJTIME => machine,
        nr::SETHOSTNAME | nr::SETDOMAINNAME if !names_the_machine() => return None,
        nr::SETHOSTNAME | nr::SETDOMAINNAME => machine,
        nr::SYSLOG if !changes_log(a as u32) => return None,
        nr::SYSLOG => machine,
        nr::QUOTACTL if !changes_quotas(a as u32 >> 8) => return None,
        nr::QUOTACTL_FD if !changes_quotas(b as u32 >> 8) => return None,
        nr::QUOTACTL | nr::QUOTACTL_FD => machine,
        // With something to be told to the kernel's helper: where the key is found,
        // nobody is, and which it was is not known here.
        nr::REQUEST_KEY if c != 0 => machine,
        nr::REQUEST_KEY if ret < 0 => return None,
        nr::ADD_KEY | nr::REQUEST_KEY | nr::KEYCTL => (reach::KEY, 0),
        ipc::nr::SHMGET..=ipc::nr::SHMCTL
        | ipc::nr::SEMGET
        | ipc::nr::SEMOP
        | ipc::nr::SEMCTL
        | ipc::nr::MSGGET..=ipc::nr::MSGCTL
        | ipc::nr::SEMTIMEDOP => (reach::IPC, 0),
        // Without new ones it is told the limits.
        process::nr::PRLIMIT64 if c == 0 => return None,
        process::nr::SETPRIORITY
        | process::nr::SCHED_SETPARAM
        | process::nr::SCHED_SETSCHEDULER
        | process::nr::SCHED_SETAFFINITY
        | process::nr::IOPRIO_SET
        | process::nr::MIGRATE_PAGES
        | process::nr::MOVE_PAGES
        | process::nr::PRLIMIT64
        | process::nr::SCHED_SETATTR => (reach::PROCESS, number as u32),
        nr::SETUID | nr::SETGID => (reach::IDENTITY, a as u32),
        nr::SETREUID | nr::SETREGID | nr::SETRESUID | nr::SETRESGID => (reach::IDENTITY, b as u32),
        nr::CLONE3 if first_word(a) & CLONE_NEWUSER == 0 => return None,
        nr::CLONE | nr::UNSHARE if a & CLONE_NEWUSER == 0 => return None,
        // The child returns from the call as well.
        nr::CLONE | nr::CLONE3 if ret == 0 => return None,
        nr::CLONE | nr::CLONE3 | nr::UNSHARE => (reach::USER_NAMESPACE, 0),
        _ => return None,
    })
}

/// Whether a command of `fsconfig` makes or changes a file system.
#[inline(always)]
fn changes_mounts(command: u64) -> bool {
    matches!(command, FSCONFIG_CMD_CREATE | FSCONFIG_CMD_RECONFIGURE | FSCONFIG_CMD_CREATE_EXCL)
}

/// Whether a `struct timex` changes nothing.
#[inline(always)]
fn asks(timex: u64) -> bool {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(timex as *const u32) }.unwrap_or(1) == 0
}

/// The process that was reached, unless it is the job's own.
#[inline(always)]
fn other_process(job: u64, number: u64, [a, _, _]: [u64; 3]) -> Option<u32> {
    let task = scope::task();
    let other = match number {
        nr::PROCESS_VM_READV | nr::PROCESS_VM_WRITEV => {
            return (!is_own_number(job, a as u32)).then_some(a as u32);
        }
        nr::PIDFD_GETFD | nr::PROCESS_MADVISE => process::of_descriptor(a)?,
        _ if a == PTRACE_TRACEME => peek_ptr(task, &OFF_TASK_PARENT),
        // The one that was attached last is the first.
        _ => peek_ptr(task, &OFF_TASK_PTRACED).wrapping_sub(offset(&OFF_TASK_PTRACE_ENTRY)),
    };
    (!is_own(job, other)).then(|| Reach::process(reach::PTRACE, 0, other).pid)
}

/// Codes of signals that a process sends (`include/uapi/asm-generic/siginfo.h`).
mod code {
    pub const USER: i32 = 0;
    pub const QUEUE: i32 = -1;
    pub const TKILL: i32 = -6;
}

/// Where `si_code` lies in `struct kernel_siginfo`, in bytes.
static SI_CODE: u64 = 8;

/// `signal_generate(sig, info, task, group, result)`: in the sender's context,
/// while there is still somebody to be reached.
#[btf_tracepoint(function = "signal_generate")]
pub fn signal_sent(ctx: BtfTracePointContext) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let (signal, info, task): (u32, u64, Ptr) = (ctx.arg(0), ctx.arg(1), ctx.arg(2));
    // `SEND_SIG_NOINFO` is from a process, `SEND_SIG_PRIV` from the kernel
    // (include/linux/sched/signal.h). Timers and sockets send while anybody runs.
    let by_process = match info {
        0 => true,
        1 => false,
        _ => match peek::<i32>(info as Ptr, &SI_CODE) {
            code::USER | code::QUEUE | code::TKILL => true,
            // A code of the sender's own choice.
            code if code < 0 => matches!(
                call().number,
                nr::RT_SIGQUEUEINFO | nr::RT_TGSIGQUEUEINFO | nr::PIDFD_SEND_SIGNAL
            ),
            _ => false,
        },
    };
    if by_process && !is_own(job, task) {
        reached(job, Reach::process(reach::SIGNAL, signal, task), false);
    }
    0
}

/// The first word of a structure in user memory, such as the flags of
/// `struct clone_args`; 0 when it cannot be read.
#[inline(always)]
fn first_word(at: u64) -> u64 {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(at as *const u64) }.unwrap_or(0)
}
