//! What the `tracepoint` backend sees of effects through descriptors that the
//! job may not have opened itself: writes and mappings, when their system calls
//! return.

use core::ffi::c_void;

use aya_ebpf::helpers::generated::{bpf_find_vma, bpf_get_current_task_btf};
use effectgate_common::wire::{decision, op};

use crate::{
    descriptor::{Kind, MAP_SHARED, changed, kind, mapped_path, may_write, runs, unreadable},
    kernel::{OFF_FILE_INODE, OFF_FILE_MODE, OFF_VMA_END, OFF_VMA_FILE, Ptr, peek, peek_ptr},
    object::{self, Place},
    open::{self, FMODE_WRITE},
    scope,
    syscall::{Call, descriptor},
    verifier::veiled,
};

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
pub mod nr {
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

/// Whether a call that failed may have done a part of it.
#[inline(always)]
pub fn in_part(number: u64) -> bool {
    matches!(number, nr::MPROTECT | nr::PKEY_MPROTECT)
}

/// Says whether it was a call of these, which is then dealt with.
#[inline(always)]
pub fn returned(call: &Call) -> bool {
    let [a, b, c, d, e] = call.args;
    let (fd, how) = match call.nr {
        nr::WRITE | nr::PWRITE64 | nr::WRITEV | nr::PWRITEV | nr::PWRITEV2 => (a, how::WRITTEN),
        nr::SENDFILE | nr::FALLOCATE => (a, how::WRITTEN),
        nr::SPLICE | nr::COPY_FILE_RANGE => (c, how::WRITTEN),
        nr::MMAP if d & MAP_ANONYMOUS != 0 => return true,
        nr::MMAP => {
            let run = if runs(c) { how::RUN } else { 0 };
            let shared = if d & MAP_SHARED != 0 { how::SHARED } else { 0 };
            (e, run | shared)
        }
        nr::MPROTECT | nr::PKEY_MPROTECT => {
            if runs(c) {
                made_code(call.job, a, b);
            }
            return true;
        }
        nr::IO_SUBMIT => {
            submitted(call.job);
            return true;
        }
        _ => return false,
    };
    through(call.job, u64::from(fd as u32), veiled(how));
    true
}

/// `include/uapi/asm-generic/mman-common.h`
const MAP_ANONYMOUS: u64 = 0x20;

/// What was done to what a descriptor leads to.
mod how {
    pub const WRITTEN: u64 = 1;
    /// Mapped so that stores get into the file, if it was opened to be written:
    /// now, or later, by `mprotect`.
    pub const SHARED: u64 = 2;
    /// Mapped as code.
    pub const RUN: u64 = 4;
}

/// Out of line: the verifier is to meet it once.
#[inline(never)]
fn through(job: u64, fd: u64, how: u64) -> i32 {
    // Closed by another thread in the meantime.
    let Some(file) = descriptor(scope::task(), fd) else {
        return unreadable(job, false);
    };
    let inode = peek_ptr(file, &OFF_FILE_INODE);
    let writable = peek::<u32>(file, &OFF_FILE_MODE) & FMODE_WRITE != 0;
    let write = how & how::WRITTEN != 0 || how & how::SHARED != 0 && writable;
    let run = how & how::RUN != 0;
    if kind(inode) == Kind::Other || !run && (!write || may_write(job, inode)) {
        return 0;
    }
    match open::path_of(file) {
        Some(path) => changed(job, path, write, run, false),
        None => unreadable(job, false),
    }
}

/// Mapped areas that one `mprotect` may reach before it is not known any more
/// what it made code of.
const AREAS: u32 = 4;

/// An area, as [`bpf_find_vma`] finds it.
struct Area {
    end: u64,
    file: u64,
}

/// `mprotect(start, len, PROT_EXEC)`
#[inline(never)]
fn made_code(job: u64, start: u64, len: u64) -> i32 {
    let mut at = start;
    for _ in 0..AREAS {
        if at >= start.wrapping_add(len) {
            return 0;
        }
        let mut area = Area { end: 0, file: 0 };
        if !find(at, &mut area) {
            break;
        }
        if let Some(path) = mapped_path(area.file as Ptr) {
            changed(job, path, false, true, false);
        }
        at = area.end;
    }
    unreadable(job, false)
}

/// The area at an address. The kernel does not wait for who changes the map, and
/// whoever looks again finds it.
#[inline(always)]
fn find(at: u64, area: &mut Area) -> bool {
    const TIMES: u32 = 8;
    for _ in 0..TIMES {
        // SAFETY: the current task, and a function of this object with the
        // signature that the helper calls; the area outlives the call.
        let found = unsafe {
            bpf_find_vma(
                bpf_get_current_task_btf().cast(),
                at,
                look as *mut c_void,
                (&raw mut *area).cast(),
                0,
            )
        };
        if found != -EBUSY {
            return found == 0;
        }
    }
    false
}

const EBUSY: i64 = 16;

extern "C" fn look(_: Ptr, vma: Ptr, area: *mut Area) -> i64 {
    // SAFETY: the helper hands on what `find` gave it.
    unsafe {
        (*area).end = peek(vma, &OFF_VMA_END);
        (*area).file = peek(vma, &OFF_VMA_FILE);
    }
    0
}

/// `io_submit`: what is to be done stands in memory that any thread could have
/// changed since, and is done later.
#[inline(always)]
fn submitted(job: u64) {
    if let Some(record) = object::begin(job, op::WRITE) {
        object::unknown(record, Place::OBJECT);
        object::none(record, Place::OTHER);
        record.submit(decision::NONE);
    }
}
