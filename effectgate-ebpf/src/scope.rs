//! Whose task is it? A task is labelled when it enters a job's cgroup or is
//! forked by a labelled task; the label stays when the cgroup changes.

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    helpers::{bpf_get_current_pid_tgid, generated::bpf_get_current_task_btf},
    macros::map,
    maps::HashMap,
};
use effectgate_common::maps::{Job, REGISTRAR_JOB, Task, task};

use crate::kernel::Ptr;

/// Labels by thread id.
#[map]
pub static TASKS: HashMap<u32, Task> = HashMap::with_max_entries(65536, 0);

/// Jobs by the id of their cgroup.
#[map]
pub static CGROUPS: HashMap<u64, u64> = HashMap::with_max_entries(4096, 0);

/// What holds for all of a job, from its launch on.
#[map]
pub static JOBS: HashMap<u64, Job> = HashMap::with_max_entries(4096, 0);

/// Thread id of the current task, initial namespace.
#[inline(always)]
pub fn tid() -> u32 {
    bpf_get_current_pid_tgid() as u32
}

/// Process id of the current task, initial namespace.
#[inline(always)]
pub fn pid() -> u32 {
    (bpf_get_current_pid_tgid() >> 32) as u32
}

/// The current task.
#[inline(always)]
pub fn task() -> Ptr {
    // SAFETY: no arguments.
    unsafe { bpf_get_current_task_btf() }.cast_const().cast()
}

/// The label of a task.
#[inline(always)]
pub fn label(tid: u32) -> Option<Task> {
    // SAFETY: two words that are copied at once. The entry of a thread that
    // lives is not removed or reused, and only it and its parent write it.
    unsafe { TASKS.get(tid) }.copied()
}

/// The job of the current task, if it has one; the registrar has none.
#[inline(always)]
pub fn current_job() -> Option<u64> {
    match label(tid()) {
        Some(task) if task.job != REGISTRAR_JOB => Some(task.job),
        _ => None,
    }
}

/// Labels a task; false when the table is full.
#[inline(always)]
pub fn assign(tid: u32, job: u64) -> bool {
    TASKS.insert(tid, Task { job, flags: 0 }, 0).is_ok()
}

/// Marks an entry that keeps a place for the next child of a thread; no thread
/// has such a number.
const KEPT: u32 = 1 << 31;

/// Keeps a place for the label of the current thread's next child, which it has
/// at once; false when the table is full.
#[inline(always)]
pub fn keep_place() -> bool {
    TASKS.insert(tid() | KEPT, Task { job: 0, flags: 0 }, 0).is_ok()
}

/// Gives back the place that a thread keeps; false when it keeps none.
#[inline(always)]
pub fn give_place_back(tid: u32) -> bool {
    TASKS.remove(tid | KEPT).is_ok()
}

/// Labels a task that enters a job, unless it has a label; false when it has or
/// the table is full.
#[inline(always)]
pub fn assign_new(tid: u32, job: u64) -> bool {
    let flags = if tid == self::tid() { task::ENTERING } else { 0 };
    TASKS.insert(tid, Task { job, flags }, u64::from(BPF_NOEXIST)).is_ok()
}

/// Whether the system call that returns began before its task entered the job;
/// the next one will not have.
#[inline(always)]
pub fn entered(label: Task) -> bool {
    let entering = label.flags & task::ENTERING != 0;
    if entering {
        let flags = label.flags & !task::ENTERING;
        let _ = TASKS.insert(tid(), Task { flags, ..label }, 0);
    }
    entering
}
