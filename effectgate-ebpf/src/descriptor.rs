//! Effects through a descriptor that the job may not have opened itself: it was
//! started with it, was sent it, or took it from another process.

use aya_ebpf::{macros::map, maps::LruHashMap};
use effectgate_common::{
    maps::class,
    wire::{decision, op},
};

use crate::{
    emit,
    hook::{Hook, hooks},
    judge,
    kernel::{
        OFF_BACKING_FILE_PATH, OFF_DENTRY_INODE, OFF_FILE_INODE, OFF_FILE_MODE, OFF_INODE_INO,
        OFF_INODE_MODE, OFF_INODE_SB, OFF_PATH_DENTRY, OFF_PATH_MNT, OFF_TASK_PERSONALITY,
        OFF_VFSMOUNT_FLAGS, OFF_VMA_FILE, OFF_VMA_FLAGS, Ptr, offset, peek, peek_ptr,
    },
    object::{self, MNT_INTERNAL, Path},
    open::{self, FMODE_NOACCOUNT, FMODE_WRITE},
    overlay, scope,
};

/// A file that a job may write, as was found out before.
#[derive(Clone, Copy)]
#[repr(C)]
struct Key {
    job: u64,
    /// The inode pointer.
    inode: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Known {
    /// Both compared on a hit, against reuse of the pointer.
    ino: u64,
    sb: u64,
    /// Whether it is a write of its own that is to be told of, and was.
    told: u64,
}

#[map]
static WRITABLE: LruHashMap<Key, Known> = LruHashMap::with_max_entries(65536, 0);

hooks! {
    "file_permission" "security_file_permission" file_permission fexit_file_permission given 2 => used;
    "file_receive" "security_file_receive" file_receive fexit_file_receive given 1 => received;
    "mmap_file" "security_mmap_file" mmap_file fexit_mmap_file given _ => mapped;
    "file_mprotect" "security_file_mprotect" file_mprotect fexit_file_mprotect given 3 => protected;
}

// include/uapi/linux/stat.h
const S_IFMT: u32 = 0o170_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFDIR: u32 = 0o040_000;
const S_IFBLK: u32 = 0o060_000;
const S_IFREG: u32 = 0o100_000;

/// What kind of thing an inode is.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// A file or a directory.
    File,
    Device,
    /// A pipe or a socket, or what is no file at all.
    Other,
}

#[inline(always)]
pub fn kind(inode: Ptr) -> Kind {
    match u32::from(peek::<u16>(inode, &OFF_INODE_MODE)) & S_IFMT {
        S_IFREG | S_IFDIR => Kind::File,
        S_IFCHR | S_IFBLK => Kind::Device,
        _ => Kind::Other,
    }
}

/// `MAY_WRITE`, `MAY_APPEND` (`include/linux/fs.h`).
const MAY_CHANGE: u32 = 0x2 | 0x8;

/// `file_permission(file, mask)`: each read and each write, of whatever kind.
#[inline(always)]
fn used<H: Hook>(ctx: &H) -> i32 {
    let mask: u32 = ctx.arg(1);
    if mask & MAY_CHANGE == 0 {
        return 0;
    }
    let Some(job) = scope::current_job() else { return 0 };
    let file: Ptr = ctx.arg(0);
    let inode = peek_ptr(file, &OFF_FILE_INODE);
    if kind(inode) == Kind::Other || may_write(job, inode) || is_layers(file) {
        return 0;
    }
    match open::path_of(file) {
        Some(path) => changed(job, path, true, false, H::DENIES),
        None => unreadable(job, H::DENIES),
    }
}

/// `file_receive(file)`: judged as if it were opened. Sockets lead elsewhere, and
/// what lies in no file system is nobody else's.
#[inline(always)]
fn received<H: Hook>(ctx: &H) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let file: Ptr = ctx.arg(0);
    if kind(peek_ptr(file, &OFF_FILE_INODE)) == Kind::Other {
        return 0;
    }
    match open::path_of(file) {
        Some(path) if peek::<u32>(path.mnt, &OFF_VFSMOUNT_FLAGS) & MNT_INTERNAL == 0 => {
            open::received(file, job, path, H::DENIES)
        }
        Some(_) => 0,
        None => unreadable(job, H::DENIES),
    }
}

// include/uapi/asm-generic/mman-common.h, include/uapi/linux/mman.h; the latter
// is a bit of MAP_SHARED_VALIDATE too.
const PROT_READ: u64 = 0x1;
const PROT_WRITE: u64 = 0x2;
const PROT_EXEC: u64 = 0x4;
pub const MAP_SHARED: u64 = 0x1;
/// include/uapi/linux/personality.h
const READ_IMPLIES_EXEC: u32 = 0x40_0000;

/// `mmap_file(file, asked, protection, flags)`; the function has no `asked`, and
/// finds out itself what else the protection is.
#[inline(always)]
fn mapped<H: Hook>(ctx: &H) -> i32 {
    let file: Ptr = ctx.arg(0);
    if file.is_null() {
        return 0;
    }
    let (mut protection, flags): (u64, u64) =
        if H::DENIES { (ctx.arg(2), ctx.arg(3)) } else { (ctx.arg(1), ctx.arg(2)) };
    if !H::DENIES && runs(protection) {
        protection |= PROT_EXEC;
    }
    if protection & (PROT_WRITE | PROT_EXEC) == 0 {
        return 0;
    }
    let Some(job) = scope::current_job() else { return 0 };
    // Without it the mapping is refused later on.
    let writable = peek::<u32>(file, &OFF_FILE_MODE) & FMODE_WRITE != 0;
    let write = protection & PROT_WRITE != 0 && flags & MAP_SHARED != 0 && writable;
    match open::path_of(file) {
        Some(path) => changed(job, path, write, protection & PROT_EXEC != 0, H::DENIES),
        // No file is mapped: up to 7.0, the verifier takes it for granted and
        // leaves out the question above.
        None => 0,
    }
}

