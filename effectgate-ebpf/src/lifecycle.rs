//! Fork, exec, exit, and moves between cgroups.

use core::mem::{offset_of, size_of};

use aya_ebpf::{
    helpers::{
        bpf_probe_read_kernel,
        generated::{bpf_probe_read_kernel_str, bpf_probe_read_user},
    },
    macros::btf_tracepoint,
    programs::{BtfTracePointContext, LsmContext},
};
use aya_log_ebpf::debug;
use effectgate_common::{
    maps::{REGISTRAR_JOB, class},
    wire::{
        ARGS_CHUNK, ARGS_CHUNKS_MAX, ArgsBody, ExecBody, ExitBody, FileObject, ForkBody, GuardBody,
        PATH_MAX, decision, kind, op,
    },
};

use crate::{
    cgroup,
    emit::{self, Record},
    hook::gates,
    ioctl,
    judge::{self, Found},
    kernel::{
        OFF_BPRM_FILE, OFF_BPRM_FILENAME, OFF_BPRM_INTERP, OFF_MM_ARG_END, OFF_MM_ARG_START,
        OFF_MM_ENV_END, OFF_MM_ENV_START, OFF_MM_EXE_FILE, OFF_SIGNAL_LIVE, OFF_SIGNAL_THREADS,
        OFF_TASK_COMM, OFF_TASK_EXIT_CODE, OFF_TASK_LEADER, OFF_TASK_MM, OFF_TASK_PARENT,
        OFF_TASK_PID, OFF_TASK_SIGNAL, OFF_TASK_START, OFF_TASK_TGID, OFF_TASK_THREADS, Ptr,
        follow, offset, peek, peek_ptr, read,
    },
    lsm, namespace,
    object::{self, Path, Place},
    open,
    repeat::{GO_ON, STOP, repeat},
    scope, socket,
    syscall::{CLONE_NEWNS, guard},
};

/// `task_newtask(task, clone_flags)`: before the task runs for the first time.
/// Unlike `sched_process_fork` it also tells of the threads that the kernel
/// makes for a process, such as an io_uring's workers.
#[btf_tracepoint(function = "task_newtask")]
pub fn task_fork(ctx: BtfTracePointContext) -> i32 {
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
    0
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
fn parent(task: Ptr) -> Option<u32> {
    follow(task, &OFF_TASK_PARENT).and_then(|parent| read(parent, &OFF_TASK_TGID))
}

/// `sched_process_exit(task)`: each thread, while it is still itself.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn task_exit(ctx: BtfTracePointContext) -> i32 {
    let task: Ptr = ctx.arg(0);
    exited(task);
    0
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

/// `sched_process_exec(task, old_pid, bprm)`: the new image is in place, none
/// of its instructions has run.
#[btf_tracepoint(function = "sched_process_exec")]
pub fn task_exec(ctx: BtfTracePointContext) -> i32 {
    let old_tid: u32 = ctx.arg(1);
    let bprm: Ptr = ctx.arg(2);
    let Some(job) = relabel(old_tid) else { return 0 };
    debug!(&ctx, "thread {} of job {} runs another program", scope::tid(), job);
    let task = scope::task();
    namespace::runs(job, task);
    if executed(task, bprm, job).is_none() {
        emit::lost(job, class::EXEC);
    }
    0
}

/// A thread that calls execve takes over the thread id of its group's leader.
#[inline(always)]
fn relabel(old_tid: u32) -> Option<u64> {
    let tid = scope::tid();
    let job = scope::label(tid).or_else(|| scope::label(old_tid))?.job;
    if job == REGISTRAR_JOB {
        return None;
    }
    if tid != old_tid {
        let _ = scope::TASKS.remove(old_tid);
        if !scope::assign(tid, job) {
            emit::lost(job, class::GUARD);
        }
    }
    Some(job)
}

gates! {
    "bprm_creds_from_file" bprm_creds_from_file given 2 => about_to_run;
}

/// `bprm_creds_from_file(bprm, file)`: the file that will run is known, for a
/// script its interpreter, and the old image is still there to be told no.
#[inline(always)]
fn about_to_run(ctx: &LsmContext) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let Some(path) = open::path_of(ctx.arg(1)) else {
        emit::lost(job, class::EXEC);
        let decision = judge::settle(job, decision::UNKNOWN, true);
        return judge::answer(job, decision, false, true);
    };
    let found = judge::program(job, path);
    if !judge::denied(job, found.finding) {
        return 0;
    }
    let sent = not_run(ctx.arg(0), job, path, found).is_some();
    judge::answer(job, decision::DENIED, sent, true)
}

/// Records a program that was not let run. Its strings are in no memory yet
/// that can be read here.
#[inline(always)]
fn not_run(bprm: Ptr, job: u64, path: Path, found: Found) -> Option<()> {
    const BODY: usize = size_of::<ExecBody>();
    let task = scope::task();
    let record = Record::begin(job, class::EXEC, kind::EXEC, 0, BODY)?;
    let place = Place { at: offset_of!(ExecBody, file), body: BODY };
    object::describe(record, place, path, object::NO_NAME, found);
    asked_for(record, bprm);
    record.put(
        offset_of!(ExecBody, start),
        peek::<u64>(peek_ptr(task, &OFF_TASK_LEADER), &OFF_TASK_START),
    );
    record.put(offset_of!(ExecBody, argv_len), 0u64);
    record.put(offset_of!(ExecBody, ppid), parent(task).unwrap_or(0));
    record.put(offset_of!(ExecBody, reserved), 0u32);
    record.submit(decision::DENIED).then_some(())
}

