//! File effects on LSM hooks.
//!
//! The `path_*` hooks know the mount but come before the permission check; the
//! `inode_*` hooks come when nothing but the file system itself can refuse any
//! more, but know no mount, and fire again for the layers below an overlay. So
//! the first leaves a note for the second: an effect is recorded when both
//! speak of the same directory entry.

use core::mem::offset_of;

use aya_ebpf::{macros::map, maps::HashMap};
use effectgate_common::{
    maps::class,
    wire::{FileObject, decision, op},
};

use crate::{
    emit, held,
    hook::{Hook, hooks},
    judge::{self, Node},
    kernel::{
        OFF_DENTRY_SB, OFF_FILE_FLAGS, OFF_PATH_DENTRY, OFF_PATH_MNT, OFF_SB_MAGIC, Ptr, follow,
        peek, peek_ptr, read,
    },
    object::{self, MQUEUE, Path, Place},
    open, scope,
    verifier::veiled,
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

hooks! {
    "file_open" "security_file_open" file_open fexit_file_open given 1 => opened;
    "path_mknod" "security_path_mknod" path_mknod fexit_path_mknod given 4 => entry;
    "path_mkdir" "security_path_mkdir" path_mkdir fexit_path_mkdir given 3 => entry;
    "path_symlink" "security_path_symlink" path_symlink fexit_path_symlink given 3 => entry;
    "path_unlink" "security_path_unlink" path_unlink fexit_path_unlink given 2 => entry;
    "path_rmdir" "security_path_rmdir" path_rmdir fexit_path_rmdir given 2 => entry;
    "path_link" "security_path_link" path_link fexit_path_link given 3 => linked;
    "path_rename" "security_path_rename" path_rename fexit_path_rename given 5 => renamed;
    "inode_create" "security_inode_create" inode_create fexit_inode_create given 3 => create;
    "inode_mkdir" "security_inode_mkdir" inode_mkdir fexit_inode_mkdir given 3 => mkdir;
    "inode_symlink" "security_inode_symlink" inode_symlink fexit_inode_symlink given 3 => symlink;
    "inode_link" "security_inode_link" inode_link fexit_inode_link given 3 => link;
    "inode_rename" "security_inode_rename" inode_rename fexit_inode_rename given 4 => rename;
    "inode_unlink" "security_inode_unlink" inode_unlink fexit_inode_unlink given 2 => unlink;
    "inode_rmdir" "security_inode_rmdir" inode_rmdir fexit_inode_rmdir given 2 => rmdir;
    "inode_mknod" "security_inode_mknod" inode_mknod fexit_inode_mknod given 4 => mknod;
    "path_truncate" "security_path_truncate" path_truncate fexit_path_truncate given 1 => truncate;
    "file_truncate" "security_file_truncate" file_truncate fexit_file_truncate given 1 => ftruncate;
    "path_chmod" "security_path_chmod" path_chmod fexit_path_chmod given 2 => chmod;
    "path_chown" "security_path_chown" path_chown fexit_path_chown given 3 => chown;
}

#[inline(always)]
fn opened<H: Hook>(ctx: &H) -> i32 {
    let file: Ptr = ctx.arg(0);
    let Some(job) = scope::current_job() else { return 0 };
    // Cleared from the file once it is open.
    let flags: u32 = read(file, &OFF_FILE_FLAGS).unwrap_or(0);
    open::opened(file, job, flags, H::DENIES)
}

/// `path_*` hooks leave a note: of the directory's mount and the entry.
#[inline(always)]
fn entry<H: Hook>(ctx: &H) -> i32 {
    note(ctx.arg(0), ctx.arg(1), core::ptr::null(), H::DENIES)
}

/// `path_link(old_dentry, new_dir, new_dentry)`
#[inline(always)]
fn linked<H: Hook>(ctx: &H) -> i32 {
    note(ctx.arg(1), ctx.arg(0), ctx.arg(2), H::DENIES)
}

/// `path_rename(old_dir, old_dentry, new_dir, new_dentry, flags)`
#[inline(always)]
fn renamed<H: Hook>(ctx: &H) -> i32 {
    note(ctx.arg(0), ctx.arg(1), ctx.arg(3), H::DENIES)
}

#[inline(always)]
fn note(directory: Ptr, dentry: Ptr, other: Ptr, denies: bool) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let mnt = follow(directory, &OFF_PATH_MNT);
    let pending = Pending {
        mnt: mnt.unwrap_or(core::ptr::null()) as u64,
        dentry: dentry as u64,
        other: other as u64,
    };
    if PENDING.insert(scope::tid(), pending, 0).is_ok() {
        return 0;
    }
    // What follows would find no note and say nothing.
    emit::lost(job, class::FILE);
    judge::answer(job, judge::settle(job, decision::UNKNOWN, denies), false, denies)
}

