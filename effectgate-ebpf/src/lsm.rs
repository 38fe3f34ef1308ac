//! File effects on LSM hooks.
//!
//! The `path_*` hooks know the mount but come before the permission check; the
//! `inode_*` hooks come when nothing but the file system itself can refuse any
//! more, but know no mount, and fire again for the layers below an overlay. So
//! the first leaves a note for the second: an effect is recorded when both
//! speak of the same directory entry.

use core::mem::offset_of;

use aya_ebpf::{
    macros::{lsm, map},
    maps::HashMap,
    programs::LsmContext,
};
use effectgate_common::{
    maps::class,
    wire::{FileObject, op},
};

use crate::{
    emit,
    kernel::{OFF_FILE_FLAGS, OFF_PATH_DENTRY, OFF_PATH_MNT, Ptr, follow, read},
    object::{self, Path, Place},
    open, scope, socket,
};

/// What a `path_*` hook saw.
#[derive(Clone, Copy)]
#[repr(C)]
struct Pending {
    mnt: u64,
    dentry: u64,
    other: u64,
}

/// By thread id.
#[map]
static PENDING: HashMap<u32, Pending> = HashMap::with_max_entries(65536, 0);

/// Drops what a thread that ends may have left.
#[inline(always)]
pub fn forget(tid: u32) {
    let _ = PENDING.remove(tid);
}

/// What an observing program returns: what it was given. The bounds are the
/// verifier's (an error number or 0).
#[inline(always)]
fn given(ctx: &LsmContext, argument: usize) -> i32 {
    let ret: i32 = ctx.arg(argument);
    if (-4095..0).contains(&ret) { ret } else { 0 }
}

#[lsm(hook = "file_open")]
pub fn file_open(ctx: LsmContext) -> i32 {
    let file: Ptr = ctx.arg(0);
    if let Some(task) = scope::label(scope::tid()) {
        // Cleared from the file once it is open.
        let flags: u32 = read(file, &OFF_FILE_FLAGS).unwrap_or(0);
        open::opened(file, task.job, flags);
    }
    given(&ctx, 1)
}

#[lsm(hook = "socket_create")]
pub fn socket_create(ctx: LsmContext) -> i32 {
    let kernels_own: i32 = ctx.arg(3);
    if kernels_own == 0
        && let Some(job) = scope::current_job()
    {
        socket::made(job, ctx.arg(0), ctx.arg(1), ctx.arg(2));
    }
    given(&ctx, 4)
}

/// `path_*` hooks: which argument is the directory's `struct path`, which the
/// entry (and the second entry), which the value to pass on.
macro_rules! notes {
    ($($hook:tt $name:ident directory $directory:literal entry $entry:literal other $other:expr, given $given:literal;)*) => {
        $(#[lsm(hook = $hook)]
        pub fn $name(ctx: LsmContext) -> i32 {
            if let Some(job) = scope::current_job() {
                let other: Option<usize> = $other;
                let other = match other {
                    Some(argument) => ctx.arg(argument),
                    None => core::ptr::null(),
                };
                note(job, ctx.arg($directory), ctx.arg($entry), other);
            }
            given(&ctx, $given)
        })*
    };
}

notes! {
    "path_mknod" path_mknod directory 0 entry 1 other None, given 4;
    "path_mkdir" path_mkdir directory 0 entry 1 other None, given 3;
    "path_symlink" path_symlink directory 0 entry 1 other None, given 3;
    "path_unlink" path_unlink directory 0 entry 1 other None, given 2;
    "path_rmdir" path_rmdir directory 0 entry 1 other None, given 2;
    "path_link" path_link directory 1 entry 0 other Some(2), given 3;
    "path_rename" path_rename directory 0 entry 1 other Some(3), given 5;
}

#[inline(always)]
fn note(job: u64, directory: Ptr, dentry: Ptr, other: Ptr) {
    let mnt = follow(directory, &OFF_PATH_MNT);
    let pending = Pending {
        mnt: mnt.unwrap_or(core::ptr::null()) as u64,
        dentry: dentry as u64,
        other: other as u64,
    };
    if PENDING.insert(scope::tid(), pending, 0).is_err() {
        emit::lost(job, class::FILE);
    }
}

