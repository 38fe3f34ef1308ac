//! Keys and values of the maps that user space fills and kernel programs read.

use core::mem::size_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Scratch slots for each CPU (`SLOTS`): as many programs may be in the middle
/// of a record there, one preempting the other.
pub const SLOTS_PER_CPU: u32 = 4;

/// The job number under which the daemon's own registrar thread is labelled: it
/// asks which file a descriptor leads to (see [`Registrar`]).
pub const REGISTRAR_JOB: u64 = u64::MAX;

/// The job number of the canaries' effects, which prove that hooks fire: all of
/// them go into the ring that nothing else crowds.
pub const CANARY_JOB: u64 = u64::MAX - 1;

/// Effect classes, the index of [`LostKey::class`].
pub mod class {
    pub const FILE: u32 = 0;
    pub const EXEC: u32 = 1;
    pub const ENV: u32 = 2;
    pub const NET: u32 = 3;
    pub const GUARD: u32 = 4;
    pub const COUNT: u32 = 5;
}

/// Value of `JOBS`, keyed by job: what holds for all of it.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Job {
    /// One of [`mode`].
    pub mode: u32,
    /// Bits of [`asks`].
    pub asks: u32,
}

/// What is done about an effect outside the policy.
pub mod mode {
    pub const OBSERVE: u32 = 0;
    /// SIGKILL for its process.
    pub const KILL: u32 = 1;
    /// `EPERM`.
    pub const ENFORCE: u32 = 2;
}

/// What a job's policy asks about, beside writing.
pub mod asks {
    /// What is opened to be read.
    pub const READS: u32 = 1;
    /// Which programs run.
    pub const PROGRAMS: u32 = 2;
    /// What cannot be reported is denied.
    pub const DENY_ON_LOSS: u32 = 4;
    /// Its effects are not judged: it is the canaries' own.
    pub const NOT_JUDGED: u32 = u32::MAX;
}

/// Value of `ROOTS`, keyed by inode pointer.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Root {
    /// Compared on every hit, against reuse of the pointer.
    pub ino: u64,
    pub dev: u32,
    /// The root's number, never 0, never used twice.
    pub id: u32,
}

/// Value of `GRANTS`: what the job may do below the root.
pub mod right {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const EXEC: u32 = 4;
    /// The policy itself names it, so that even credentials below it may be
    /// read; without it only a profile does.
    pub const NAMED: u32 = 8;
}

/// Key of `GRANTS`.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Grant {
    pub job: u64,
    pub root: u32,
    pub reserved: u32,
}

/// Key of `FILES`, a file that means something to a job beside where it lies.
///
/// The daemon holds every one of them open as long as it is here: so its inode
/// stays in memory, and neither the pointer nor the inode's number can become
/// another file's, not even when the file is deleted.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct FileKey {
    pub job: u64,
    /// The inode pointer.
    pub inode: u64,
}

/// Value of `FILES`.
pub mod meant {
    /// A listed program's.
    pub const PROGRAM: u32 = 1;
    /// A program that is judged by its arguments too, which only user space does.
    pub const ARGUMENTS: u32 = 2;
    /// A standard stream that the job was handed, open for reading.
    pub const STREAM_READ: u32 = 4;
    /// The same, open for writing.
    pub const STREAM_WRITE: u32 = 8;
    /// A listed Unix socket's.
    pub const UNIX: u32 = 16;
    /// It has a name outside the job's roots as well.
    pub const LINKED: u32 = 32;
}

/// Key of `TERMINALS`: the job's own.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Terminal {
    pub job: u64,
    /// `inode::i_rdev`
    pub rdev: u32,
    pub reserved: u32,
}

/// Key of `HOSTS`: an address that the job may reach.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Host {
    pub job: u64,
    /// Network byte order; IPv4 as IPv4-mapped IPv6.
    pub addr: [u8; 16],
    /// Host byte order; 0 for every port.
    pub port: u32,
    /// `IPPROTO_…`; 0 for every one.
    pub protocol: u32,
}

/// Key of `SEEN`: an effect inside the policy that was reported. It is not
/// reported again, only counted.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Seen {
    pub job: u64,
    /// The inode's number, or the address spoken to.
    pub what: [u64; 2],
    /// `qstr::hash_len` of the entry: its name, salted with its directory.
    pub name: u64,
    /// The inode pointer of the program that did it.
    pub program: u64,
    pub dev: u32,
    /// One of [`crate::wire::op`].
    pub op: u32,
}

/// Key of `OWN_SOCKETS`: a socket that is a job's although it was made elsewhere.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct OwnSocket {
    pub job: u64,
    /// The pointer to its `struct sock`, or to the `struct unix_address` that it
    /// shares with the socket by which it was accepted.
    pub what: u64,
}

/// Key of `NETWORKS`: a network namespace of a job's, or one of what is known of
/// them all ([`network`]).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Network {
    pub job: u64,
    /// `net::net_cookie`, which is never used twice.
    pub what: u64,
}

/// What else stands in [`Network::what`]; user space opens the first two with a
/// job, as 0.
pub mod network {
    /// How many the job has; more than [`MAX`] when some are not in the table.
    pub const COUNT: u64 = 0;
    /// 1 once the job has run a program.
    pub const RAN: u64 = 1 << 62;
    /// With `net::ns.inum` instead of the cookie: one that user space holds, so
    /// that no other gets its number.
    pub const NUMBER: u64 = 1 << 63;
    /// A job's namespaces that are kept.
    pub const MAX: u32 = 4096;
}

/// Key of `LOST`, whose values count records that did not fit the ring, and of
/// `REPEATED`, whose values count effects that were seen before.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct LostKey {
    pub job: u64,
    /// One of [`class`].
    pub class: u32,
    pub reserved: u32,
}

/// Value of `TASKS`, keyed by thread id (initial namespace).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Task {
    pub job: u64,
    /// Bits of [`task`].
    pub flags: u64,
}

/// Flags of a [`Task`].
pub mod task {
    /// Its use of the 32-bit system-call entry has been reported.
    pub const COMPAT_REPORTED: u64 = 1;
    /// It labelled itself: the system call that it is in, a write to
    /// `cgroup.procs`, began outside the job.
    pub const ENTERING: u64 = 2;
    /// That it uses an io_uring has been reported.
    pub const RING_REPORTED: u64 = 4;
}

/// The one value of `REGISTRAR`: how user space learns which file a descriptor
/// leads to. It calls `fcntl` on it, with a number that was not used before as
/// the argument, from a thread labelled [`REGISTRAR_JOB`], and reads the answer.
/// That works for whatever can be held open, sockets and terminals too, and does
/// nothing to it.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Registrar {
    /// The argument of the call that is answered.
    pub asked: u64,
    /// The inode pointer.
    pub inode: u64,
    /// `inode::i_ino`
    pub ino: u64,
    /// `super_block::s_dev`
    pub dev: u32,
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<Job>() == 8);
    assert!(size_of::<FileKey>() == 16);
    assert!(size_of::<Terminal>() == 16);
    assert!(size_of::<Host>() == 32);
    assert!(size_of::<Seen>() == 48);
    assert!(size_of::<OwnSocket>() == 16);
    assert!(size_of::<Network>() == 16);
    assert!(size_of::<Root>() == 16);
    assert!(size_of::<Grant>() == 16);
    assert!(size_of::<LostKey>() == 16);
    assert!(size_of::<Task>() == 16);
    assert!(size_of::<Registrar>() == 32);
};