/// Whether what a process asks for makes code of it: some get that with
/// everything that they read.
#[inline(always)]
pub fn runs(protection: u64) -> bool {
    let implied = || peek::<u32>(scope::task(), &OFF_TASK_PERSONALITY) & READ_IMPLIES_EXEC != 0;
    protection & PROT_EXEC != 0 || protection & PROT_READ != 0 && implied()
}

// include/linux/mm.h
const VM_WRITE: u64 = 0x2;
const VM_EXEC: u64 = 0x4;
const VM_SHARED: u64 = 0x8;

/// `file_mprotect(vma, asked, protection)`
#[inline(always)]
fn protected<H: Hook>(ctx: &H) -> i32 {
    let protection: u64 = ctx.arg(2);
    if protection & (PROT_WRITE | PROT_EXEC) == 0 {
        return 0;
    }
    let vma: Ptr = ctx.arg(0);
    let file = peek_ptr(vma, &OFF_VMA_FILE);
    let Some(job) = scope::current_job() else { return 0 };
    let Some(path) = mapped_path(file) else { return 0 };
    let flags: u64 = peek(vma, &OFF_VMA_FLAGS);
    let write = protection & PROT_WRITE != 0 && flags & (VM_SHARED | VM_WRITE) == VM_SHARED;
    let exec = protection & PROT_EXEC != 0 && flags & VM_EXEC == 0;
    changed(job, path, write, exec, H::DENIES)
}

/// The place of a mapped file. What is mapped of an overlay is its layer's file,
/// which says what was opened: first as its own path, then beside it. That it is
/// such a file is said by another bit of its mode from kernel to kernel, but all
/// are left out of account; others that are say nothing there that is a place.
#[inline(always)]
pub fn mapped_path(file: Ptr) -> Option<Path> {
    let beside = offset(&OFF_BACKING_FILE_PATH);
    if beside == 0 || peek::<u32>(file, &OFF_FILE_MODE) & FMODE_NOACCOUNT == 0 {
        return open::path_of(file);
    }
    let at = file.wrapping_add(beside);
    Some(Path { mnt: peek_ptr(at, &OFF_PATH_MNT), dentry: peek_ptr(at, &OFF_PATH_DENTRY) })
}

/// Whether overlayfs acts, on a file of its layers.
#[inline(always)]
pub fn is_layers(file: Ptr) -> bool {
    peek::<u32>(file, &OFF_FILE_MODE) & FMODE_NOACCOUNT != 0 || overlay::is_acting()
}

/// Judges and records a write, and that something is made code. Code is told of
/// only when it is none of the job's to run: it is mapped with every program.
#[inline(always)]
pub fn changed(job: u64, path: Path, write: bool, exec: bool, denies: bool) -> i32 {
    let inode = peek_ptr(path.dentry, &OFF_DENTRY_INODE);
    // Memory, and what else has no name, holds nothing of others.
    if peek::<u32>(path.mnt, &OFF_VFSMOUNT_FLAGS) & MNT_INTERNAL != 0 {
        note(job, inode, false);
        return 0;
    }
    if !judge::judges(job) {
        return 0;
    }
    if exec {
        let found = judge::file(job, path, op::MAP_EXEC, judge::EXISTS);
        if found.finding > decision::WITHIN {
            return object::report(job, op::MAP_EXEC, path, found, denies);
        }
    }
    if !write || may_write(job, inode) {
        return 0;
    }
    let found = judge::file(job, path, op::WRITE, judge::EXISTS);
    if found.finding == decision::WITHIN {
        note(job, inode, true);
    }
    object::report(job, op::WRITE, path, found, denies)
}

/// Whether it was found out before that the job may write it; counted if that
/// was told.
#[inline(always)]
pub fn may_write(job: u64, inode: Ptr) -> bool {
    // SAFETY: what another file's entry says is compared.
    let Some(known) = (unsafe { WRITABLE.get(Key { job, inode: inode as u64 }) }) else {
        return false;
    };
    let same = known.ino == peek(inode, &OFF_INODE_INO) && known.sb == peek(inode, &OFF_INODE_SB);
    if same && known.told != 0 {
        emit::repeated(job, class::FILE);
    }
    same
}

/// Takes note of a file that the job may write: `told` if a write through any
/// descriptor was reported, and not only that it was opened.
#[inline(always)]
pub fn note(job: u64, inode: Ptr, told: bool) {
    let known = Known {
        ino: peek(inode, &OFF_INODE_INO),
        sb: peek(inode, &OFF_INODE_SB),
        told: u64::from(told),
    };
    // A full table forgets what was not used for long; then it is judged again.
    let _ = WRITABLE.insert(Key { job, inode: inode as u64 }, known, 0);
}

/// An effect on a file whose place could not be read.
#[inline(always)]
pub fn unreadable(job: u64, denies: bool) -> i32 {
    emit::lost(job, class::FILE);
    judge::answer(job, judge::settle(job, decision::UNKNOWN, denies), false, denies)
}
