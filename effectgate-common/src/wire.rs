//! Records on the ring.
//!
//! A record is a [`Header`], one fixed body chosen by [`Header::kind`], and a
//! tail of bytes that the body's [`Span`]s point into. All integers are in the
//! machine's byte order. A record's discriminants are plain integers: a value
//! that this version does not know stays representable and is reported, never
//! misread.

use core::mem::{offset_of, size_of};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Longest path or name kept, in bytes; longer ones are marked truncated.
pub const PATH_MAX: usize = 4096;
/// Path components followed towards the root before the walk gives up and
/// marks the object [`obj::UNKNOWN`].
pub const WALK_MAX: usize = 128;
/// Bytes of argument or environment strings in one [`ArgsBody`] record.
pub const ARGS_CHUNK: usize = 4096;
/// Most chunks sent for one argument or environment block; what lies beyond is
/// marked truncated.
pub const ARGS_CHUNKS_MAX: usize = 32;

/// Bytes `offset..offset + len` of the record's tail.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Span {
    /// From the first byte of the tail.
    pub offset: u32,
    /// In bytes; 0 when there is nothing.
    pub len: u32,
}

/// The first bytes of every record.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Header {
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub ts: u64,
    /// The job's number, given by the daemon when the job starts.
    pub job: u64,
    /// Counts the job's records from 0, those that were lost included: what is
    /// missing leaves a hole, and two rings can be put in order.
    pub seq: u64,
    /// Thread group (what user space calls the process id), initial namespace.
    pub pid: u32,
    /// Thread id, initial namespace.
    pub tid: u32,
    /// Real user id.
    pub uid: u32,
    /// Real group id.
    pub gid: u32,
    /// One of [`kind`].
    pub kind: u16,
    /// One of [`op`], for the kinds that have one.
    pub op: u16,
    /// Whole record including its tail, in bytes.
    pub len: u32,
    /// One of [`decision`].
    pub decision: u32,
    pub reserved: u32,
    /// `task_struct::comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// What the kernel programs made of an effect, by the tables that were compiled
/// from the job's policy.
pub mod decision {
    /// The kernel does not judge such effects, or not all that its policy says
    /// of this one.
    pub const NONE: u32 = 0;
    /// Inside the policy, or not asked about by it.
    pub const WITHIN: u32 = 1;
    /// Outside the policy; it was let happen.
    pub const OUTSIDE: u32 = 2;
    /// Not known to be inside; it was let happen.
    pub const UNKNOWN: u32 = 3;
    /// Outside or unknown, and denied: it did not happen.
    pub const DENIED: u32 = 4;
    /// Outside, and its process was killed.
    pub const KILLED: u32 = 5;
}

/// What a record is about.
pub mod kind {
    /// [`super::ForkBody`]
    pub const FORK: u16 = 1;
    /// [`super::ExecBody`]
    pub const EXEC: u16 = 2;
    /// [`super::ExitBody`]
    pub const EXIT: u16 = 3;
    /// [`super::ArgsBody`], argument strings of the exec just before
    pub const ARGV: u16 = 4;
    /// [`super::ArgsBody`], environment strings of the exec just before
    pub const ENVP: u16 = 5;
    /// [`super::FileBody`]
    pub const FILE: u16 = 6;
    /// [`super::NetBody`]
    pub const NET: u16 = 7;
    /// [`super::GuardBody`]
    pub const GUARD: u16 = 8;
    /// [`super::UnixBody`]
    pub const UNIX: u16 = 9;
}

/// What was done to a file, a socket, or the observer's own ground.
pub mod op {
    /// Nothing was done to it; it is only named.
    pub const NOTHING: u16 = 0;
    pub const OPEN_READ: u16 = 1;
    /// Opened for writing (`FMODE_WRITE`), whether or not it existed.
    pub const OPEN_WRITE: u16 = 2;
    /// Came into being by `open(O_CREAT)` or `mknod`.
    pub const CREATE: u16 = 3;
    pub const MKDIR: u16 = 4;
    pub const RMDIR: u16 = 5;
    pub const UNLINK: u16 = 6;
    /// `object` the old name, `other` the new one.
    pub const RENAME: u16 = 7;
    /// `object` the existing file, `other` the new name.
    pub const LINK: u16 = 8;
    pub const SYMLINK: u16 = 9;
    pub const TRUNCATE: u16 = 10;
    pub const CHMOD: u16 = 11;
    pub const CHOWN: u16 = 12;
    /// Written, or mapped to be written, through a descriptor that the job did
    /// not open itself.
    pub const WRITE: u16 = 13;
    /// An extended attribute or an access control list was set or removed.
    pub const SETXATTR: u16 = 14;
    /// Its times were set.
    pub const UTIMES: u16 = 15;
    /// An ioctl that changes the file or what is behind the device.
    pub const IOCTL: u16 = 16;
    /// Mapped, or made, executable.
    pub const MAP_EXEC: u16 = 17;

