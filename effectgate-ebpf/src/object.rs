//! Describes a file object in a record.

use core::mem::{offset_of, size_of};

use aya_ebpf::helpers::generated::bpf_probe_read_user_str;
use effectgate_common::{
    maps::class,
    wire::{FileBody, FileObject, PATH_MAX, Span, kind, obj},
};

use crate::{
    emit::Record,
    kernel::{
        OFF_DENTRY_HASH_PPREV, OFF_DENTRY_INODE, OFF_DENTRY_SB, OFF_INODE_INO, OFF_INODE_MODE,
        OFF_INODE_NLINK, OFF_INODE_RDEV, OFF_SB_DEV, OFF_SB_MAGIC, OFF_VFSMOUNT_FLAGS, Ptr, follow,
        read,
    },
    walk,
};

/// `MNT_INTERNAL` (`include/linux/mount.h`): mounted by the kernel for itself.
const MNT_INTERNAL: u32 = 0x4000;

/// A place in the mount tree, `struct path`.
#[derive(Clone, Copy)]
pub struct Path {
    pub mnt: Ptr,
    pub dentry: Ptr,
}

/// What a record with a file object looks like: where the object goes, and
/// how large the body is.
#[derive(Clone, Copy)]
pub struct Place {
    pub at: usize,
    pub body: usize,
}

impl Place {
    pub const OBJECT: Place = Place { at: 0, body: size_of::<FileBody>() };
    pub const OTHER: Place = Place { at: size_of::<FileObject>(), body: size_of::<FileBody>() };
}

/// A string in the memory of the process.
#[derive(Clone, Copy)]
pub struct Name {
    pub at: Ptr,
    /// Bytes it has at most, if it does not end at a NUL before.
    pub max: u32,
}

/// Writes an object into the record: what is at `path`, judged for `job`; with
/// a name, what that says from there, which is no more than an argument.
#[inline(always)]
pub fn describe(record: Record, place: Place, path: Path, name: Option<Name>, job: u64) {
    let mut object = inspect(&record, place.body, path.mnt, path.dentry, job);
    if let Some(name) = name {
        let start = record.used();
        // SAFETY: the tail has room for PATH_MAX bytes.
        let len = unsafe {
            bpf_probe_read_user_str(record.tail().cast(), PATH_MAX as u32, name.at.cast())
        };
        if len > 0 {
            // Without the NUL; `len` counts it.
            let len = (len as u32 - 1) & (PATH_MAX as u32 - 1);
            let max = name.max & (2 * PATH_MAX as u32 - 1);
            record.advance(if len > max { max } else { len } as usize);
        } else {
            object.flags |= obj::PATH_UNREADABLE | obj::UNKNOWN;
        }
        object.flags |= obj::ARGUMENT;
        object.name = record.span(start, place.body);
    }
    record.put(place.at, object);
}

/// Records an effect on the one object at `path`.
#[inline(always)]
pub fn record_one(job: u64, op: u16, path: Path) {
    if let Some(record) = begin(job, op) {
        describe(record, Place::OBJECT, path, None, job);
        none(record, Place::OTHER);
        record.submit();
    }
}

/// A file record whose objects are still to be described.
#[inline(always)]
pub fn begin(job: u64, op: u16) -> Option<Record> {
    let record = Record::begin(job, class::FILE, kind::FILE, op, size_of::<FileBody>())?;
    record.put(offset_of!(FileBody, f_mode), 0u64);
    Some(record)
}

/// Writes an object of which nothing could be found out.
#[inline(always)]
pub fn unknown(record: Record, place: Place) {
    let flags = obj::UNKNOWN | obj::PATH_UNREADABLE | obj::ARGUMENT;
    record.put(place.at, FileObject { flags, ..FileObject::default() });
}

/// Writes nothing at `place`.
#[inline(always)]
pub fn none(record: Record, place: Place) {
    record.put(place.at, FileObject::default());
}

#[inline(always)]
fn inspect(record: &Record, body: usize, mnt: Ptr, dentry: Ptr, job: u64) -> FileObject {
    let start = record.used();
    let found = walk::root(dentry, job);
    let mut flags = (found >> 32) as u32 | walk::path(record, mnt, dentry);
    if read::<u32>(mnt, &OFF_VFSMOUNT_FLAGS).unwrap_or(0) & MNT_INTERNAL != 0 {
        flags |= obj::INTERNAL;
    }
    let mut object = FileObject {
        root: found as u32,
        path: record.span(start, body),
        name: Span::default(),
        ..FileObject::default()
    };
    if let Some(sb) = follow(dentry, &OFF_DENTRY_SB) {
        object.dev = read(sb, &OFF_SB_DEV).unwrap_or(0);
        object.magic = read(sb, &OFF_SB_MAGIC).unwrap_or(0);
    }
    // A name that does not exist yet has no inode and is not hashed either,
    // but it is no unlinked file.
    if let Some(inode) = follow(dentry, &OFF_DENTRY_INODE) {
        object.ino = read(inode, &OFF_INODE_INO).unwrap_or(0);
        object.mode = u32::from(read::<u16>(inode, &OFF_INODE_MODE).unwrap_or(0));
        object.rdev = read(inode, &OFF_INODE_RDEV).unwrap_or(0);
        object.nlink = read(inode, &OFF_INODE_NLINK).unwrap_or(0);
        if object.nlink == 0 && read::<u64>(dentry, &OFF_DENTRY_HASH_PPREV) == Some(0) {
            flags |= obj::UNLINKED;
        }
    }
    object.flags = flags;
    object
}
