//! Tells user space which file a descriptor of its leads to: what `stat` says is
//! what the file system wants programs to see, and not what the hooks meet.

use aya_ebpf::{macros::map, maps::Array};
use effectgate_common::maps::Registrar;

use crate::{
    kernel::{
        OFF_DENTRY_INODE, OFF_DENTRY_SB, OFF_FILE_PATH_DENTRY, OFF_INODE_INO, OFF_SB_DEV,
        OFF_SB_MAGIC, Ptr, peek, peek_ptr,
    },
    overlay::{self, OVERLAYFS},
};

/// `F_GETFD`, include/uapi/asm-generic/fcntl.h: it takes no argument, so that the
/// registrar's gets by.
pub const COMMAND: u32 = 1;

/// See [`Registrar`].
#[map]
static REGISTRAR: Array<Registrar> = Array::with_max_entries(1, 0);

/// Answers `fcntl(file, F_GETFD, asked)`.
#[inline(always)]
pub fn answer(file: Ptr, asked: u64) {
    let Some(answer) = REGISTRAR.get_ptr_mut(0) else { return };
    // By the entry, as all that is judged.
    let dentry = peek_ptr(file, &OFF_FILE_PATH_DENTRY);
    let inode = peek_ptr(dentry, &OFF_DENTRY_INODE);
    let sb = peek_ptr(dentry, &OFF_DENTRY_SB);
    if peek::<u64>(sb, &OFF_SB_MAGIC) == OVERLAYFS {
        overlay::meet(sb);
    }
    // SAFETY: one writer, the registrar thread; it reads after the call.
    unsafe {
        *answer = Registrar {
            asked,
            inode: inode as u64,
            ino: peek(inode, &OFF_INODE_INO),
            dev: peek(sb, &OFF_SB_DEV),
            reserved: 0,
        };
    }
}