    pub const CONNECT: u16 = 32;
    pub const BIND: u16 = 33;
    /// `sendto`/`sendmsg` to an address, on a socket not connected.
    pub const SEND: u16 = 34;

    /// An io_uring was set up: its operations pass no system-call tracepoint.
    pub const IO_URING: u16 = 64;
    /// A system call through the 32-bit entry: its arguments are not decoded.
    pub const COMPAT_SYSCALL: u16 = 65;
    /// A socket was made whose traffic the network hooks do not see.
    pub const SOCKET: u16 = 68;
    /// A task of the job got, or put itself, below another root directory or
    /// into another mount namespace: [`super::GuardBody::value`] is 0; or it
    /// changed what is mounted where: 1.
    pub const VIEW: u16 = 69;
    /// A task entered the job's cgroup from outside.
    pub const ENTERED: u16 = 66;
    /// A task of the job was moved to a cgroup outside the job's.
    pub const ESCAPED: u16 = 67;
    /// The job reached for what is not its own: [`super::GuardBody::value`] is
    /// one of [`super::reach`].
    pub const REACHED: u16 = 70;
}

/// What a job can reach for that lies outside every policy.
pub mod reach {
    /// `bpf(2)`; `detail` is the command.
    pub const BPF: u32 = 1;
    /// `perf_event_open(2)`.
    pub const PERF: u32 = 2;
    /// Something is mounted, moved or remounted; `file` is where.
    pub const MOUNT: u32 = 3;
    /// Something is unmounted; `file` is what.
    pub const UMOUNT: u32 = 4;
    /// `pivot_root(2)`.
    pub const PIVOT_ROOT: u32 = 5;
    /// `chroot(2)`; `file` is where.
    pub const CHROOT: u32 = 6;
    /// Code or data that the kernel itself loads: modules, firmware, another
    /// kernel; `detail` is `enum kernel_load_data_id` or `kernel_read_file_id`.
    pub const LOAD: u32 = 7;
    /// Another process is attached to, or its memory or descriptors are taken;
    /// `pid` is which.
    pub const PTRACE: u32 = 8;
    /// A signal to another process, `pid`; `detail` is the signal.
    pub const SIGNAL: u32 = 9;
    /// A child in another cgroup (`CLONE_INTO_CGROUP`).
    pub const CLONE_INTO_CGROUP: u32 = 10;
    /// A privilege over the whole machine; `detail` is the capability.
    pub const CAPABILITY: u32 = 11;
    /// Input put into a terminal (`TIOCSTI`, `TIOCLINUX`).
    pub const TERMINAL: u32 = 12;
    /// A kernel thread of an io_uring that polls for work (`SQPOLL`).
    pub const SQPOLL: u32 = 13;
    /// A new user namespace.
    pub const USER_NAMESPACE: u32 = 14;
    /// A key of the kernel's key rings; `detail` is the permission asked for.
    pub const KEY: u32 = 15;
    /// A System V object of the job's own: memory, semaphores, messages; `detail`
    /// is its number.
    pub const IPC: u32 = 16;
    /// Being told of what happens to files (inotify, fanotify); `file` is which.
    pub const WATCH: u32 = 17;
    /// Other user or group ids.
    pub const IDENTITY: u32 = 18;
    /// The clock, the host's name, quotas, accounting, swap: a setting of the
    /// whole machine.
    pub const MACHINE: u32 = 19;
    /// A descriptor of a socket that was made outside the job.
    pub const SOCKET: u32 = 20;
    /// Another process's limits, priority, processors or place in memory, `pid`;
    /// `detail` is the number of the system call.
    pub const PROCESS: u32 = 21;
    /// A System V object that the job did not make, or not for sure; `detail` is
    /// its number.
    pub const OTHERS_IPC: u32 = 22;
    /// Whoever opens or reads files is to wait for the job (fanotify's
    /// permissions); `file` is which.
    pub const HOLD_UP: u32 = 23;
}

