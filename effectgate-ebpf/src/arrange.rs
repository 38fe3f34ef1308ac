//! What a job arranges for itself. It changes nothing that is not its own, and is
//! only recorded, unless others are to wait for it.

use effectgate_common::wire::reach;

use crate::{
    guard::{Reach, reached},
    hook::{Hook, hooks},
    kernel::{OFF_PATH_DENTRY, OFF_PATH_MNT, Ptr, peek_ptr},
    object::Path,
    scope,
};

hooks! {
    "path_chroot" "security_path_chroot" path_chroot fexit_path_chroot given 1 => chroots;
    "path_notify" "security_path_notify" path_notify fexit_path_notify given 3 => watches;
    "uring_sqpoll" "security_uring_sqpoll" uring_sqpoll fexit_uring_sqpoll given 0 => polls;
}

/// `path_chroot(path)`
#[inline(always)]
fn chroots<H: Hook>(ctx: &H) -> i32 {
    at::<H>(Reach::recorded(reach::CHROOT, 0), ctx.arg(0))
}

/// `FS_OPEN_PERM`, `FS_ACCESS_PERM`, `FS_OPEN_EXEC_PERM`, `FS_PRE_ACCESS`
/// (include/linux/fsnotify_backend.h): who does so waits for an answer.
pub const HOLD_UP: u64 = 0x1_0000 | 0x2_0000 | 0x4_0000 | 0x10_0000;

/// `path_notify(path, mask, object)`
#[inline(always)]
fn watches<H: Hook>(ctx: &H) -> i32 {
    let mask: u64 = ctx.arg(1);
    if mask & HOLD_UP != 0 {
        // Anybody, and so the observer.
        return at::<H>(Reach::out(reach::HOLD_UP, 0), ctx.arg(0));
    }
    at::<H>(Reach::recorded(reach::WATCH, 0), ctx.arg(0))
}

/// `uring_sqpoll()`
#[inline(always)]
fn polls<H: Hook>(_: &H) -> i32 {
    match scope::current_job() {
        Some(job) => reached(job, Reach::recorded(reach::SQPOLL, 0), H::DENIES),
        None => 0,
    }
}

#[inline(always)]
fn at<H: Hook>(reach: Reach, path: Ptr) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let path =
        Path { mnt: peek_ptr(path, &OFF_PATH_MNT), dentry: peek_ptr(path, &OFF_PATH_DENTRY) };
    reached(job, Reach { path, ..reach }, H::DENIES)
}
