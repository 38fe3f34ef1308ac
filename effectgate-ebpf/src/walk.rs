//! Walks from a directory entry towards the root: once inside its file system
//! to find a granted root, once across mounts for the path that people read.

use aya_ebpf::{helpers::generated::bpf_probe_read_kernel_str, macros::map, maps::HashMap};
use effectgate_common::{
    maps::{Grant, Root as Held},
    wire::{PATH_MAX, WALK_MAX, obj},
};

use crate::{
    emit::Record,
    kernel::{
        OFF_DENTRY_INODE, OFF_DENTRY_NAME, OFF_DENTRY_PARENT, OFF_INODE_INO, OFF_MOUNT_MNT,
        OFF_MOUNT_MOUNTPOINT, OFF_MOUNT_PARENT, OFF_VFSMOUNT_ROOT, Ptr, follow, offset, peek_ptr,
        read,
    },
    repeat::{GO_ON, STOP, repeat},
};

/// Roots by inode pointer; the daemon holds each directory open, so the
/// pointer stays its own.
#[map]
pub static ROOTS: HashMap<u64, Held> = HashMap::with_max_entries(16384, 0);

/// What a job may do below which root: bits of `maps::right`.
#[map]
pub static GRANTS: HashMap<Grant, u32> = HashMap::with_max_entries(65536, 0);

/// A name is at most 255 bytes and a NUL on every file system (`NAME_MAX`).
const NAME: u32 = 256;

struct RootWalk {
    dentry: u64,
    job: u64,
    root: u32,
    rights: u32,
    /// The walk came to an end.
    done: bool,
}

/// Where a walk ended.
#[derive(Clone, Copy)]
pub struct Root {
    /// The nearest root of the job at or above the entry; 0 for none.
    pub id: u32,
    /// What the job may do there: bits of `maps::right`.
    pub rights: u32,
    /// False when the walk came to no end.
    pub known: bool,
}

/// The nearest root of `job` at or above `dentry`.
///
/// Mounts are not crossed: a root's submounts that were there when the job
/// started are roots themselves, and later ones are not part of it.
#[inline(always)]
pub fn root(dentry: Ptr, job: u64) -> Root {
    let mut state = RootWalk { dentry: dentry as u64, job, root: 0, rights: 0, done: false };
    repeat(WALK_MAX as u32, root_step, &mut state);
    Root { id: state.root, rights: state.rights, known: state.done }
}

extern "C" fn root_step(_: u64, state: *mut RootWalk) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let state = unsafe { &mut *state };
    let dentry = state.dentry as Ptr;
    let Some(inode) = read::<u64>(dentry, &OFF_DENTRY_INODE) else { return STOP };
    // SAFETY: an entry that is reused meanwhile has another inode number.
    if let Some(root) = unsafe { ROOTS.get(inode) } {
        let same = read::<u64>(inode as Ptr, &OFF_INODE_INO) == Some(root.ino);
        let grant = Grant { job: state.job, root: root.id, reserved: 0 };
        // SAFETY: one word, written once.
        if let Some(rights) = unsafe { GRANTS.get(grant) }
            && same
        {
            state.root = root.id;
            state.rights = *rights;
            state.done = true;
            return STOP;
        }
    }
    let Some(parent) = follow(dentry, &OFF_DENTRY_PARENT) else { return STOP };
    if parent == dentry {
        state.done = true;
        return STOP;
    }
    state.dentry = parent as u64;
    GO_ON
}

struct PathWalk {
    record: Record,
    /// `struct mount`; 0 where the hook knows none.
    mount: u64,
    dentry: u64,
    start: u64,
    flags: u32,
}

/// Appends the names from `dentry` towards the root to the record's tail;
/// returns bits of [`obj`].
#[inline(never)]
pub fn path(record: &Record, vfsmount: Ptr, dentry: Ptr) -> u32 {
    let mount = vfsmount.wrapping_sub(offset(&OFF_MOUNT_MNT));
    let mut state = PathWalk {
        record: *record,
        mount: if vfsmount.is_null() { 0 } else { mount as u64 },
        dentry: dentry as u64,
        start: record.used() as u64,
        flags: obj::PATH_TRUNCATED,
    };
    repeat(WALK_MAX as u32, path_step, &mut state);
    state.flags
}

extern "C" fn path_step(_: u64, state: *mut PathWalk) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let state = unsafe { &mut *state };
    match climb(state) {
        Some(flags) => {
            state.flags = flags;
            STOP
        }
        None => GO_ON,
    }
}

/// One step up; the flags when there is no further one.
#[inline(always)]
fn climb(state: &mut PathWalk) -> Option<u32> {
    const UNREADABLE: Option<u32> = Some(obj::PATH_UNREADABLE);
    let (mount, dentry) = (state.mount as Ptr, state.dentry as Ptr);
    let vfsmount = mount.wrapping_add(offset(&OFF_MOUNT_MNT));
    if !mount.is_null() && dentry == peek_ptr(vfsmount, &OFF_VFSMOUNT_ROOT) {
        let Some(above) = follow(mount, &OFF_MOUNT_PARENT) else { return UNREADABLE };
        if above == mount {
            return Some(0);
        }
        let Some(mountpoint) = follow(mount, &OFF_MOUNT_MOUNTPOINT) else { return UNREADABLE };
        state.mount = above as u64;
        state.dentry = mountpoint as u64;
        return None;
    }
    let Some(parent) = follow(dentry, &OFF_DENTRY_PARENT) else { return UNREADABLE };
    if parent == dentry {
        return Some(if mount.is_null() { obj::IN_FILE_SYSTEM } else { obj::DETACHED });
    }
    let record = state.record;
    if record.used() - state.start as usize > PATH_MAX - NAME as usize {
        return Some(obj::PATH_TRUNCATED);
    }
    let Some(name) = follow(dentry, &OFF_DENTRY_NAME) else { return UNREADABLE };
    // SAFETY: the tail has room for any one write.
    let len = unsafe { bpf_probe_read_kernel_str(record.tail().cast(), NAME, name.cast()) };
    if len <= 0 {
        return UNREADABLE;
    }
    record.advance(len as usize & 0x1ff);
    state.dentry = parent as u64;
    None
}
