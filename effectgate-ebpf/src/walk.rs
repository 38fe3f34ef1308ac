//! Walks from a directory entry towards the root: once inside its file system
//! to find a granted root, once across mounts for the path that people read.

use aya_ebpf::{helpers::generated::bpf_probe_read_kernel_str, macros::map, maps::HashMap};
use effectgate_common::{
    maps::{Grant, Root},
    wire::{PATH_MAX, WALK_MAX, obj},
};

use crate::{
    emit::Record,
    kernel::{
        OFF_DENTRY_INODE, OFF_DENTRY_NAME, OFF_DENTRY_PARENT, OFF_INODE_INO, OFF_MOUNT_MNT,
        OFF_MOUNT_MOUNTPOINT, OFF_MOUNT_PARENT, OFF_VFSMOUNT_ROOT, Ptr, follow, offset, read,
    },
    repeat::{GO_ON, STOP, repeat},
};

/// Roots by inode pointer; the daemon holds each directory open, so the
/// pointer stays its own.
#[map]
pub static ROOTS: HashMap<u64, Root> = HashMap::with_max_entries(16384, 0);

/// Which job may change what lies below which root.
#[map]
pub static GRANTS: HashMap<Grant, u8> = HashMap::with_max_entries(65536, 0);

/// A name is at most 255 bytes and a NUL on every file system (`NAME_MAX`).
const NAME: u32 = 256;

struct RootWalk {
    dentry: u64,
    job: u64,
    found: u64,
}

/// The nearest root of `job` at or above `dentry`, 0 for none, and
/// [`obj::UNKNOWN`] in the upper half when the walk came to no end.
///
/// Mounts are not crossed: a root's submounts that were there when the job
/// started are roots themselves, and later ones are not part of it.
#[inline(never)]
pub fn root(dentry: Ptr, job: u64) -> u64 {
    const UNKNOWN: u64 = (obj::UNKNOWN as u64) << 32;
    let mut state = RootWalk { dentry: dentry as u64, job, found: UNKNOWN };
    repeat(WALK_MAX as u32, root_step, &mut state);
    state.found
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
        // SAFETY: only presence is asked for.
        if same && unsafe { GRANTS.get(grant) }.is_some() {
            state.found = u64::from(root.id);
            return STOP;
        }
    }
    let Some(parent) = follow(dentry, &OFF_DENTRY_PARENT) else { return STOP };
    if parent == dentry {
        state.found = 0;
        return STOP;
    }
    state.dentry = parent as u64;
    GO_ON
}

struct PathWalk {
    record: Record,
    /// `struct mount`
    mount: u64,
    dentry: u64,
    start: u64,
    flags: u32,
}

/// Appends the names from `dentry` towards the root to the record's tail;
/// returns bits of [`obj`].
#[inline(never)]
pub fn path(record: &Record, vfsmount: Ptr, dentry: Ptr) -> u32 {
    let mut state = PathWalk {
        record: *record,
        mount: vfsmount.wrapping_sub(offset(&OFF_MOUNT_MNT)) as u64,
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
    let Some(mount_root) = follow(vfsmount, &OFF_VFSMOUNT_ROOT) else { return UNREADABLE };
    if dentry == mount_root {
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
        return Some(obj::DETACHED);
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
