//! Data that passes sockets, at the return of system calls: for `tracepoint` on
//! kernels before 6.3, which have no tracepoint of their own for it.

use aya_ebpf::{bindings::pt_regs, macros::btf_tracepoint, programs::BtfTracePointContext};
use effectgate_common::maps::class;

use crate::{emit, guard::call, scope, socket, syscall::descriptor, verifier::veiled};

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
mod nr {
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 1;
    pub const READV: u64 = 19;
    pub const WRITEV: u64 = 20;
    pub const SENDFILE: u64 = 40;
    pub const SENDTO: u64 = 44;
    pub const RECVFROM: u64 = 45;
    pub const SENDMSG: u64 = 46;
    pub const RECVMSG: u64 = 47;
    pub const SPLICE: u64 = 275;
    pub const RECVMMSG: u64 = 299;
    pub const SENDMMSG: u64 = 307;
    pub const PREADV2: u64 = 327;
    pub const PWRITEV2: u64 = 328;
}

/// Which way data went.
mod way {
    pub const IN: u64 = 1;
    pub const OUT: u64 = 2;
}

/// `sys_exit(regs, ret)`. Most calls are none of these: that is found out first,
/// for every task of the machine. An io_uring's operations pass no system call;
/// that there is one is reported (`IO_URING`), and so is `io_submit`.
#[btf_tracepoint(function = "sys_exit")]
pub fn syscall_passed(ctx: BtfTracePointContext) -> i32 {
    let regs: *const pt_regs = ctx.arg(0);
    // SAFETY: the tracepoint's first argument; the verifier knows its type.
    let (number, [a, c]) = unsafe {
        let regs = &*regs;
        (regs.orig_rax, [regs.rdi, regs.rdx])
    };
    let (into, out) = match number {
        // Without an offset these two are `readv` and `writev`.
        nr::PREADV2 | nr::READ | nr::READV => (Some(a), None),
        nr::PWRITEV2 | nr::WRITE | nr::WRITEV => (None, Some(a)),
        nr::RECVFROM | nr::RECVMSG | nr::RECVMMSG => (Some(a), None),
        nr::SENDTO | nr::SENDMSG | nr::SENDMMSG | nr::SENDFILE => (None, Some(a)),
        nr::SPLICE => (Some(a), Some(c)),
        _ => return 0,
    };
    let ret: i64 = ctx.arg(1);
    // What failed had no effect.
    if ret < 0 {
        return 0;
    }
    let Some(job) = scope::current_job() else { return 0 };
    // The other table's numbers are reported once (`COMPAT_SYSCALL`).
    if call().compat {
        return 0;
    }
    if let Some(fd) = into {
        passed(job, veiled(fd), veiled(way::IN));
    }
    if let Some(fd) = out {
        passed(job, veiled(fd), veiled(way::OUT));
    }
    0
}

/// Out of line: the verifier is to meet it once, not once for each call.
#[inline(never)]
fn passed(job: u64, fd: u64, way: u64) -> i32 {
    let Some(file) = descriptor(scope::task(), u64::from(fd as u32)) else {
        // Closed by another thread in the meantime.
        emit::lost(job, class::NET);
        return 0;
    };
    match socket::of(file) {
        Some(sk) if way == way::OUT => socket::through(job, sk, false),
        Some(sk) => socket::foreign(job, sk, false),
        None => 0,
    }
}
