//! An opened file, however it was opened.

use core::mem::offset_of;

use effectgate_common::{
    maps::{REGISTRAR_JOB, Registrar, class},
    wire::{FileBody, op},
};

use crate::{
    kernel::{
        OFF_DENTRY_SB, OFF_FILE_INODE, OFF_FILE_MODE, OFF_FILE_PATH_DENTRY, OFF_FILE_PATH_MNT,
        OFF_INODE_INO, OFF_SB_DEV, Ptr, follow, read,
    },
    object::{self, Path, Place},
    scope,
};

// include/linux/fs.h
const FMODE_WRITE: u32 = 0x2;
const FMODE_PATH: u32 = 0x4000;
const FMODE_CREATED: u32 = 0x10_0000;
// include/uapi/asm-generic/fcntl.h
pub const O_TRUNC: u32 = 0o1000;
/// Set on the file that a stacking file system (overlayfs) opens on its real
/// layer, never on one that a task opens.
const FMODE_NOACCOUNT: u32 = 0x2000_0000;

/// The place of an open file.
#[inline(always)]
pub fn path_of(file: Ptr) -> Option<Path> {
    Some(Path {
        mnt: follow(file, &OFF_FILE_PATH_MNT)?,
        dentry: follow(file, &OFF_FILE_PATH_DENTRY)?,
    })
}

/// Records an open by a labelled task; answers the registrar. `flags` are those
/// that were asked for: a file opened for reading can be emptied by it.
#[inline(always)]
pub fn opened(file: Ptr, job: u64, flags: u32) {
    let (Some(path), Some(mode)) = (path_of(file), read::<u32>(file, &OFF_FILE_MODE)) else {
        crate::emit::lost(job, class::FILE);
        return;
    };
    if mode & (FMODE_PATH | FMODE_NOACCOUNT) != 0 {
        return;
    }
    if job == REGISTRAR_JOB {
        register(file);
        return;
    }
    let op = if mode & FMODE_CREATED != 0 {
        op::CREATE
    } else if mode & FMODE_WRITE != 0 || flags & O_TRUNC != 0 {
        op::OPEN_WRITE
    } else {
        op::OPEN_READ
    };
    let Some(record) = object::begin(job, op) else { return };
    object::describe(record, Place::OBJECT, path, object::NO_NAME, job);
    object::none(record, Place::OTHER);
    record.put(offset_of!(FileBody, f_mode), mode);
    record.put(offset_of!(FileBody, f_flags), flags);
    record.submit();
}

#[inline(always)]
fn register(file: Ptr) {
    let (Some(answer), Some(inode)) =
        (scope::REGISTRAR.get_ptr_mut(0), follow(file, &OFF_FILE_INODE))
    else {
        return;
    };
    // SAFETY: one writer, the registrar thread, which zeroed it before.
    if unsafe { (*answer).inode } != 0 {
        // To open a directory of an overlay opens the layer's too.
        return;
    }
    let dev = follow(file, &OFF_FILE_PATH_DENTRY)
        .and_then(|dentry| follow(dentry, &OFF_DENTRY_SB))
        .and_then(|sb| read(sb, &OFF_SB_DEV));
    // SAFETY: one writer, the registrar thread; it reads after the open.
    unsafe {
        *answer = Registrar {
            inode: inode as u64,
            ino: read(inode, &OFF_INODE_INO).unwrap_or(0),
            dev: dev.unwrap_or(0),
            reserved: 0,
        };
    }
}
