//! What lies where no path leads, pipes and memory, is nobody's but those who
//! hold it. `/proc/PID/fd` leads there all the same.

use aya_ebpf::helpers::bpf_probe_read_kernel;

use crate::{
    kernel::{
        OFF_DENTRY_INODE, OFF_DENTRY_SB, OFF_FDTABLE_FD, OFF_FDTABLE_MAX, OFF_FILE_INODE,
        OFF_FILE_MODE, OFF_FILES_FDT, OFF_INODE_MODE, OFF_SB_MAGIC, OFF_TASK_FILES, Ptr, peek,
        peek_ptr,
    },
    object::{self, Path},
    open::{self, FMODE_PATH},
    repeat::{GO_ON, STOP, repeat},
    scope,
};

// include/uapi/linux/stat.h
const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFREG: u32 = 0o100_000;
/// `NSFS_MAGIC`, `PID_FS_MAGIC` (include/uapi/linux/magic.h): of what they stand
/// for nothing is changed by opening them.
const NAMESPACES: u64 = 0x6e73_6673;
const PROCESSES: u64 = 0x5049_4446;
/// Descriptors of a process that are looked at.
const DESCRIPTORS: u32 = 1 << 16;

struct Search {
    array: u64,
    count: u64,
    inode: u64,
    except: u64,
    found: u64,
}

/// Whether what is opened at `path` is a pipe or memory that the process does
/// not hold: then somebody else does. `except`: the file by which it is being
/// opened, which may be among its descriptors by now.
#[inline(always)]
pub fn is_anothers(path: Path, except: Ptr) -> bool {
    let sb = peek_ptr(path.dentry, &OFF_DENTRY_SB);
    object::is_internal(path.mnt, sb) && is_held_elsewhere(path.dentry, except) != 0
}

#[inline(never)]
fn is_held_elsewhere(dentry: Ptr, except: Ptr) -> u64 {
    let inode = peek_ptr(dentry, &OFF_DENTRY_INODE);
    let magic: u64 = peek(peek_ptr(dentry, &OFF_DENTRY_SB), &OFF_SB_MAGIC);
    let kind = u32::from(peek::<u16>(inode, &OFF_INODE_MODE)) & S_IFMT;
    let holds = kind == S_IFIFO || kind == S_IFREG && magic != NAMESPACES && magic != PROCESSES;
    // A program can run from memory.
    if !holds || open::program() == inode as u64 {
        return 0;
    }
    let table = peek_ptr(peek_ptr(scope::task(), &OFF_TASK_FILES), &OFF_FILES_FDT);
    let mut search = Search {
        array: peek(table, &OFF_FDTABLE_FD),
        count: u64::from(peek::<u32>(table, &OFF_FDTABLE_MAX)),
        inode: inode as u64,
        except: except as u64,
        found: 0,
    };
    repeat(DESCRIPTORS, look, &mut search);
    u64::from(search.found == 0)
}

extern "C" fn look(fd: u64, search: *mut Search) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let search = unsafe { &mut *search };
    if fd >= search.count {
        return STOP;
    }
    let at = search.array.wrapping_add(fd * 8) as *const u64;
    // SAFETY: the helper checks the address.
    let file = unsafe { bpf_probe_read_kernel(at) }.unwrap_or(0);
    if file == search.except || peek::<u64>(file as Ptr, &OFF_FILE_INODE) != search.inode {
        return GO_ON;
    }
    // One that only names it (`O_PATH`) can be had of anything.
    if peek::<u32>(file as Ptr, &OFF_FILE_MODE) & FMODE_PATH != 0 {
        return GO_ON;
    }
    search.found = 1;
    STOP
}
