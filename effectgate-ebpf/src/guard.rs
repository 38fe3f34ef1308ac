//! What a job reaches for that is not its own, and how that is reported. What
//! there is to be reached has rooms of its own.

mod machine;
mod mounts;
mod others;
mod privilege;

use core::{
    mem::{offset_of, size_of},
    ptr::null,
};

use aya_ebpf::helpers::generated::{bpf_get_current_task_btf, bpf_task_pt_regs};
use effectgate_common::{
    maps::{Seen, class},
    wire::{GuardBody, decision, kind, op},
};

pub use machine::{changes_log, changes_quotas, names_the_machine};
pub use others::{SIGIO, gives_signals, is_own_number, owner, signals_given};

use crate::{
    cgroup,
    emit::{self, Record},
    hook::Hook,
    judge,
    kernel::{
        OFF_SB_ROOT, OFF_SIGNAL_LIVE, OFF_TASK_PID, OFF_TASK_SIGNAL, OFF_TASK_STATUS,
        OFF_TASK_TGID, Ptr, peek, peek_ptr,
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

/// A reach of the current task, if a job's.
#[inline(always)]
pub fn by_job<H: Hook>(reach: impl FnOnce() -> Reach) -> i32 {
    match scope::current_job() {
        Some(job) => reached(job, reach(), H::DENIES),
        None => 0,
    }
}

/// The top of a file system, wherever it is mounted.
#[inline(always)]
pub fn root_of(sb: Ptr) -> Path {
    Path { mnt: null(), dentry: peek_ptr(sb, &OFF_SB_ROOT) }
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
    pub const REQUEST_KEY: u32 = 249;
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
        pub const REQUEST_KEY: u32 = 287;
    }
}
