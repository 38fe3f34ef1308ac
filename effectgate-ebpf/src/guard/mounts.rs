//! What is mounted where.

use effectgate_common::wire::reach;

use super::{Reach, by_job, call, nr, reached, root_of};
use crate::{
    hook::{Hook, hooks},
    kernel::{OFF_PATH_DENTRY, OFF_PATH_MNT, OFF_VFSMOUNT_ROOT, Ptr, peek_ptr},
    object::Path,
    scope,
};

hooks! {
    "sb_mount" "security_sb_mount" sb_mount fexit_sb_mount given 5 => mounted;
    "move_mount" "security_move_mount" move_mount fexit_move_mount given 2 => mount_moved;
    "sb_remount" "security_sb_remount" sb_remount fexit_sb_remount given 2 => remounted;
    "sb_kern_mount" "security_sb_kern_mount" sb_kern_mount fexit_sb_kern_mount given 1 => made;
    "sb_umount" "security_sb_umount" sb_umount fexit_sb_umount given 2 => unmounted;
    "sb_pivotroot" "security_sb_pivotroot" sb_pivotroot fexit_sb_pivotroot given 2 => pivoted;
}

/// `sb_mount(dev_name, path, type, flags, data)`
#[inline(always)]
fn mounted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::MOUNT, place(ctx.arg(1))))
}

/// `move_mount(from_path, to_path)`
#[inline(always)]
fn mount_moved<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::MOUNT, place(ctx.arg(1))))
}

/// `sb_remount(sb, mnt_opts)`
#[inline(always)]
fn remounted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::MOUNT, root_of(ctx.arg(0))))
}

/// `sb_kern_mount(sb)`: a file system comes into being. `mount` has been asked
/// for already, and what the kernel mounts by itself, on the way of a path that
/// leads there, is not the job's doing: `fsconfig` is left.
#[inline(always)]
fn made<H: Hook>(ctx: &H) -> i32 {
    match scope::current_job() {
        Some(job) if call().number == nr::FSCONFIG => {
            reached(job, Reach::at(reach::MOUNT, root_of(ctx.arg(0))), H::DENIES)
        }
        _ => 0,
    }
}

/// `sb_umount(mnt, flags)`
#[inline(always)]
fn unmounted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| {
        let mnt: Ptr = ctx.arg(0);
        Reach::at(reach::UMOUNT, Path { mnt, dentry: peek_ptr(mnt, &OFF_VFSMOUNT_ROOT) })
    })
}

/// `sb_pivotroot(old_path, new_path)`
#[inline(always)]
fn pivoted<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::at(reach::PIVOT_ROOT, place(ctx.arg(1))))
}

#[inline(always)]
fn place(path: Ptr) -> Path {
    Path { mnt: peek_ptr(path, &OFF_PATH_MNT), dentry: peek_ptr(path, &OFF_PATH_DENTRY) }
}
