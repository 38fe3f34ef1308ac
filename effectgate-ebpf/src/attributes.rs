//! What is said of a file: its times, extended attributes, access control lists,
//! flags. These hooks know no mount, and fire again for the layers of an overlay.

use core::ptr::null;

use effectgate_common::wire::op;

use crate::{
    hook::{Hook, hooks},
    ioctl,
    kernel::{ARG_SETATTR_ENTRY, OFF_IATTR_VALID, Ptr, offset, peek},
    object::{self, Path},
    overlay, scope,
};

hooks! {
    "inode_setattr" "security_inode_setattr" inode_setattr fexit_inode_setattr given _ => set;
    "inode_setxattr" "security_inode_setxattr" inode_setxattr fexit_inode_setxattr given 6 => attribute;
    "inode_removexattr" "security_inode_removexattr" inode_removexattr fexit_inode_removexattr given 3 => attribute;
    "inode_set_acl" "security_inode_set_acl" inode_set_acl fexit_inode_set_acl given 4 => attribute;
    "inode_remove_acl" "security_inode_remove_acl" inode_remove_acl fexit_inode_remove_acl given 3 => attribute;
    "inode_file_setattr" "security_inode_file_setattr" inode_file_setattr fexit_inode_file_setattr given 2 => flags;
}

/// `ATTR_…` (`include/linux/fs.h`): mode, user, group, size; the times of access
/// and of modification.
const OTHERS: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 3;
const TIMES: u32 = 1 << 4 | 1 << 5;

/// `inode_setattr(idmap, entry, attributes)`; the hook, but not the function,
/// got the first argument in 6.9. Modes, owners and sizes have hooks that know
/// the mount.
#[inline(always)]
fn set<H: Hook>(ctx: &H) -> i32 {
    let (first, second): (Ptr, Ptr) = (ctx.arg(0), ctx.arg(1));
    let (entry, attributes) = if H::DENIES && offset(&ARG_SETATTR_ENTRY) == 0 {
        (first, second)
    } else {
        (second, ctx.arg(2))
    };
    let valid: u32 = peek(attributes, &OFF_IATTR_VALID);
    if valid & TIMES == 0 || valid & OTHERS != 0 {
        return 0;
    }
    changed::<H>(op::UTIMES, entry)
}

/// `inode_…(idmap, entry, name, …)`
#[inline(always)]
fn attribute<H: Hook>(ctx: &H) -> i32 {
    changed::<H>(op::SETXATTR, ctx.arg(1))
}

/// `inode_file_setattr(entry, attributes)`: `file_setattr`, and the ioctls that it
/// replaces, which say so themselves.
#[inline(always)]
fn flags<H: Hook>(ctx: &H) -> i32 {
    let entry: Ptr = ctx.arg(0);
    if ioctl::announced(entry) {
        return 0;
    }
    changed::<H>(op::IOCTL, entry)
}

#[inline(always)]
fn changed<H: Hook>(op: u16, dentry: Ptr) -> i32 {
    match scope::current_job() {
        Some(job) if !overlay::is_acting() => {
            object::effect(job, op, Path { mnt: null(), dentry }, H::DENIES)
        }
        _ => 0,
    }
}
