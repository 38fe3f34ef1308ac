//! Other processes: traced, read, signalled; and where a child goes.

use aya_ebpf::{helpers::bpf_probe_read_user, programs::LsmContext};
use effectgate_common::{
    maps::{REGISTRAR_JOB, class, mode},
    wire::{decision, reach},
};

use super::{Reach, call, is_own, nr, reached};
use crate::{
    emit,
    hook::{Hook, gates, hooks},
    judge,
    kernel::{OFF_NSPROXY_PID, OFF_PIDNS_LEVEL, OFF_TASK_NSPROXY, Ptr, peek, peek_ptr},
    registrar, scope,
};

hooks! {
    "ptrace_access_check" "security_ptrace_access_check" ptrace_access_check fexit_ptrace_access_check given 2 => attached;
    "ptrace_traceme" "security_ptrace_traceme" ptrace_traceme fexit_ptrace_traceme given 1 => offered;
    "task_kill" "security_task_kill" task_kill fexit_task_kill given 4 => signalled;
    "file_fcntl" "security_file_fcntl" file_fcntl fexit_file_fcntl given 3 => controlled;
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
    let gives = matches!(command, F_SETOWN | F_SETOWN_EX);
    if !gives && command != registrar::COMMAND {
        return 0;
    }
    match scope::label(scope::tid()) {
        Some(task) if task.job == REGISTRAR_JOB => registrar::answer(ctx.arg(0), ctx.arg(2)),
        Some(task) if gives => return signals_given(task.job, command, ctx.arg(2), H::DENIES),
        _ => {}
    }
    0
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
