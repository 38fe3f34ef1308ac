//! Commands to a file or a device (`ioctl`).

use aya_ebpf::{macros::map, maps::HashMap};
use effectgate_common::wire::{op, reach};

use crate::{
    descriptor::{self, Kind, kind},
    guard::{Reach, gives_signals, reached, signals_given},
    hook::{Hook, hooks},
    kernel::{OFF_FILE_INODE, Ptr, peek_ptr},
    object, open, scope,
};

/// The entries whose flags an ioctl that was reported sets, by thread id.
#[map]
static ANNOUNCED: HashMap<u32, u64> = HashMap::with_max_entries(65536, 0);

hooks! {
    "file_ioctl" "security_file_ioctl" file_ioctl fexit_file_ioctl given 3 => commanded;
    "file_ioctl_compat" "security_file_ioctl_compat" file_ioctl_compat fexit_file_ioctl_compat given 3 => commanded;
}

/// `file_ioctl(file, command, argument)`
#[inline(always)]
fn commanded<H: Hook>(ctx: &H) -> i32 {
    let command: u32 = ctx.arg(1);
    if touches_nothing(command) {
        return 0;
    }
    let Some(job) = scope::current_job() else { return 0 };
    if gives_signals(command) {
        return signals_given(job, command, ctx.arg(2), H::DENIES);
    }
    let file: Ptr = ctx.arg(0);
    let kind = kind(peek_ptr(file, &OFF_FILE_INODE));
    let asks_only = match kind {
        Kind::File => command >> 8 & 0xff == TERMINALS || asks_of_file(command),
        Kind::Device => asks_of_device(command),
        Kind::Other => true,
    };
    if asks_only || descriptor::is_layers(file) {
        return 0;
    }
    let Some(path) = open::path_of(file) else { return descriptor::unreadable(job, H::DENIES) };
    if kind == Kind::Device && reaches_terminal(command) {
        let what = Reach { path, ..Reach::out(reach::TERMINAL, command) };
        return reached(job, what, H::DENIES);
    }
    let answer = object::effect(job, op::IOCTL, path, H::DENIES);
    if answer == 0 && sets_flags(command) {
        let _ = ANNOUNCED.insert(scope::tid(), path.dentry as u64, 0);
    }
    answer
}

/// Whether a command is about more of a terminal than the job's use of it. What is
/// put into one (`TIOCSTI`, `TIOCLINUX`), a shell outside may read after the job;
/// or the whole console is led there (`TIOCCONS`), or everybody is thrown out
/// (`TIOCVHANGUP`).
#[inline(always)]
pub fn reaches_terminal(command: u32) -> bool {
    matches!(command, 0x5412 | 0x541c | 0x541d | 0x5437)
}

/// Whether the flags of this entry are being set by an ioctl that was reported.
#[inline(always)]
pub fn announced(entry: Ptr) -> bool {
    let tid = scope::tid();
    // SAFETY: only this thread writes its entry.
    let same = unsafe { ANNOUNCED.get(tid) }.copied() == Some(entry as u64);
    same && ANNOUNCED.remove(tid).is_ok()
}

/// Drops what a thread that ends may have left.
#[inline(always)]
pub fn forget(tid: u32) {
    let _ = ANNOUNCED.remove(tid);
}

// include/uapi/asm-generic/ioctls.h
/// The group of all commands there; nothing but a terminal knows them, beside
/// those of [`touches_nothing`].
const TERMINALS: u32 = 0x54;

// include/uapi/linux/fs.h
/// `FS_IOC_SETFLAGS`, the same of a 32-bit process, `FS_IOC_FSSETXATTR`.
#[inline(always)]
pub fn sets_flags(command: u32) -> bool {
    matches!(command, 0x4008_6602 | 0x4004_6602 | 0x401c_5820)
}

