//! An effect against its job's policy, by the tables that user space compiled
//! from it. The same questions in the same order as `effectgate-core`'s `judge`
//! asks them; user space judges every record again and says where the two differ.

mod address;
mod settle;

use aya_ebpf::{helpers::bpf_probe_read_kernel, macros::map, maps::HashMap};
use effectgate_common::{
    maps::{FileKey, Terminal, asks, meant, right},
    wire::{decision, obj, op},
};

pub use address::{Address, address, cuts_off};
pub use settle::{answer, denied, mode, settle};

use crate::{
    kernel::{
        OFF_DENTRY_INODE, OFF_DENTRY_NAME, OFF_DENTRY_SB, OFF_INODE_MODE, OFF_INODE_NLINK,
        OFF_INODE_RDEV, OFF_PID_TASKS, OFF_PROC_INODE_PID, OFF_PROC_INODE_VFS, OFF_SB_MAGIC,
        OFF_TASK_PID, OFF_TASK_PID_LINKS, OFF_TASK_TGID, Ptr, offset, peek, peek_ptr,
    },
    object::{self, Path},
    overlay::{self, OVERLAYFS},
    scope,
    verifier::veiled,
    walk,
};

/// Files that mean something to a job beside where they lie: bits of `meant`.
#[map]
static FILES: HashMap<FileKey, u32> = HashMap::with_max_entries(65536, 0);

/// Jobs' own terminals.
#[map]
static TERMINALS: HashMap<Terminal, u8> = HashMap::with_max_entries(4096, 0);

/// What a judgement found; the rest of a record repeats it.
#[derive(Clone, Copy)]
pub struct Found {
    /// The nearest root; 0 for none.
    pub root: u32,
    /// Bits of `wire::obj`.
    pub flags: u32,
    /// One of `wire::decision`, as in a job that is only observed.
    pub finding: u32,
}

impl Found {
    /// In one word: what a function that the verifier meets alone can return.
    #[inline(always)]
    fn pack(self) -> u64 {
        u64::from(self.root) | u64::from(self.flags) << 32 | u64::from(self.finding) << 56
    }

    #[inline(always)]
    fn unpack(word: u64) -> Found {
        Found {
            root: word as u32,
            flags: (word >> 32) as u32 & 0xff_ffff,
            finding: (word >> 56) as u32,
        }
    }
}

/// `S_IFMT`, `S_IFCHR`, `S_IFBLK`, include/uapi/linux/stat.h.
const TYPE_MASK: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const BLOCK_DEVICE: u32 = 0o060_000;
/// `PROC_SUPER_MAGIC`, include/uapi/linux/magic.h.
const PROC: u64 = 0x9fa0;

/// A node that does not exist yet: `mode << 32 | dev`, 0 for one that does.
pub type Node = u64;
pub const EXISTS: Node = 0;
/// It exists, and is another's although it lies where no path leads.
pub const ANOTHERS: Node = u64::MAX;

#[derive(Clone, Copy)]
struct Object {
    job: u64,
    /// Its pointer; 0 for one that does not exist yet.
    inode: u64,
    mode: u32,
    rdev: u32,
    nlink: u32,
    internal: bool,
}

/// Judges one file, directory or entry. Out of line: the verifier is to meet
/// it a few times, not once a hook.
#[inline(always)]
pub fn file(job: u64, path: Path, op: u16, node: Node) -> Found {
    let op = veiled(u64::from(op)) as u16;
    Found::unpack(veiled(judge_file(job, path.mnt, path.dentry, op, node)))
}

#[inline(never)]
fn judge_file(job: u64, mnt: Ptr, dentry: Ptr, op: u16, node: Node) -> u64 {
    let inode = peek_ptr(dentry, &OFF_DENTRY_INODE);
    let sb = peek_ptr(dentry, &OFF_DENTRY_SB);
    let mode = u32::from(peek::<u16>(inode, &OFF_INODE_MODE));
    let rdev = peek::<u32>(inode, &OFF_INODE_RDEV);
    let magic: u64 = peek(sb, &OFF_SB_MAGIC);
    if magic == OVERLAYFS {
        overlay::meet(sb);
    }
    let exists = node == EXISTS || node == ANOTHERS;
    // All in one word, which is all that lives on through the walk.
    let mut flags = if magic == PROC { veiled(whose(inode, dentry, job)) as u32 } else { 0 };
    if node == ANOTHERS {
        flags |= obj::ANOTHERS;
    }
    let object = Object {
        job,
        inode: inode as u64,
        mode: if exists { mode } else { (node >> 32) as u32 },
        rdev: if exists { rdev } else { node as u32 },
        nlink: peek(inode, &OFF_INODE_NLINK),
        internal: object::is_internal(mnt, sb) && node != ANOTHERS,
    };
    let root = walk::root(dentry, job);
    if !root.known {
        flags |= obj::UNKNOWN;
    }
    let own_proc = flags & obj::OWN_PROC != 0;
    let asks = asks(job);
    let finding = if asks == asks::NOT_JUDGED {
        decision::NONE
    } else {
        match op {
            op::NOTHING => decision::NONE,
            op::OPEN_READ if flags & OTHERS_ENVIRONMENT != 0 => decision::OUTSIDE,
            op::OPEN_READ => read(&object, root, own_proc, asks),
            op::MAP_EXEC => map_exec(&object, root, asks),
            _ => write(&object, root, own_proc, op),
        }
    };
    Found { root: root.id, flags: flags & !OTHERS_ENVIRONMENT, finding }.pack()
}

