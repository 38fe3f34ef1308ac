//! Processes that come into a job's cgroup, and that leave it.

use core::mem::{offset_of, size_of};

use aya_ebpf::{
    helpers::bpf_probe_read_kernel, macros::btf_tracepoint, programs::BtfTracePointContext,
};
use aya_log_ebpf::debug;
use effectgate_common::{
    maps::{REGISTRAR_JOB, class},
    wire::{FileObject, GuardBody, decision, kind, op},
};

use crate::{
    cgroup,
    emit::{self, Record},
    judge,
    kernel::{
        OFF_MM_EXE_FILE, OFF_SIGNAL_THREADS, OFF_TASK_COMM, OFF_TASK_LEADER, OFF_TASK_MM,
        OFF_TASK_PID, OFF_TASK_SIGNAL, OFF_TASK_START, OFF_TASK_TGID, OFF_TASK_THREADS, Ptr,
        follow, offset, read,
    },
    lifecycle::parent,
    namespace,
    object::{self, Place},
    open,
    repeat::{GO_ON, STOP, repeat},
    scope, socket,
};

/// `cgroup_attach_task(dst_cgrp, path, task, threadgroup)`
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn cgroup_move(ctx: BtfTracePointContext) -> i32 {
    let destination: Ptr = ctx.arg(0);
    let task: Ptr = ctx.arg(2);
    // One event for all threads of a process.
    let whole: i32 = ctx.arg(3);
    if let Some((tid, job)) = attached(destination, task, whole & 0xff != 0) {
        debug!(&ctx, "thread {} moved to the cgroup of job {} (0: of none)", tid, job);
    }
    0
}

#[inline(always)]
fn attached(destination: Ptr, task: Ptr, whole: bool) -> Option<(u32, u64)> {
    if !cgroup::is_of_jobs(destination) {
        return None;
    }
    let tid: u32 = read(task, &OFF_TASK_PID)?;
    let job = cgroup::job(destination);
    // Whom a job brings in did not come with a namespace of the job's.
    let brought = scope::current_job().is_some();
    match scope::label(tid) {
        None if job != 0 => {
            if !brought {
                namespace::came_with(job, task);
            }
            if scope::assign_new(tid, job) {
                moved(job, op::ENTERED, task);
            } else {
                emit::lost(job, class::GUARD);
            }
            if whole && label_threads(task, job, brought).is_none() {
                emit::lost(job, class::GUARD);
            }
        }
        Some(label) if label.job != job && label.job != REGISTRAR_JOB => {
            moved(label.job, op::ESCAPED, task);
        }
        _ => {}
    }
    Some((tid, job))
}

/// The threads of a process, `list_head` by `list_head`.
struct Threads {
    head: u64,
    node: u64,
    job: u64,
    /// By a process of a job.
    brought: bool,
    /// The walk came back to the head.
    done: bool,
}

/// Threads of one process that are followed.
const THREADS_MAX: u32 = 65536;

/// Labels every thread of the process; `None` when not all could be found,
/// because they are too many or cannot be read.
#[inline(always)]
fn label_threads(task: Ptr, job: u64, brought: bool) -> Option<()> {
    let head = follow(task, &OFF_TASK_SIGNAL)?.wrapping_add(offset(&OFF_SIGNAL_THREADS));
    let mut threads = Threads { head: head as u64, node: head as u64, job, brought, done: false };
    repeat(THREADS_MAX, label_thread, &mut threads);
    // Every process has a thread, so the walk came round if it came back.
    if threads.done { Some(()) } else { None }
}

extern "C" fn label_thread(_: u64, threads: *mut Threads) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let threads = unsafe { &mut *threads };
    // SAFETY: the helper checks the address; `next` comes first in a list_head.
    let next = unsafe { bpf_probe_read_kernel(threads.node as *const u64) };
    let Ok(node) = next else { return STOP };
    threads.node = node;
    if node == threads.head {
        threads.done = true;
        return STOP;
    }
    let thread = (node as Ptr).wrapping_sub(offset(&OFF_TASK_THREADS));
    let Some(tid) = read::<u32>(thread, &OFF_TASK_PID) else { return STOP };
    // The one that was moved has its label already.
    if scope::assign_new(tid, threads.job) {
        if !threads.brought {
            namespace::came_with(threads.job, thread);
        }
    } else if scope::label(tid).is_none() {
        emit::lost(threads.job, class::GUARD);
    }
    GO_ON
}

/// Reports a move, with what the moved process is: it may be gone before user
/// space can ask.
#[inline(never)]
pub fn moved(job: u64, op: u16, task: Ptr) {
    const BODY: usize = size_of::<GuardBody>();
    let Some(record) = Record::begin(job, class::GUARD, kind::GUARD, op, BODY) else { return };
    record.put(
        0,
        GuardBody {
            file: FileObject::default(),
            start: follow(task, &OFF_TASK_LEADER)
                .and_then(|leader| read(leader, &OFF_TASK_START))
                .unwrap_or(0),
            pid: read(task, &OFF_TASK_TGID).unwrap_or(0),
            ppid: parent(task).unwrap_or(0),
            value: 0,
            detail: 0,
            comm: read(task, &OFF_TASK_COMM).unwrap_or_default(),
        },
    );
    if op == op::ENTERED {
        socket::hand_over(task, job);
    }
    let file = follow(task, &OFF_TASK_MM).and_then(|mm| follow(mm, &OFF_MM_EXE_FILE));
    if let Some(path) = file.and_then(open::path_of) {
        let place = Place { at: offset_of!(GuardBody, file), body: BODY };
        object::describe(record, place, path, object::NO_NAME, judge::place(job, path));
    }
    // The one guard effect that is judged: whether it left.
    let left = op == op::ESCAPED && judge::judges(job);
    let finding = if left { decision::OUTSIDE } else { decision::NONE };
    // Who moved it need not be of the job: nobody is killed here.
    record.submit(finding);
}
