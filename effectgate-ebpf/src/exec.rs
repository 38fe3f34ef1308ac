//! Programs: what is about to run, and what runs, with its strings.

use core::mem::{offset_of, size_of};

use aya_ebpf::{
    helpers::generated::{bpf_probe_read_kernel_str, bpf_probe_read_user},
    programs::{BtfTracePointContext, LsmContext},
};
use aya_log_ebpf::debug;
use effectgate_common::{
    maps::{REGISTRAR_JOB, class},
    wire::{ARGS_CHUNK, ARGS_CHUNKS_MAX, ArgsBody, ExecBody, PATH_MAX, decision, kind},
};

use crate::{
    emit::{self, Record},
    hook::gates,
    judge::{self, Found},
    kernel::{
        OFF_BPRM_FILE, OFF_BPRM_FILENAME, OFF_BPRM_INTERP, OFF_MM_ARG_END, OFF_MM_ARG_START,
        OFF_MM_ENV_END, OFF_MM_ENV_START, OFF_TASK_LEADER, OFF_TASK_MM, OFF_TASK_START, Ptr,
        follow, peek, peek_ptr, read,
    },
    lifecycle::parent,
    namespace,
    object::{self, Path, Place},
    open,
    repeat::{GO_ON, STOP, repeat},
    scope,
    told::told,
};

told! { 1 "sched_process_exec" task_exec task_exec_again => runs }

/// `sched_process_exec(task, old_pid, bprm)`: the new image is in place, none
/// of its instructions has run.
#[inline(always)]
fn runs(ctx: &BtfTracePointContext) -> bool {
    let old_tid: u32 = ctx.arg(1);
    let bprm: Ptr = ctx.arg(2);
    let Some(job) = relabel(old_tid) else { return false };
    debug!(ctx, "thread {} of job {} runs another program", scope::tid(), job);
    let task = scope::task();
    namespace::runs(job, task);
    if executed(task, bprm, job).is_none() {
        emit::lost(job, class::EXEC);
    }
    true
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