/// Beside the flags of the wire: the environment of a process that is not the
/// job's.
const OTHERS_ENVIRONMENT: u32 = 1 << 23;
/// How `/proc` calls the environment of a process.
const ENVIRONMENT: u64 = u64::from_ne_bytes(*b"environ\0");

/// Whose a file of a `/proc` is, as flags. Out of line, for the stack's sake.
#[inline(never)]
fn whose(inode: Ptr, dentry: Ptr, job: u64) -> u64 {
    if is_of_job(inode, job) {
        return obj::OWN_PROC.into();
    }
    let name = peek_ptr(dentry, &OFF_DENTRY_NAME).cast::<u64>();
    // SAFETY: the helper checks the address.
    let name = unsafe { bpf_probe_read_kernel(name) }.unwrap_or(0);
    if name == ENVIRONMENT { OTHERS_ENVIRONMENT.into() } else { 0 }
}

/// Whether an inode of a `/proc` is about the calling process, whatever number
/// that `/proc` knows it by, one of its threads, or another process of its job.
#[inline(always)]
fn is_of_job(inode: Ptr, job: u64) -> bool {
    let proc_inode = inode.wrapping_sub(offset(&OFF_PROC_INODE_VFS));
    let pid = peek_ptr(proc_inode, &OFF_PROC_INODE_PID);
    // The first of each: of the thread that has this id.
    let link = peek_ptr(pid, &OFF_PID_TASKS);
    let task = link.wrapping_sub(offset(&OFF_TASK_PID_LINKS));
    if pid.is_null() || link.is_null() {
        return false;
    }
    peek::<u32>(task, &OFF_TASK_TGID) == scope::pid()
        || scope::label(peek(task, &OFF_TASK_PID)).is_some_and(|label| label.job == job)
}

/// Where a file lies, not judged.
#[inline(always)]
pub fn place(job: u64, path: Path) -> Found {
    file(job, path, op::NOTHING, EXISTS)
}

/// What the job's policy asks about.
#[inline(always)]
fn asks(job: u64) -> u32 {
    match scope::JOBS.get_ptr(job) {
        // SAFETY: one word, written before the job starts.
        Some(rules) => unsafe { (*rules).asks },
        None => asks::NOT_JUDGED,
    }
}

#[inline(always)]
fn is_device(object: &Object) -> bool {
    let kind = object.mode & TYPE_MASK;
    (kind == CHARACTER_DEVICE || kind == BLOCK_DEVICE) && object.rdev != 0
}

/// A device is what its number says, wherever its node lies: one below a root
/// still leads out of it.
#[inline(always)]
fn write(object: &Object, root: walk::Root, own_proc: bool, op: u16) -> u32 {
    let through = matches!(op, op::OPEN_WRITE | op::TRUNCATE | op::WRITE | op::IOCTL);
    let leads_out = is_device(object) && (through || op == op::CREATE);
    let changes = through || matches!(op, op::CHMOD | op::CHOWN | op::SETXATTR | op::UTIMES);
    if changes && object.nlink > 1 && meant(object) & meant::LINKED != 0 {
        return decision::OUTSIDE;
    }
    if !leads_out && root.rights & right::WRITE != 0 {
        return decision::WITHIN;
    }
    let own = object.internal
        || through && (own_proc || stands_for_nothing(object, meant::STREAM_WRITE, WRITE_DEVICES));
    match () {
        () if own => decision::WITHIN,
        () if leads_out || root.known => decision::OUTSIDE,
        () => decision::UNKNOWN,
    }
}

