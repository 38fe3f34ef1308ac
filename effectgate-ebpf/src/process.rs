//! Other processes' settings: their limits, priorities, processors, memory.

use effectgate_common::wire::reach;

use crate::{
    guard::{Reach, call, is_own, is_own_number, reached},
    hook::{Hook, hooks},
    kernel::{
        OFF_FILE_INODE, OFF_FILE_PRIVATE, OFF_INODE_PRIVATE, OFF_PID_TASKS, OFF_TASK_PID_LINKS,
        Ptr, offset, peek_ptr,
    },
    scope,
    syscall::descriptor,
};

hooks! {
    "task_setrlimit" "security_task_setrlimit" task_setrlimit fexit_task_setrlimit given 3 => set;
    "task_setnice" "security_task_setnice" task_setnice fexit_task_setnice given 2 => set;
    "task_setioprio" "security_task_setioprio" task_setioprio fexit_task_setioprio given 2 => set;
    "task_setscheduler" "security_task_setscheduler" task_setscheduler fexit_task_setscheduler given 1 => set;
    "task_movememory" "security_task_movememory" task_movememory fexit_task_movememory given 1 => set;
}

/// `task_set…(task, …)`
#[inline(always)]
fn set<H: Hook>(ctx: &H) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let task: Ptr = ctx.arg(0);
    if is_own(job, task) {
        return 0;
    }
    reached(job, Reach::process(reach::PROCESS, call().number, task), H::DENIES)
}

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
pub mod nr {
    pub const SETPRIORITY: u64 = 141;
    pub const SCHED_SETPARAM: u64 = 142;
    pub const SCHED_SETSCHEDULER: u64 = 144;
    pub const SCHED_SETAFFINITY: u64 = 203;
    pub const IOPRIO_SET: u64 = 251;
    pub const MIGRATE_PAGES: u64 = 256;
    pub const MOVE_PAGES: u64 = 279;
    pub const PRLIMIT64: u64 = 302;
    pub const SCHED_SETATTR: u64 = 314;
}

// include/uapi/linux/resource.h, include/uapi/linux/ioprio.h
const PRIO_PROCESS: u64 = 0;
const IOPRIO_WHO_PROCESS: u64 = 1;

/// The process that one of the calls above was about, unless it is the job's own.
/// A group or a user's processes are taken for others' unless the number is the
/// job's own.
#[inline(always)]
pub fn other(job: u64, number: u64, [which, who, _]: [u64; 3]) -> Option<u32> {
    let (one, pid) = match number {
        nr::SETPRIORITY => (which == PRIO_PROCESS, who as u32),
        nr::IOPRIO_SET => (which == IOPRIO_WHO_PROCESS, who as u32),
        _ => (true, which as u32),
    };
    let own = one && pid == 0 || is_own_number(job, pid);
    (!own).then_some(pid)
}

/// The process that a descriptor of one stands for.
#[inline(always)]
pub fn of_descriptor(fd: u64) -> Option<Ptr> {
    let file = descriptor(scope::task(), u64::from(fd as u32))?;
    // From 6.9 on such descriptors have a file system of their own.
    let beside = peek_ptr(peek_ptr(file, &OFF_FILE_INODE), &OFF_INODE_PRIVATE);
    let pid = if beside.is_null() { peek_ptr(file, &OFF_FILE_PRIVATE) } else { beside };
    let link = peek_ptr(pid, &OFF_PID_TASKS);
    (!link.is_null()).then(|| link.wrapping_sub(offset(&OFF_TASK_PID_LINKS)))
}