/// Flags of a [`FileObject`].
pub mod obj {
    /// The walk hit its bound or could not read: whether the object lies below
    /// a root is not known.
    pub const UNKNOWN: u32 = 1 << 0;
    /// `path` was cut, at the end nearest the file system's root.
    pub const PATH_TRUNCATED: u32 = 1 << 1;
    /// Part of `path` or `name` could not be read.
    pub const PATH_UNREADABLE: u32 = 1 << 2;
    /// Lives on a mount internal to the kernel (memfd, pipe, socket).
    pub const INTERNAL: u32 = 1 << 3;
    /// The directory entry is unlinked.
    pub const UNLINKED: u32 = 1 << 4;
    /// Nothing but system-call arguments is known: `path` is the directory the
    /// name was relative to (also the object that `root` speaks of), `name` the
    /// string that was passed.
    pub const ARGUMENT: u32 = 1 << 5;
    /// The path ends at the root of a mount that is not attached to the
    /// initial mount tree.
    pub const DETACHED: u32 = 1 << 6;
    /// On a `/proc`, in the directory of the process that acts, or of another one
    /// of its job.
    pub const OWN_PROC: u32 = 1 << 7;
    /// The hook knows no mount: the path is the one inside the file system.
    pub const IN_FILE_SYSTEM: u32 = 1 << 8;
    /// [`INTERNAL`], but reached through the descriptors of another process.
    pub const ANOTHERS: u32 = 1 << 9;
}

/// A file, directory or directory entry, as the kernel holds it.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct FileObject {
    /// The inode pointer, which tells it from every other file that there is at
    /// the time: device and number do not, on btrfs and overlays. 0 for a name
    /// that does not exist yet.
    pub inode: u64,
    /// `inode::i_ino`; 0 for a name that does not exist yet.
    pub ino: u64,
    /// `super_block::s_magic` (`linux/magic.h`).
    pub magic: u64,
    /// `super_block::s_dev`, the kernel's encoding (major << 20 | minor).
    pub dev: u32,
    /// `inode::i_rdev`, same encoding; 0 unless a device.
    pub rdev: u32,
    /// `inode::i_mode`: type and permission bits.
    pub mode: u32,
    /// `inode::i_nlink`
    pub nlink: u32,
    /// The nearest root above it that was granted to the job; 0 for none.
    pub root: u32,
    /// Bits of [`obj`].
    pub flags: u32,
    /// Components from the file towards the root, each ended by NUL, and none
    /// for the root directory itself.
    pub path: Span,
    /// A string given by the process, without its NUL.
    pub name: Span,
}

#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct FileBody {
    pub object: FileObject,
    /// The second object of a rename or link; all zero otherwise.
    pub other: FileObject,
    /// `file::f_mode` of an open; 0 otherwise.
    pub f_mode: u32,
    /// `file::f_flags` of an open; `AT_SYMLINK_NOFOLLOW` where the object is
    /// an argument and a symbolic link is itself meant; those of a rename;
    /// else 0.
    pub f_flags: u32,
}

#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ForkBody {
    /// `task_struct::start_boottime` of the child, nanoseconds.
    pub start: u64,
    /// The new process.
    pub pid: u32,
    /// Its parent, which `CLONE_PARENT` makes differ from the header's pid.
    pub ppid: u32,
}