/// `inode_*` hooks settle what the note announced.
macro_rules! settles {
    ($($name:ident $op:ident entry $entry:literal;)*) => {
        $(#[inline(always)]
        fn $name<H: Hook>(ctx: &H) -> i32 {
            settle::<H>(op::$op, ctx.arg($entry), judge::EXISTS)
        })*
    };
}

settles! {
    create CREATE entry 1;
    mkdir MKDIR entry 1;
    symlink SYMLINK entry 1;
    link LINK entry 0;
    rename RENAME entry 1;
    unlink UNLINK entry 1;
    rmdir RMDIR entry 1;
}

#[inline(always)]
fn mknod<H: Hook>(ctx: &H) -> i32 {
    let mode: u32 = ctx.arg(2);
    let dev: u32 = ctx.arg(3);
    settle::<H>(op::CREATE, ctx.arg(1), u64::from(mode & 0xffff) << 32 | u64::from(dev))
}

/// Judges and records the effect that the thread's note announced. An exchange
/// of two names comes as two renames, either of which settles it.
#[inline(always)]
fn settle<H: Hook>(op: u16, dentry: Ptr, node: Node) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let tid = scope::tid();
    // SAFETY: only this thread writes its note.
    let Some(pending) = (unsafe { PENDING.get(tid) }).copied() else {
        // Message queues are made and removed by calls of their own, which pass
        // no `path_*` hook.
        let sb = peek_ptr(dentry, &OFF_DENTRY_SB);
        if peek::<u64>(sb, &OFF_SB_MAGIC) != MQUEUE {
            return 0;
        }
        return object::effect(job, op, Path { mnt: core::ptr::null(), dentry }, H::DENIES);
    };
    let at = dentry as u64;
    if pending.dentry != at && (op != op::RENAME || pending.other != at) {
        return 0;
    }
    let _ = PENDING.remove(tid);
    let mnt = pending.mnt as Ptr;
    let one = Path { mnt, dentry: pending.dentry as Ptr };
    let other = Path { mnt, dentry: pending.other as Ptr };
    let found = judge::file(job, one, op, node);
    let mut finding = found.finding;
    let mut found_other = found;
    if pending.other != 0 {
        found_other = judge::file(job, other, op, judge::EXISTS);
        finding = judge::worse(finding, found_other.finding);
    }
    let decision = judge::settle(job, finding, H::DENIES);
    let sent = match object::begin(job, op) {
        None => false,
        Some(record) => {
            object::describe(record, Place::OBJECT, one, object::NO_NAME, found);
            if node != judge::EXISTS {
                // It has no inode yet that says what it will be.
                record.put(offset_of!(FileObject, mode), (node >> 32) as u32);
                record.put(offset_of!(FileObject, rdev), node as u32);
            }
            if pending.other == 0 {
                object::none(record, Place::OTHER);
            } else {
                object::describe(record, Place::OTHER, other, object::NO_NAME, found_other);
            }
            record.submit(decision)
        }
    };
    judge::answer(job, decision, sent, H::DENIES)
}

#[inline(always)]
fn truncate<H: Hook>(ctx: &H) -> i32 {
    changed::<H>(op::TRUNCATE, place(ctx.arg(0)))
}

#[inline(always)]
fn ftruncate<H: Hook>(ctx: &H) -> i32 {
    changed::<H>(op::TRUNCATE, open::path_of(ctx.arg(0)))
}

#[inline(always)]
fn chmod<H: Hook>(ctx: &H) -> i32 {
    changed::<H>(op::CHMOD, place(ctx.arg(0)))
}

#[inline(always)]
fn chown<H: Hook>(ctx: &H) -> i32 {
    changed::<H>(op::CHOWN, place(ctx.arg(0)))
}

#[inline(always)]
fn place(path: Ptr) -> Option<Path> {
    Some(Path { mnt: follow(path, &OFF_PATH_MNT)?, dentry: follow(path, &OFF_PATH_DENTRY)? })
}

/// Judges and records a change of what stands at `path`.
#[inline(always)]
fn changed<H: Hook>(op: u16, path: Option<Path>) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    match path {
        Some(path) => {
            let node = match held::is_anothers(path, core::ptr::null()) {
                true => judge::ANOTHERS,
                false => judge::EXISTS,
            };
            let found = judge::file(job, path, op, veiled(node));
            object::report(job, op, path, found, H::DENIES)
        }
        None => {
            emit::lost(job, class::FILE);
            let decision = judge::settle(job, decision::UNKNOWN, H::DENIES);
            judge::answer(job, decision, false, H::DENIES)
        }
    }
}
