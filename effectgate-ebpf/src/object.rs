//! Describes a file object in a record.

use core::mem::{offset_of, size_of};

use aya_ebpf::helpers::generated::bpf_probe_read_user_str;
use effectgate_common::{
    maps::class,
    wire::{FileBody, FileObject, PATH_MAX, kind, obj},
};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    emit::Record,
    judge::{self, Found},
    kernel::{
        OFF_DENTRY_HASH_PPREV, OFF_DENTRY_INODE, OFF_DENTRY_SB, OFF_INODE_INO, OFF_INODE_MODE,
        OFF_INODE_NLINK, OFF_INODE_RDEV, OFF_SB_DEV, OFF_SB_FLAGS, OFF_SB_MAGIC,
        OFF_VFSMOUNT_FLAGS, Ptr, follow, peek, read,
    },
    walk,
};

/// `MNT_INTERNAL` (`include/linux/mount.h`): mounted by the kernel for itself.
pub const MNT_INTERNAL: u32 = 0x4000;

/// `SB_NOUSER`: the same of a file system (`include/linux/fs.h`).
const SB_NOUSER: u32 = 1 << 31;

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
    /// Bytes it has at most, if it does not end at a NUL before; 0 for none.
    pub max: u32,
}

/// No string.
pub const NO_NAME: Name = Name { at: core::ptr::null(), max: 0 };

/// Writes an object into the record: what is at `path`, as it was found; with
/// a name, what that says from there, which is no more than an argument.
///
/// Each field goes to the record as soon as it is known. Held in registers
/// until the end, those that can fail to be read would leave the verifier two
/// ways each, and all their combinations to go through.
#[inline(always)]
pub fn describe(record: Record, place: Place, path: Path, name: Name, found: Found) {
    record.put(place.at, FileObject::default());
    record.put(place.at + offset_of!(FileObject, root), found.root);
    mark(record, place, found.flags);
    let start = record.used();
    mark(record, place, walk::path(&record, path.mnt, path.dentry));
    record.put(place.at + offset_of!(FileObject, path), record.span(start, place.body));
    if name.max != 0 {
        say(record, place, name);
    }
    if let Some(sb) = follow(path.dentry, &OFF_DENTRY_SB) {
        if is_internal(path.mnt, sb) {
            mark(record, place, obj::INTERNAL);
        }
        field::<u32>(record, place.at + offset_of!(FileObject, dev), sb, &OFF_SB_DEV);
        field::<u64>(record, place.at + offset_of!(FileObject, magic), sb, &OFF_SB_MAGIC);
    }
    // A name that does not exist yet has no inode.
    if let Some(inode) = follow(path.dentry, &OFF_DENTRY_INODE) {
        record.put(place.at + offset_of!(FileObject, inode), inode as u64);
        field::<u64>(record, place.at + offset_of!(FileObject, ino), inode, &OFF_INODE_INO);
        // The upper half of the field stays zero.
        field::<u16>(record, place.at + offset_of!(FileObject, mode), inode, &OFF_INODE_MODE);
        field::<u32>(record, place.at + offset_of!(FileObject, rdev), inode, &OFF_INODE_RDEV);
        field::<u32>(record, place.at + offset_of!(FileObject, nlink), inode, &OFF_INODE_NLINK);
        if read::<u32>(inode, &OFF_INODE_NLINK) == Some(0)
            && read::<u64>(path.dentry, &OFF_DENTRY_HASH_PPREV) == Some(0)
        {
            mark(record, place, obj::UNLINKED);
        }
    }
}

/// `MQUEUE_MAGIC` (`ipc/mqueue.c`): mounted by the kernel for itself, but what
/// lies there is there for every process.
pub const MQUEUE: u64 = 0x1980_0202;

/// Whether it lies where no path leads. Without a mount its file system says so.
#[inline(always)]
pub fn is_internal(mnt: Ptr, sb: Ptr) -> bool {
    if mnt.is_null() {
        peek::<u64>(sb, &OFF_SB_FLAGS) as u32 & SB_NOUSER != 0
    } else {
        peek::<u32>(mnt, &OFF_VFSMOUNT_FLAGS) & MNT_INTERNAL != 0
            && peek::<u64>(sb, &OFF_SB_MAGIC) != MQUEUE
    }
}

/// Copies a field of a kernel structure into the record, if it can be read.
#[inline(always)]
fn field<T: FromBytes + IntoBytes>(record: Record, at: usize, base: Ptr, symbol: &'static u64) {
    if let Some(value) = read::<T>(base, symbol) {
        record.put(at, value);
    }
}

/// Sets flags of the object.
#[inline(always)]
fn mark(record: Record, place: Place, flags: u32) {
    record.add_bits(place.at + offset_of!(FileObject, flags), flags);
}

/// Adds what the process said.
#[inline(always)]
fn say(record: Record, place: Place, name: Name) {
    let start = record.used();
    // SAFETY: the tail has room for PATH_MAX bytes.
    let len =
        unsafe { bpf_probe_read_user_str(record.tail().cast(), PATH_MAX as u32, name.at.cast()) };
    if len > 0 {
        // Without the NUL; `len` counts it.
        let len = (len as u32 - 1) & (PATH_MAX as u32 - 1);
        let max = name.max & (2 * PATH_MAX as u32 - 1);
        record.advance(if len > max { max } else { len } as usize);
    } else {
        mark(record, place, obj::PATH_UNREADABLE | obj::UNKNOWN);
    }
    mark(record, place, obj::ARGUMENT);
    record.put(place.at + offset_of!(FileObject, name), record.span(start, place.body));
}

/// Judges an effect on the one object at `path` and records it; returns what
/// a hook that `denies` is to answer.
#[inline(always)]
pub fn effect(job: u64, op: u16, path: Path, denies: bool) -> i32 {
    report(job, op, path, judge::file(job, path, op, judge::EXISTS), denies)
}

/// The same, when it is judged already.
#[inline(always)]
pub fn report(job: u64, op: u16, path: Path, found: Found, denies: bool) -> i32 {
    let decision = judge::settle(job, found.finding, denies);
    let sent = match begin(job, op) {
        None => false,
        Some(record) => {
            describe(record, Place::OBJECT, path, NO_NAME, found);
            none(record, Place::OTHER);
            record.submit(decision)
        }
    };
    judge::answer(job, decision, sent, denies)
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