#[inline(always)]
fn read(object: &Object, root: walk::Root, own_proc: bool, asks: u32) -> u32 {
    if asks & asks::READS == 0 || object.internal {
        return decision::WITHIN;
    }
    let own = || own_proc || stands_for_nothing(object, meant::STREAM_READ, READ_DEVICES);
    if is_device(object) {
        return if own() { decision::WITHIN } else { decision::OUTSIDE };
    }
    if root.rights & right::READ != 0 {
        // Below a root that only a profile names, credentials are refused by
        // their paths: for user space to say.
        return if root.rights & right::NAMED != 0 { decision::WITHIN } else { decision::NONE };
    }
    // A program that may run may also be read.
    if own() || meant(object) & meant::PROGRAM != 0 {
        return decision::WITHIN;
    }
    if root.known { decision::OUTSIDE } else { decision::UNKNOWN }
}

/// What the job wrote is code only below an exec root.
#[inline(always)]
fn map_exec(object: &Object, root: walk::Root, asks: u32) -> u32 {
    let written = root.rights & (right::WRITE | right::EXEC) == right::WRITE;
    if asks & asks::PROGRAMS == 0 || object.internal || !written {
        return decision::WITHIN;
    }
    decision::OUTSIDE
}

/// What a program's file makes of running it.
#[inline(always)]
pub fn program(job: u64, path: Path) -> Found {
    Found::unpack(veiled(judge_program(job, path.dentry)))
}

#[inline(never)]
fn judge_program(job: u64, dentry: Ptr) -> u64 {
    let key = FileKey { job, inode: peek(dentry, &OFF_DENTRY_INODE) };
    let root = walk::root(dentry, job);
    let flags = if root.known { 0 } else { obj::UNKNOWN };
    let asks = asks(job);
    let finding = if asks == asks::NOT_JUDGED {
        decision::NONE
    } else if asks & asks::PROGRAMS == 0 {
        decision::WITHIN
    } else {
        let listed = if root.rights & right::WRITE == 0 { file_meant(&key) } else { 0 };
        match () {
            () if listed & meant::ARGUMENTS != 0 => decision::NONE,
            () if listed & meant::PROGRAM != 0 => decision::WITHIN,
            // Its name and arguments can still make it a package manager's.
            () if root.rights & right::EXEC != 0 => decision::NONE,
            () if root.known => decision::OUTSIDE,
            () => decision::UNKNOWN,
        }
    };
    Found { root: root.id, flags, finding }.pack()
}

#[inline(always)]
fn meant(object: &Object) -> u32 {
    file_meant(&FileKey { job: object.job, inode: object.inode })
}

#[inline(always)]
fn file_meant(key: &FileKey) -> u32 {
    // SAFETY: one word, written before the job starts.
    unsafe { FILES.get(key) }.copied().unwrap_or(0)
}

/// Minor numbers of major 1 (Documentation/admin-guide/devices.txt), a bit each:
/// null, zero, full; to be read also random, urandom.
const WRITE_DEVICES: u32 = 1 << 3 | 1 << 5 | 1 << 7;
const READ_DEVICES: u32 = WRITE_DEVICES | 1 << 8 | 1 << 9;

/// A stream that the job was handed in this direction, a device that holds
/// nothing, its own terminal.
#[inline(always)]
fn stands_for_nothing(object: &Object, stream: u32, devices: u32) -> bool {
    if meant(object) & stream != 0 {
        return true;
    }
    if object.mode & TYPE_MASK != CHARACTER_DEVICE {
        return false;
    }
    let (major, minor) = (object.rdev >> 20, object.rdev & 0xf_ffff);
    if major == 1 && minor < 32 && devices >> minor & 1 != 0 || major == 5 && minor == 0 {
        return true;
    }
    TERMINALS.get_ptr(Terminal { job: object.job, rdev: object.rdev, reserved: 0 }).is_some()
}

/// Whether a Unix socket's file is listed.
#[inline(always)]
pub fn unix(job: u64, dentry: Ptr, own: bool) -> u32 {
    let key = FileKey { job, inode: peek(dentry, &OFF_DENTRY_INODE) };
    match () {
        () if asks(job) == asks::NOT_JUDGED => decision::NONE,
        () if own || file_meant(&key) & meant::UNIX != 0 => decision::WITHIN,
        () => decision::OUTSIDE,
    }
}

/// Whether effects of this job are judged: the canary's are not.
#[inline(always)]
pub fn judges(job: u64) -> bool {
    asks(job) != asks::NOT_JUDGED
}

/// Whether the job's policy asks which programs run.
#[inline(always)]
pub fn asks_programs(job: u64) -> bool {
    asks(job) & asks::PROGRAMS != 0
}

/// The more serious of two findings.
#[inline(always)]
pub fn worse(one: u32, other: u32) -> u32 {
    if rank(one) >= rank(other) { one } else { other }
}

#[inline(always)]
fn rank(finding: u32) -> u32 {
    match finding {
        decision::OUTSIDE => 3,
        decision::UNKNOWN => 2,
        decision::NONE => 1,
        _ => 0,
    }
}
