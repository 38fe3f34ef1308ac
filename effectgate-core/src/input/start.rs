//! How a job begins: its policy, and what was found of it on the machine.

use std::net::IpAddr;

use super::{Backend, Bytes, Coverage, Coverages, Device, FileId, JobId, Known, Mode, UnixNanos};
use crate::policy::{Policy, Rights};

/// How a job begins.
#[derive(Clone, Debug)]
pub struct Started {
    pub job: JobId,
    pub ts: UnixNanos,
    /// Unix time minus boot time, nanoseconds, by which the observer turns the
    /// kernel's times into `ts`. Process starts stay in boot time.
    pub boot_offset: u64,
    /// The name in records and file names.
    pub name: String,
    pub policy: Policy,
    pub note: Option<crate::pin::ReviewNote>,
    pub host: String,
    pub kernel: String,
    pub backend: Backend,
    pub coverage: Coverages,
    pub min_coverage: Coverage,
    pub mode: Mode,
    /// The kernel programs judge too, by tables compiled from this policy, and
    /// know whose sockets answer. False where a log says nothing of it, and
    /// where one is judged by another policy than it was written under.
    pub judged: bool,
    /// SHA-256 of the kernel object, lower-case hexadecimal.
    pub programs: String,
    pub argv: Vec<Bytes>,
    /// The directory of the job's own cgroup, as an absolute path.
    pub cgroup: String,
    /// The directory that relative roots are relative to, resolved.
    pub workspace: Option<Bytes>,
    /// The home of the job's user, which profiles write as `~/`.
    pub home: Option<Bytes>,
    /// Roots as the kernel knows them, by the number in [`FileObject::root`](super::FileObject::root).
    pub roots: Vec<Root>,
    /// The files that the names of the policy's programs mean.
    pub binaries: Vec<Found>,
    /// The files that the policy's Unix sockets are bound to; those that were
    /// not there when the job started allow nothing.
    pub sockets: Vec<Found>,
    /// Files below the job's roots that had another name elsewhere when it
    /// started: what changes them changes what is outside.
    pub linked: Vec<Linked>,
    /// Those files have the digests that the policy lists. False where a log is
    /// judged by another policy than it was written under: it holds none.
    pub digests_hold: bool,
    /// Files and directories of the observer's own, resolved: its evidence.
    pub own: Vec<Bytes>,
    /// What each host of the policy resolved to, by its index there.
    pub hosts: Vec<Vec<IpAddr>>,
    /// Files the job was handed as standard streams.
    pub streams: Vec<Stream>,
    /// Device numbers of the job's own terminal.
    pub terminals: Vec<Device>,
    /// Environment keys given to the job from outside, when known beforehand
    /// (processes that were there already); a command started by `run` shows
    /// its own at its first exec, as does whatever joins later.
    pub env: Vec<Bytes>,
    /// Processes that were in the cgroup already.
    pub processes: Vec<Known>,
}

/// A root (a directory or, for reading, a file) held open by the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The number in [`FileObject::root`](super::FileObject::root).
    pub id: u32,
    /// Resolved path.
    pub path: Bytes,
    /// Index in the policy's roots; `None` for the job's `TMPDIR`.
    pub entry: Option<usize>,
    /// What may be done below it: what its entry grants, and every root that
    /// it lies below.
    pub rights: Rights,
}

/// A file that an entry of the policy means, held open by the daemon: a
/// program's, or a Unix socket's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Index in the policy's list.
    pub entry: usize,
    /// Resolved path.
    pub path: Bytes,
    /// As the kernel knows them, like those of a [`FileObject`](super::FileObject).
    pub dev: Device,
    pub ino: u64,
    pub twin: u32,
}

impl Found {
    #[must_use]
    pub fn id(&self) -> FileId {
        FileId { dev: self.dev, ino: self.ino, twin: self.twin }
    }
}

/// A file that has names on both sides of the job's roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// One of those below the roots, resolved.
    pub path: Bytes,
    pub dev: Device,
    pub ino: u64,
    pub twin: u32,
}

impl Linked {
    #[must_use]
    pub fn id(&self) -> FileId {
        FileId { dev: self.dev, ino: self.ino, twin: self.twin }
    }
}

/// A file that the job was handed as a standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    pub dev: Device,
    pub ino: u64,
    pub twin: u32,
    /// It was handed over open for reading, and may be opened so again.
    pub read: bool,
    /// The same for writing.
    pub write: bool,
}

impl Stream {
    #[must_use]
    pub fn id(&self) -> FileId {
        FileId { dev: self.dev, ino: self.ino, twin: self.twin }
    }
}
