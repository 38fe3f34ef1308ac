//! An opened file, however it was opened.

use core::mem::offset_of;

use effectgate_common::{
    maps::{Seen, class},
    wire::{FileBody, decision, op},
};

use crate::{
    descriptor, emit, held,
    judge::{self, Node},
    kernel::{
        OFF_DENTRY_INODE, OFF_DENTRY_NAME_HASH, OFF_DENTRY_SB, OFF_FILE_FLAGS, OFF_FILE_INODE,
        OFF_FILE_MODE, OFF_FILE_PATH_DENTRY, OFF_FILE_PATH_MNT, OFF_INODE_INO, OFF_MM_EXE_FILE,
        OFF_SB_DEV, OFF_TASK_MM, Ptr, follow, peek, peek_ptr, read,
    },
    object::{self, Path, Place},
    scope,
    verifier::veiled,
};

// include/linux/fs.h
pub const FMODE_WRITE: u32 = 0x2;
pub const FMODE_PATH: u32 = 0x4000;
const FMODE_CREATED: u32 = 0x10_0000;
// include/uapi/asm-generic/fcntl.h
pub const O_TRUNC: u32 = 0o1000;
/// Set on the file that a stacking file system (overlayfs) opens on its real
/// layer, never on one that a task opens.
pub const FMODE_NOACCOUNT: u32 = 0x2000_0000;

/// The place of an open file.
#[inline(always)]
pub fn path_of(file: Ptr) -> Option<Path> {
    Some(Path {
        mnt: follow(file, &OFF_FILE_PATH_MNT)?,
        dentry: follow(file, &OFF_FILE_PATH_DENTRY)?,
    })
}

/// Judges and records an open by a job's task. `flags` are those that were asked
/// for: a file opened for reading can be emptied by it. Returns what a hook that `denies` is to answer.
#[inline(always)]
pub fn opened(file: Ptr, job: u64, flags: u32, denies: bool) -> i32 {
    let (Some(path), Some(mode)) = (path_of(file), read::<u32>(file, &OFF_FILE_MODE)) else {
        return descriptor::unreadable(job, denies);
    };
    if mode & FMODE_PATH != 0 || descriptor::is_layers(file) {
        return 0;
    }
    let op = if mode & FMODE_CREATED != 0 { op::CREATE } else { direction(mode, flags) };
    let node = if held::is_anothers(path, file) { judge::ANOTHERS } else { judge::EXISTS };
    taken(job, op, (path, node), Modes { mode, flags }, denies)
}

/// The same for a file that comes from another process, already open.
#[inline(always)]
pub fn received(file: Ptr, job: u64, path: Path, denies: bool) -> i32 {
    let mode: u32 = peek(file, &OFF_FILE_MODE);
    if mode & FMODE_PATH != 0 {
        return 0;
    }
    let flags = peek::<u32>(file, &OFF_FILE_FLAGS) & !O_TRUNC;
    taken(job, direction(mode, flags), (path, judge::EXISTS), Modes { mode, flags }, denies)
}

#[inline(always)]
fn direction(mode: u32, flags: u32) -> u16 {
    if mode & FMODE_WRITE != 0 || flags & O_TRUNC != 0 { op::OPEN_WRITE } else { op::OPEN_READ }
}

/// `file::f_mode` and `file::f_flags`.
#[derive(Clone, Copy)]
struct Modes {
    mode: u32,
    flags: u32,
}

#[inline(always)]
fn taken(job: u64, op: u16, (path, node): (Path, Node), modes: Modes, denies: bool) -> i32 {
    let op = veiled(u64::from(op)) as u16;
    let found = judge::file(job, path, op, veiled(node));
    let decision = judge::settle(job, found.finding, denies);
    if op != op::OPEN_READ && decision == decision::WITHIN {
        descriptor::note(job, peek_ptr(path.dentry, &OFF_DENTRY_INODE), false);
    }
    let repeats = op != op::CREATE && decision <= decision::WITHIN && judge::judges(job);
    let key = key(job, op, path);
    if repeats && emit::seen(&key, class::FILE) {
        return 0;
    }
    let sent = match object::begin(job, op) {
        None => false,
        Some(record) => {
            object::describe(record, Place::OBJECT, path, object::NO_NAME, found);
            object::none(record, Place::OTHER);
            record.put(offset_of!(FileBody, f_mode), modes.mode);
            record.put(offset_of!(FileBody, f_flags), modes.flags);
            record.submit(decision)
        }
    };
    if repeats && sent {
        emit::note(&key);
    }
    judge::answer(job, decision, sent, denies)
}

/// The same file under the same name, touched in the same way by the same
/// program.
#[inline(always)]
pub fn key(job: u64, op: u16, path: Path) -> Seen {
    let inode = peek_ptr(path.dentry, &OFF_DENTRY_INODE);
    Seen {
        job,
        what: [peek(inode, &OFF_INODE_INO), 0],
        name: peek(path.dentry, &OFF_DENTRY_NAME_HASH),
        program: program(),
        dev: peek(peek_ptr(path.dentry, &OFF_DENTRY_SB), &OFF_SB_DEV),
        op: u32::from(op),
    }
}

/// The inode pointer of the program that acts.
#[inline(always)]
pub fn program() -> u64 {
    let exe = peek_ptr(peek_ptr(scope::task(), &OFF_TASK_MM), &OFF_MM_EXE_FILE);
    peek(exe, &OFF_FILE_INODE)
}