/// `inode_*` hooks: what they record, which argument is the entry, which the
/// value to pass on.
macro_rules! effects {
    ($($hook:tt $name:ident $op:ident entry $entry:literal given $given:literal;)*) => {
        $(#[lsm(hook = $hook)]
        pub fn $name(ctx: LsmContext) -> i32 {
            if let Some(job) = scope::current_job() {
                settle(job, op::$op, ctx.arg($entry), Node::NONE);
            }
            given(&ctx, $given)
        })*
    };
}

effects! {
    "inode_create" inode_create CREATE entry 1 given 3;
    "inode_mkdir" inode_mkdir MKDIR entry 1 given 3;
    "inode_symlink" inode_symlink SYMLINK entry 1 given 3;
    "inode_link" inode_link LINK entry 0 given 3;
    "inode_rename" inode_rename RENAME entry 1 given 4;
    "inode_unlink" inode_unlink UNLINK entry 1 given 2;
    "inode_rmdir" inode_rmdir RMDIR entry 1 given 2;
}

/// What a new node will be: it has no inode yet that says so.
#[derive(Clone, Copy)]
struct Node {
    mode: u32,
    dev: u32,
}

impl Node {
    const NONE: Node = Node { mode: 0, dev: 0 };
}

#[lsm(hook = "inode_mknod")]
pub fn inode_mknod(ctx: LsmContext) -> i32 {
    if let Some(job) = scope::current_job() {
        let node = Node { mode: ctx.arg::<u32>(2) & 0xffff, dev: ctx.arg(3) };
        settle(job, op::CREATE, ctx.arg(1), node);
    }
    given(&ctx, 4)
}

/// Records the effect that the thread's note announced. An exchange of two
/// names comes as two renames, either of which settles it.
#[inline(always)]
fn settle(job: u64, op: u16, dentry: Ptr, node: Node) {
    let tid = scope::tid();
    // SAFETY: only this thread writes its note.
    let Some(pending) = (unsafe { PENDING.get(tid) }).copied() else { return };
    let at = dentry as u64;
    if pending.dentry != at && (op != op::RENAME || pending.other != at) {
        return;
    }
    let _ = PENDING.remove(tid);
    let Some(record) = object::begin(job, op) else { return };
    let mnt = pending.mnt as Ptr;
    object::describe(
        record,
        Place::OBJECT,
        Path { mnt, dentry: pending.dentry as Ptr },
        object::NO_NAME,
        job,
    );
    if node.mode != 0 {
        record.put(offset_of!(FileObject, mode), node.mode);
        record.put(offset_of!(FileObject, rdev), node.dev);
    }
    if pending.other == 0 {
        object::none(record, Place::OTHER);
    } else {
        object::describe(
            record,
            Place::OTHER,
            Path { mnt, dentry: pending.other as Ptr },
            object::NO_NAME,
            job,
        );
    }
    record.submit();
}

#[lsm(hook = "path_truncate")]
pub fn path_truncate(ctx: LsmContext) -> i32 {
    changed(op::TRUNCATE, place(ctx.arg(0)));
    given(&ctx, 1)
}

#[lsm(hook = "file_truncate")]
pub fn file_truncate(ctx: LsmContext) -> i32 {
    changed(op::TRUNCATE, open::path_of(ctx.arg(0)));
    given(&ctx, 1)
}

#[lsm(hook = "path_chmod")]
pub fn path_chmod(ctx: LsmContext) -> i32 {
    changed(op::CHMOD, place(ctx.arg(0)));
    given(&ctx, 2)
}

#[lsm(hook = "path_chown")]
pub fn path_chown(ctx: LsmContext) -> i32 {
    changed(op::CHOWN, place(ctx.arg(0)));
    given(&ctx, 3)
}

#[inline(always)]
fn place(path: Ptr) -> Option<Path> {
    Some(Path { mnt: follow(path, &OFF_PATH_MNT)?, dentry: follow(path, &OFF_PATH_DENTRY)? })
}

/// Records a change of what stands at `path`.
#[inline(always)]
fn changed(op: u16, path: Option<Path>) {
    let Some(job) = scope::current_job() else { return };
    let Some(path) = path else {
        emit::lost(job, class::FILE);
        return;
    };
    object::record_one(job, op, path);
}