/// Whether something else runs than what was asked for.
#[inline(always)]
fn is_script(bprm: Ptr) -> bool {
    peek::<u64>(bprm, &OFF_BPRM_FILENAME) != peek::<u64>(bprm, &OFF_BPRM_INTERP)
}

/// The script that was asked for: a script's interpreter has taken its place;
/// `/dev/fd/N` of execveat and symbolic links are other names of the same file.
#[inline(always)]
fn asked_for(record: Record, bprm: Ptr) {
    const BODY: usize = size_of::<ExecBody>();
    let start = record.used();
    if let Some(name) = follow(bprm, &OFF_BPRM_FILENAME).filter(|_| is_script(bprm)) {
        // SAFETY: the tail has room for PATH_MAX bytes.
        let len = unsafe {
            bpf_probe_read_kernel_str(record.tail().cast(), PATH_MAX as u32, name.cast())
        };
        if len > 0 {
            record.advance((len as usize - 1) & (PATH_MAX - 1));
        }
    }
    record.put(offset_of!(ExecBody, filename), record.span(start, BODY));
}

#[inline(always)]
fn executed(task: Ptr, bprm: Ptr, job: u64) -> Option<()> {
    const BODY: usize = size_of::<ExecBody>();
    let path = follow(bprm, &OFF_BPRM_FILE).and_then(open::path_of)?;
    let mm = follow(task, &OFF_TASK_MM)?;
    let argv = (read::<u64>(mm, &OFF_MM_ARG_START)?, read::<u64>(mm, &OFF_MM_ARG_END)?);
    let envp = (read::<u64>(mm, &OFF_MM_ENV_START)?, read::<u64>(mm, &OFF_MM_ENV_END)?);
    let Some(record) = Record::begin(job, class::EXEC, kind::EXEC, 0, BODY) else {
        return Some(()); // counted there
    };
    let found = judge::program(job, path);
    // The name of a script can make its interpreter what may not run.
    let finding = match found.finding {
        decision::WITHIN if is_script(bprm) && judge::asks_programs(job) => decision::NONE,
        finding => finding,
    };
    let decision = judge::settle(job, finding, false);
    object::describe(
        record,
        Place { at: offset_of!(ExecBody, file), body: BODY },
        path,
        object::NO_NAME,
        found,
    );
    asked_for(record, bprm);
    let leader = follow(task, &OFF_TASK_LEADER).unwrap_or(task);
    record.put(offset_of!(ExecBody, start), read::<u64>(leader, &OFF_TASK_START).unwrap_or(0));
    record.put(offset_of!(ExecBody, argv_len), argv.1.wrapping_sub(argv.0) as u32);
    record.put(offset_of!(ExecBody, envp_len), envp.1.wrapping_sub(envp.0) as u32);
    record.put(offset_of!(ExecBody, ppid), parent(task).unwrap_or(0));
    record.put(offset_of!(ExecBody, reserved), 0u32);
    record.submit(decision);
    strings(argv.0, argv.1, job, class::EXEC, kind::ARGV);
    strings(envp.0, envp.1, job, class::ENV, kind::ENVP);
    Some(())
}

/// A block of strings in user memory.
struct Block {
    start: u64,
    job: u64,
    total: u32,
    class: u32,
    kind: u16,
}

/// Sends the block `start..end` of user memory in chunks. The kernel has just
/// written these pages, so they are there.
#[inline(always)]
fn strings(start: u64, end: u64, job: u64, class: u32, kind: u16) {
    let total = end.wrapping_sub(start) as u32;
    let mut block = Block { start, job, total, class, kind };
    repeat(ARGS_CHUNKS_MAX as u32, send_chunk, &mut block);
}

extern "C" fn send_chunk(chunk: u64, block: *mut Block) -> i64 {
    const BODY: usize = size_of::<ArgsBody>();
    // SAFETY: the state that `repeat` was given.
    let block = unsafe { &*block };
    let offset = chunk as u32 * ARGS_CHUNK as u32;
    if offset >= block.total {
        return STOP;
    }
    let Some(record) = Record::begin(block.job, block.class, block.kind, 0, BODY) else {
        return GO_ON;
    };
    let left = block.total - offset;
    let len = if left >= ARGS_CHUNK as u32 { ARGS_CHUNK as u32 } else { left & 0xfff };
    let at = record.used();
    let from = block.start.wrapping_add(u64::from(offset)) as *const core::ffi::c_void;
    // SAFETY: the tail has room for ARGS_CHUNK bytes.
    if unsafe { bpf_probe_read_user(record.tail().cast(), len, from) } == 0 {
        record.advance(len as usize);
    }
    record.put(0, ArgsBody { offset, total: block.total, bytes: record.span(at, BODY) });
    record.submit(decision::NONE);
    GO_ON
}

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
fn moved(job: u64, op: u16, task: Ptr) {
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
