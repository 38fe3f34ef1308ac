//! What the `tracepoint` backend sees of effects through descriptors that the
//! job may not have opened itself: writes and mappings, when their system calls
//! return.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::pt_regs,
    helpers::generated::{bpf_find_vma, bpf_get_current_task_btf},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use effectgate_common::{
    maps::REGISTRAR_JOB,
    wire::{decision, op},
};

use crate::{
    descriptor::{Kind, MAP_SHARED, changed, kind, mapped_path, may_write, runs, unreadable},
    guard::call,
    kernel::{OFF_FILE_INODE, OFF_FILE_MODE, OFF_VMA_END, OFF_VMA_FILE, Ptr, peek, peek_ptr},
    object::{self, Place},
    open::FMODE_WRITE,
    scope,
    syscall::descriptor,
    verifier::veiled,
};

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
mod nr {
    pub const WRITE: u64 = 1;
    pub const MMAP: u64 = 9;
    pub const MPROTECT: u64 = 10;
    pub const PWRITE64: u64 = 18;
    pub const WRITEV: u64 = 20;
    pub const SENDFILE: u64 = 40;
    pub const IO_SUBMIT: u64 = 209;
    pub const SPLICE: u64 = 275;
    pub const FALLOCATE: u64 = 285;
    pub const PWRITEV: u64 = 296;
    pub const COPY_FILE_RANGE: u64 = 326;
    pub const PWRITEV2: u64 = 328;
    pub const PKEY_MPROTECT: u64 = 329;
}

/// `include/uapi/asm-generic/mman-common.h`
const MAP_ANONYMOUS: u64 = 0x20;

/// `sys_exit(regs, ret)`. Most calls are none of these: that is found out first,
/// for every task of the machine.
#[btf_tracepoint(function = "sys_exit")]
pub fn syscall_content(ctx: BtfTracePointContext) -> i32 {
    let regs: *const pt_regs = ctx.arg(0);
    // SAFETY: the tracepoint's first argument; the verifier knows its type.
    let (number, [a, b, c, d, e]) = unsafe {
        let regs = &*regs;
        (regs.orig_rax, [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8])
    };
    let (how, fd) = match number {
        nr::WRITE | nr::PWRITE64 | nr::WRITEV | nr::PWRITEV | nr::PWRITEV2 => (how::WRITTEN, a),
        nr::SENDFILE | nr::FALLOCATE => (how::WRITTEN, a),
        nr::SPLICE | nr::COPY_FILE_RANGE => (how::WRITTEN, c),
        nr::MMAP if d & MAP_ANONYMOUS == 0 => {
            let run = if runs(c) { how::RUN } else { 0 };
            (run | if d & MAP_SHARED != 0 { how::SHARED } else { 0 }, e)
        }
        nr::MPROTECT | nr::PKEY_MPROTECT if runs(c) => (how::MADE_CODE, 0),
        nr::IO_SUBMIT => (how::SUBMITTED, 0),
        _ => return 0,
    };
    let ret: i64 = ctx.arg(1);
    // What failed had no effect; but areas that can be changed are, up to the one
    // that cannot.
    if how == 0 || ret < 0 && how != how::MADE_CODE {
        return 0;
    }
    let Some(label) = scope::label(scope::tid()) else { return 0 };
    // The other table's numbers are reported once (`COMPAT_SYSCALL`).
    if label.job == REGISTRAR_JOB || scope::entered(label) || call().compat {
        return 0;
    }
    let job = label.job;
    let file = match how {
        how::SUBMITTED => return submitted(job),
        how::MADE_CODE => made_code(a, b),
        // Closed by another thread in the meantime.
        _ => descriptor(scope::task(), u64::from(fd as u32)).ok_or(Unknown),
    };
    match file {
        Ok(file) => reach(job, veiled(file as u64), veiled(how)),
        Err(Unknown) => unreadable(job, false),
    }
}

/// What it was is not to be found out.
struct Unknown;

/// What was done, to what a descriptor leads to unless it says otherwise.
mod how {
    pub const WRITTEN: u64 = 1;
    /// Mapped so that stores get into the file, if it was opened to be written:
    /// now, or later, by `mprotect`.
    pub const SHARED: u64 = 2;
    /// Mapped as code.
    pub const RUN: u64 = 4;
    /// What was mapped at an address was made code.
    pub const MADE_CODE: u64 = 8;
    /// Writes were handed in that no call names.
    pub const SUBMITTED: u64 = 16;
}

/// Out of line: the verifier is to meet it once, not once for each call.
#[inline(never)]
fn reach(job: u64, file: u64, how: u64) -> i32 {
    let file = file as Ptr;
    let inode = peek_ptr(file, &OFF_FILE_INODE);
    let writable = peek::<u32>(file, &OFF_FILE_MODE) & FMODE_WRITE != 0;
    let write = how & how::WRITTEN != 0 || how & how::SHARED != 0 && writable;
    let run = how & (how::RUN | how::MADE_CODE) != 0;
    if kind(inode) == Kind::Other || !run && (!write || may_write(job, inode)) {
        return 0;
    }
    match mapped_path(file) {
        Some(path) => changed(job, path, write, run, false),
        None => unreadable(job, false),
    }
}

/// How often is looked for what one `mprotect` made code of, before it is not
/// known any more.
const LOOKS: u32 = 6;

/// An area of memory, as [`bpf_find_vma`] finds it.
struct Area {
    end: u64,
    file: u64,
}

/// `mprotect(start, len, PROT_EXEC)`: the file that is mapped there, null for none.
/// Where there are two, it is not said which.
#[inline(always)]
fn made_code(start: u64, len: u64) -> Result<Ptr, Unknown> {
    let mut area = Area { end: start, file: 0 };
    let mut mapped = 0;
    for _ in 0..LOOKS {
        if area.end >= start.wrapping_add(len) {
            return Ok(mapped as Ptr);
        }
        // SAFETY: the current task, and a function of this object with the
        // signature that the helper calls; the area outlives the call.
        let found = unsafe {
            let (task, state) = (bpf_get_current_task_btf(), (&raw mut area).cast());
            bpf_find_vma(task.cast(), area.end, look as *mut c_void, state, 0)
        };
        // The kernel does not wait for who changes the map, but looks again.
        if found == EBUSY {
            continue;
        }
        if found != 0 || mapped != 0 && area.file != 0 && mapped != area.file {
            break;
        }
        if area.file != 0 {
            mapped = area.file;
        }
    }
    Err(Unknown)
}

const EBUSY: i64 = -16;

extern "C" fn look(_: Ptr, vma: Ptr, area: *mut Area) -> i64 {
    // SAFETY: the helper hands on what it was given.
    let area = unsafe { &mut *area };
    area.end = peek(vma, &OFF_VMA_END);
    area.file = peek(vma, &OFF_VMA_FILE);
    0
}

/// `io_submit`: what is to be done stands in memory that any thread could have
/// changed since, and is done later.
fn submitted(job: u64) -> i32 {
    if let Some(record) = object::begin(job, op::WRITE) {
        object::unknown(record, Place::OBJECT);
        object::none(record, Place::OTHER);
        record.submit(decision::NONE);
    }
    0
}
