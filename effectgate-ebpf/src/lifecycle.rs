//! Fork and exit.

use core::mem::size_of;

use aya_ebpf::programs::BtfTracePointContext;
use effectgate_common::{
    maps::{REGISTRAR_JOB, class},
    wire::{ExitBody, ForkBody, decision, kind, op},
};

use crate::{
    cgroup,
    emit::{self, Record},
    ioctl,
    kernel::{
        OFF_SIGNAL_LIVE, OFF_TASK_EXIT_CODE, OFF_TASK_PARENT, OFF_TASK_PID, OFF_TASK_SIGNAL,
        OFF_TASK_START, OFF_TASK_TGID, Ptr, follow, read,
    },
    lsm,
    moves::moved,
    namespace, scope,
    syscall::{CLONE_NEWNS, guard},
    told::told,
};

told! { 2 "task_newtask" task_fork task_fork_again => made }
told! { 3 "sched_process_exit" task_exit task_exit_again => ends }

/// `task_newtask(task, clone_flags)`: before the task runs for the first time.
/// Unlike `sched_process_fork` it also tells of the threads that the kernel
/// makes for a process, such as an io_uring's workers.
#[inline(always)]
fn made(ctx: &BtfTracePointContext) -> bool {
    let child: Ptr = ctx.arg(0);
    let flags: u64 = ctx.arg(1);
    if flags & namespace::CLONE_NEWNET != 0
        && let Some(job) = scope::current_job()
    {
        namespace::came_with(job, child);
    }
    if let Some(job) = forked(child)
        && flags & CLONE_NEWNS != 0
    {
        guard(job, op::VIEW, 0);
    }
    true
}

#[inline(always)]
fn forked(child: Ptr) -> Option<u64> {
    let label = scope::label(scope::tid());
    let tid: u32 = read(child, &OFF_TASK_PID)?;
    let entered = cgroup::of(child).map_or(0, cgroup::job);
    let job = match label {
        Some(label) if label.job == REGISTRAR_JOB => return None,
        Some(label) => label.job,
        None if entered != 0 => entered,
        None => {
            // Whoever had this id before may have died before it was labelled.
            let _ = scope::TASKS.remove(tid);
            return None;
        }
    };
    let labelled = scope::assign(tid, job);
    // In the place that was kept for it, if there is no other.
    let kept = scope::give_place_back(scope::tid());
    if !(labelled || kept && scope::assign(tid, job)) {
        emit::lost(job, class::GUARD);
    }
    // CLONE_INTO_CGROUP passes no cgroup_attach_task.
    if label.is_none() {
        namespace::came_with(job, child);
        moved(job, op::ENTERED, child);
    } else if entered != job {
        moved(job, op::ESCAPED, child);
    }
    let pid: u32 = read(child, &OFF_TASK_TGID)?;
    if tid == pid {
        let record = Record::begin(job, class::EXEC, kind::FORK, 0, size_of::<ForkBody>())?;
        record.put(
            0,
            ForkBody {
                start: read(child, &OFF_TASK_START).unwrap_or(0),
                pid,
                ppid: parent(child).unwrap_or(0),
            },
        );
        record.submit(decision::NONE);
    }
    Some(job)
}

#[inline(always)]
pub fn parent(task: Ptr) -> Option<u32> {
    follow(task, &OFF_TASK_PARENT).and_then(|parent| read(parent, &OFF_TASK_TGID))
}

/// `sched_process_exit(task)`: each thread, while it is still itself. Afterwards it
/// has no label, and nothing is done for it.
#[inline(always)]
fn ends(ctx: &BtfTracePointContext) -> bool {
    let task: Ptr = ctx.arg(0);
    exited(task);
    false
}

#[inline(always)]
fn exited(task: Ptr) -> Option<()> {
    let tid = scope::tid();
    let job = scope::label(tid)?.job;
    let _ = scope::TASKS.remove(tid);
    scope::give_place_back(tid);
    lsm::forget(tid);
    ioctl::forget(tid);
    // Threads that still live; this one is not among them any more.
    let live: u32 = follow(task, &OFF_TASK_SIGNAL).and_then(|s| read(s, &OFF_SIGNAL_LIVE))?;
    if live != 0 || job == REGISTRAR_JOB {
        return None;
    }
    let record = Record::begin(job, class::EXEC, kind::EXIT, 0, size_of::<ExitBody>())?;
    record.put(0, ExitBody { code: read(task, &OFF_TASK_EXIT_CODE).unwrap_or(0), reserved: 0 });
    record.submit(decision::NONE);
    Some(())
}
