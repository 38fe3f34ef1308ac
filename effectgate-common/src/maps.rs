//! Keys and values of the maps that user space fills and kernel programs read.

use core::mem::size_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Scratch slots for each CPU (`SLOTS`): as many programs may be in the middle
/// of a record there, one preempting the other.
pub const SLOTS_PER_CPU: u32 = 4;

/// The job number under which the daemon's own registrar thread is labelled:
/// it opens a directory to learn its inode pointer (see [`Registrar`]).
pub const REGISTRAR_JOB: u64 = u64::MAX;

/// Effect classes, the index of [`LostKey::class`].
pub mod class {
    pub const FILE: u32 = 0;
    pub const EXEC: u32 = 1;
    pub const ENV: u32 = 2;
    pub const NET: u32 = 3;
    pub const GUARD: u32 = 4;
    pub const COUNT: u32 = 5;
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

/// Key of `GRANTS`: the job may change what lies below the root.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Grant {
    pub job: u64,
    pub root: u32,
    pub reserved: u32,
}

/// Key of `LOST`, whose values count records that did not fit the ring.
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
}

/// The one value of `REGISTRAR`: how user space learns the inode pointer of a
/// directory that it holds open. The daemon zeroes it, opens the directory
/// from a thread labelled [`REGISTRAR_JOB`], and reads the answer.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Registrar {
    /// The inode pointer; 0 while no open was seen.
    pub inode: u64,
    /// `inode::i_ino`
    pub ino: u64,
    /// `super_block::s_dev`
    pub dev: u32,
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<Root>() == 16);
    assert!(size_of::<Grant>() == 16);
    assert!(size_of::<LostKey>() == 16);
    assert!(size_of::<Task>() == 16);
    assert!(size_of::<Registrar>() == 24);
};