/// Commands about the descriptor, not about what is behind it, and questions
/// (include/uapi/asm-generic/ioctls.h): `FIONBIO`, `FIONREAD`, `FIONCLEX`,
/// `FIOCLEX`, `FIOASYNC`, `FIOQSIZE`; whether it is a terminal and how large,
/// `TCGETS`, `TIOCGWINSZ`.
#[inline(always)]
fn touches_nothing(command: u32) -> bool {
    matches!(command, 0x5401 | 0x5413 | 0x541b | 0x5421 | 0x5450..=0x5452 | 0x5460)
}

/// Commands to a file or directory that change nothing, or that come to
/// `file_permission` when they do.
#[inline(always)]
fn asks_of_file(command: u32) -> bool {
    // `_IOR` (include/uapi/asm-generic/ioctl.h): the kernel only writes what it
    // is asked for. Some have said so and done something else.
    let answers = command >> 30 == 2;
    let lies = matches!(
        command,
        // FS_IOC_SET_ENCRYPTION_POLICY, include/uapi/linux/fscrypt.h
        0x800c_6613
        // EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN, F2FS_IOC_SHUTDOWN
        | 0x8004_587d
        // F2FS_IOC_RELEASE_COMPRESS_BLOCKS and RESERVE_…, include/uapi/linux/f2fs.h
        | 0x8008_f512 | 0x8008_f513
        // BTRFS_IOC_QGROUP_LIMIT, include/uapi/linux/btrfs.h
        | 0x8030_942b
    );
    answers && !lies
        || matches!(
            command,
            // include/uapi/linux/fs.h: FIBMAP, FIGETBSZ, FS_IOC_FIEMAP,
            // PROCMAP_QUERY; FICLONE, FICLONERANGE, FIDEDUPERANGE are writes.
            0x1 | 0x2 | 0xc020_660b | 0xc068_6611
            | 0x4004_9409 | 0x4020_940d | 0xc018_9436
            // include/uapi/linux/fsmap.h: FS_IOC_GETFSMAP
            | 0xc0c0_583b
            // include/uapi/linux/fsverity.h: MEASURE_VERITY, READ_VERITY_METADATA
            | 0xc004_6686 | 0xc028_6687
            // include/uapi/linux/fscrypt.h: GET_ENCRYPTION_POLICY and …_EX,
            // GET_ENCRYPTION_KEY_STATUS
            | 0x400c_6615 | 0xc009_6616 | 0xc080_661a
        )
}

/// Questions to a device.
#[inline(always)]
fn asks_of_device(command: u32) -> bool {
    matches!(
        command,
        // include/uapi/asm-generic/ioctls.h: TCGETA, TIOCGPGRP, TIOCOUTQ,
        // TIOCMGET, TIOCGSOFTCAR, TIOCGSERIAL, TIOCGETD, TIOCGSID, TCGETS2,
        // TIOCGPTN, TIOCGPTPEER excepted, TIOCGPKT, TIOCGPTLCK, TIOCGEXCL,
        // TIOCGDEV
        0x5405 | 0x540f | 0x5411 | 0x5415 | 0x5419 | 0x541e | 0x5424 | 0x5429
        | 0x802c_542a | 0x8004_5430 | 0x8004_5438 | 0x8004_5439 | 0x8004_5440 | 0x8004_5432
        // include/uapi/linux/fs.h: BLKROGET, BLKGETSIZE, BLKRAGET, BLKFRAGET,
        // BLKSECTGET, BLKSSZGET, BLKBSZGET, BLKGETSIZE64, BLKIOMIN, BLKIOOPT,
        // BLKALIGNOFF, BLKPBSZGET, BLKDISCARDZEROES, BLKROTATIONAL, BLKGETDISKSEQ
        | 0x125e | 0x1260 | 0x1263 | 0x1265 | 0x1267 | 0x1268
        | 0x8008_1270 | 0x8008_1272 | 0x1278 | 0x1279 | 0x127a | 0x127b | 0x127c | 0x127e
        | 0x8008_1280
        // include/uapi/linux/hdreg.h: HDIO_GETGEO
        | 0x301
        // include/uapi/linux/random.h: RNDGETENTCNT
        | 0x8004_5200
    )
}