#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ExecBody {
    /// The file that runs; for a script, the interpreter.
    pub file: FileObject,
    /// `task_struct::start_boottime` of the process, nanoseconds.
    pub start: u64,
    /// Size of the argument block, in bytes; it follows in [`kind::ARGV`].
    pub argv_len: u32,
    /// Size of the environment block, in bytes; it follows in [`kind::ENVP`].
    pub envp_len: u32,
    /// The script that was asked for (`linux_binprm::filename`), as it was
    /// written; empty when `file` itself was.
    pub filename: Span,
    pub ppid: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ExitBody {
    /// `task_struct::exit_code`: status in bits 8 to 15, signal in bits 0 to 6.
    pub code: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ArgsBody {
    /// Where this chunk starts in the block, in bytes.
    pub offset: u32,
    /// The whole block, in bytes.
    pub total: u32,
    /// Empty when the memory could not be read.
    pub bytes: Span,
}

#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct NetBody {
    /// Network byte order; IPv4 in the first four bytes.
    pub addr: [u8; 16],
    /// `AF_INET` or `AF_INET6`.
    pub family: u32,
    /// `IPPROTO_…`
    pub protocol: u32,
    /// Host byte order.
    pub port: u32,
    /// `SOCK_…`
    pub sock_type: u32,
    /// 1 when the socket that answers there was made inside the job.
    pub own: u32,
    /// One of [`namespace`].
    pub namespace: u32,
}

/// Whose network namespace a socket is in.
pub mod namespace {
    /// The job's: it made it, or came with it.
    pub const OWN: u32 = 0;
    pub const FOREIGN: u32 = 1;
    pub const UNKNOWN: u32 = 2;
}

/// A Unix socket that the job speaks to.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct UnixBody {
    /// The file it is bound to; zero for an abstract or unnamed one.
    pub file: FileObject,
    /// Its abstract name, without the leading NUL.
    pub name: Span,
    /// 1 when it was made inside the job.
    pub own: u32,
    /// `SOCK_…`
    pub sock_type: u32,
}

#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct GuardBody {
    /// The file that the moved process runs; zero when nothing moved.
    pub file: FileObject,
    /// `task_struct::start_boottime` of the moved process, nanoseconds.
    pub start: u64,
    /// For [`op::ENTERED`] and [`op::ESCAPED`] the process moved; for
    /// [`op::REACHED`] the process reached for; else 0.
    pub pid: u32,
    pub ppid: u32,
    /// System-call number for [`op::COMPAT_SYSCALL`], `IPPROTO_…` for
    /// [`op::SOCKET`], whether mounts changed for [`op::VIEW`], one of [`reach`]
    /// for [`op::REACHED`]; else 0.
    pub value: u32,
    /// `AF_… << 16 | SOCK_…` for [`op::SOCKET`], what [`reach`] says for
    /// [`op::REACHED`]; else 0.
    pub detail: u32,
    /// `task_struct::comm` of the moved process.
    pub comm: [u8; 16],
}

/// Every fixed part with its name in the object's BTF, its size, and the
/// offsets of its fields. The one list that both the constant assertions and
/// the comparison with the built object walk.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
}

macro_rules! layouts {
    ($($ty:ident = $size:literal { $($field:ident = $offset:literal),* $(,)? })*) => {
        $(const _: () = {
            assert!(size_of::<$ty>() == $size);
            $(assert!(offset_of!($ty, $field) == $offset);)*
        };)*
        pub const LAYOUTS: &[Layout] = &[$(Layout {
            name: stringify!($ty),
            size: $size,
            fields: &[$((stringify!($field), $offset)),*],
        }),*];
    };
}

layouts! {
    Span = 8 { offset = 0, len = 4 }
    Header = 72 { ts = 0, job = 8, seq = 16, pid = 24, tid = 28, uid = 32, gid = 36, kind = 40, op = 42, len = 44, decision = 48, reserved = 52, comm = 56 }
    FileObject = 64 { inode = 0, ino = 8, magic = 16, dev = 24, rdev = 28, mode = 32, nlink = 36, root = 40, flags = 44, path = 48, name = 56 }
    FileBody = 136 { object = 0, other = 64, f_mode = 128, f_flags = 132 }
    ForkBody = 16 { start = 0, pid = 8, ppid = 12 }
    ExecBody = 96 { file = 0, start = 64, argv_len = 72, envp_len = 76, filename = 80, ppid = 88, reserved = 92 }
    ExitBody = 8 { code = 0, reserved = 4 }
    ArgsBody = 16 { offset = 0, total = 4, bytes = 8 }
    NetBody = 40 { addr = 0, family = 16, protocol = 20, port = 24, sock_type = 28, own = 32, namespace = 36 }
    UnixBody = 80 { file = 0, name = 64, own = 72, sock_type = 76 }
    GuardBody = 104 { file = 0, start = 64, pid = 72, ppid = 76, value = 80, detail = 84, comm = 88 }
}
