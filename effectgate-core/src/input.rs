//! What goes into the pipeline. Everything that `step` learns arrives here:
//! kernel events, the host's answers, gaps, ends. The clock and the kernel
//! stay outside; times are already Unix time.

mod start;

use std::net::IpAddr;

pub use start::{Found, Linked, Root, Started, Stream};

/// Nanoseconds since the Unix epoch, UTC.
pub type UnixNanos = u64;
/// The daemon's number of a job; never used twice by one daemon.
pub type JobId = u64;
/// Bytes as the kernel gave them: names and paths need not be UTF-8.
pub type Bytes = Vec<u8>;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A job's policy and surroundings; opens its log.
    Started(Box<Started>),
    /// The observer's proof, before the command starts, that effects are seen.
    Canary { job: JobId, ts: UnixNanos, seen: Vec<Class>, missing: Vec<Class> },
    /// The command is about to start; what came before was setup, and is not judged.
    Launched { job: JobId, ts: UnixNanos },
    /// A kernel event.
    Event(Event),
    /// Records lost since the last gap of this job, by class.
    Gap { job: JobId, ts: UnixNanos, stage: Stage, lost: Vec<(Class, u64)> },
    /// Something the daemon itself found out about a job.
    Notice { job: JobId, ts: UnixNanos, notice: Notice },
    /// The job's end; gives its verdict and closes its log.
    Finished { job: JobId, ts: UnixNanos, exit: Option<Exit> },
}

/// A process that is known without having been seen to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub pid: u32,
    pub ppid: u32,
    /// Nanoseconds of boot time at which it started.
    pub start: u64,
    pub exe: Bytes,
    pub comm: Bytes,
}

/// A device number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    pub major: u32,
    pub minor: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    File,
    Exec,
    Env,
    Net,
    Tool,
    Limit,
    Guard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Lsm,
    Fentry,
    TracePoint,
}

/// How good the knowledge of a class is; ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    None,
    Argument,
    Object,
}

/// Coverage of each class that a policy asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverages {
    pub file: Coverage,
    pub exec: Coverage,
    pub env: Coverage,
    pub net: Coverage,
    /// `None`, in this version: whether the job called a tool that is not
    /// listed is not asked.
    pub tool: Coverage,
}

impl Coverages {
    /// Every class with its coverage.
    pub fn each(self) -> impl Iterator<Item = (Class, Coverage)> {
        [
            (Class::File, self.file),
            (Class::Exec, self.exec),
            (Class::Env, self.env),
            (Class::Net, self.net),
            (Class::Tool, self.tool),
        ]
        .into_iter()
    }

    /// The classes below a required minimum. It binds those that a backend
    /// watches: no backend sees tool calls, so no job could ever meet it.
    pub fn below(self, least: Coverage) -> impl Iterator<Item = (Class, Coverage)> {
        self.each().filter(move |(class, has)| *class != Class::Tool && *has < least)
    }
}

/// What is to be done about a violation: recorded, its process killed, or it is
/// denied before it happens. Decisions say what was done.
/// The later one is stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    #[default]
    Observe,
    Kill,
    Enforce,
}

impl Mode {
    /// The classes whose effects outside the policy are denied before they
    /// happen: the network's by what every backend attaches, the others by
    /// LSM programs.
    pub fn denies(self, backend: Backend) -> &'static [Class] {
        match (self, backend) {
            (Mode::Observe, _) => &[],
            (Mode::Enforce, Backend::Lsm) => &[Class::File, Class::Exec, Class::Net, Class::Guard],
            (Mode::Kill | Mode::Enforce, _) => &[Class::Net],
        }
    }
}

/// Where records were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The ring was full when a kernel program had something to say.
    Ring,
    /// A record came out of the ring that could not be decoded.
    Decode,
    /// The kernel did not run a program: an earlier run of it on that processor had
    /// been preempted.
    Hook,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// What the daemon found out by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Processes of the job still lived when its command ended, and were killed.
    Leftovers { killed: u32 },
    /// The job was stopped from outside: a time limit, or a signal to the observer.
    Stopped { why: String },
    /// The observer killed a process, or the whole job, for a violation.
    Killed {
        /// `None`: the whole job.
        pid: Option<u32>,
        /// The number of the record that says which violation.
        violation: u64,
    },
    /// Hooks stopped firing in the middle of the job.
    CanaryFailed { why: String },
    /// Effects inside the policy that were seen before, and not reported again.
    Repeated { counts: Vec<(Class, u64)> },
    /// The job reached a bound of its policy, and was stopped: what it came to.
    Limit { limit: Limited, value: u64 },
}

/// The bounds that the kernel side can see: steps and tool calls are none of
/// its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// Seconds since the launch.
    WallClock,
}

/// A kernel event, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub ts: UnixNanos,
    pub job: JobId,
    pub pid: u32,
    pub tid: u32,
    pub uid: u32,
    pub comm: Bytes,
    /// What the kernel programs made of it; `None` where they do not judge.
    pub kernel: Option<Decided>,
    pub what: What,
}

/// The kernel programs' judgement of an effect, and what they did about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// Inside the policy, or not asked about by it.
    Within,
    /// Outside; it was let happen.
    Outside,
    /// Not known to be inside; it was let happen.
    Unknown,
    /// Outside or unknown, and it did not happen.
    Denied,
    /// Outside, and its process was killed.
    Killed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Fork {
        pid: u32,
        ppid: u32,
        start: u64,
    },
    Exec(Exec),
    Exit {
        code: u32,
    },
    /// Environment keys a process holds after an exec. Names only.
    Env {
        names: Vec<Bytes>,
        complete: bool,
    },
    File {
        op: FileOp,
        object: FileObject,
        other: Option<FileObject>,
        coverage: Coverage,
    },
    Net {
        op: NetOp,
        address: IpAddr,
        port: u16,
        protocol: u32,
        /// The socket that answers there was made inside the job.
        own: bool,
        namespace: Namespace,
    },
    /// A Unix socket that the job speaks to.
    Unix {
        op: NetOp,
        peer: UnixPeer,
        /// It was made inside the job.
        own: bool,
    },
    Guard(Guard),
}

/// Where a Unix socket is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnixPeer {
    /// The file it is bound to.
    File(FileObject),
    /// Its abstract name, without the leading NUL.
    Abstract(Bytes),
    Unnamed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// The file that runs; for a script, the interpreter.
    pub file: FileObject,
    /// What was asked for; differs from `file` for a script.
    pub asked: Bytes,
    pub argv: Vec<Bytes>,
    /// False when argument strings were cut or could not be read.
    pub argv_complete: bool,
    pub ppid: u32,
    pub start: u64,
}

/// A file as the kernel holds it, with the path that people read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FileObject {
    /// Absolute, as seen from the host's root directory.
    pub path: Bytes,
    /// Part of `path` is missing.
    pub path_cut: bool,
    pub root: RootMatch,
    pub dev: Device,
    pub ino: u64,
    /// See [`FileId::twin`].
    pub twin: u32,
    /// `inode::i_mode`; 0 when unknown.
    pub mode: u32,
    pub rdev: Device,
    /// `super_block::s_magic`; 0 when unknown.
    pub magic: u64,
    /// On a mount internal to the kernel: memfd, pipe, socket.
    pub internal: bool,
    pub unlinked: bool,
    /// On a `/proc`, in the directory of the process that acts, or of another one
    /// of its job.
    pub own_proc: bool,
}

/// Which file it is, to tell it from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    pub dev: Device,
    /// 0: it is known by nothing but its path.
    pub ino: u64,
    /// Device and inode number do not tell files of several btrfs subvolumes, or
    /// of several layers of an overlay, from each other. The files of a job that
    /// have the same are counted, those that are listed first: 0 for the only one.
    pub twin: u32,
}

impl FileObject {
    #[must_use]
    pub fn id(&self) -> FileId {
        FileId { dev: self.dev, ino: self.ino, twin: self.twin }
    }
}

/// Where the walk from the object towards the file system's root ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RootMatch {
    /// Below this root ([`Root::id`]).
    Below(u32),
    /// Below none of the job's roots.
    #[default]
    Outside,
    /// The walk hit its bound or could not read.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileOp {
    OpenRead,
    OpenWrite,
    Create,
    Mkdir,
    Rmdir,
    Unlink,
    Rename,
    Link,
    Symlink,
    Truncate,
    Chmod,
    Chown,
    /// Written, or mapped to be written, through a descriptor that the job did
    /// not open itself.
    Write,
    /// An extended attribute or an access control list was set or removed.
    Setxattr,
    /// Its times were set.
    Utimes,
    /// An ioctl that changes the file, or what is behind the device.
    Ioctl,
    /// Mapped, or made, executable.
    MapExec,
}

/// What an effect does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Change,
    Run,
}

impl FileOp {
    pub fn access(self) -> Access {
        match self {
            FileOp::OpenRead => Access::Read,
            FileOp::MapExec => Access::Run,
            FileOp::OpenWrite
            | FileOp::Create
            | FileOp::Mkdir
            | FileOp::Rmdir
            | FileOp::Unlink
            | FileOp::Rename
            | FileOp::Link
            | FileOp::Symlink
            | FileOp::Truncate
            | FileOp::Chmod
            | FileOp::Chown
            | FileOp::Write
            | FileOp::Setxattr
            | FileOp::Utimes
            | FileOp::Ioctl => Access::Change,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetOp {
    Connect,
    Bind,
    Send,
}

/// Whose network namespace a socket is in: the same address is somebody else's in
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// The job's: it made it, or came with it.
    Own,
    Foreign,
    Unknown,
}

/// The observer's own ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// An io_uring was set up inside the job.
    IoUring,
    /// A system call through the 32-bit entry.
    CompatSyscall { number: u32 },
    /// A socket was made of a kind that the network hooks do not see
    /// (`AF_…`, `SOCK_…`, `IPPROTO_…`).
    Socket { family: u32, kind: u32, protocol: u32 },
    /// A process joined the job's cgroup from outside.
    Entered {
        process: Known,
        /// Names of the environment keys it holds; `None` when they could not
        /// be read. They are judged if it acts before it executes: the process
        /// that starts a command in the cgroup holds its starter's keys, and
        /// the command does not get them.
        env: Option<Vec<Bytes>>,
    },
    /// A process of the job moved to another cgroup.
    Escaped { pid: u32 },
    /// The job reached for what is not its own.
    Reached {
        reach: Reach,
        /// Which command, signal, capability: see [`Reach`].
        detail: u32,
        /// The other process.
        pid: u32,
        /// The file or directory it is about.
        object: Option<FileObject>,
    },
    /// A record of a kind this version does not know.
    Unknown { kind: u16, op: u16 },
}

/// What a job can reach for that lies outside every policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// `bpf(2)`; the detail is its command.
    Bpf,
    /// `perf_event_open(2)`.
    Perf,
    /// Something is mounted, moved or remounted there.
    Mount,
    Umount,
    PivotRoot,
    Chroot,
    /// Code or data that the kernel itself loads: modules, firmware, another
    /// kernel; the detail is `enum kernel_load_data_id`.
    Load,
    /// Another process is attached to, or its memory or descriptors are taken.
    Ptrace,
    /// A signal to another process; the detail is the signal.
    Signal,
    /// A child in another cgroup (`CLONE_INTO_CGROUP`).
    CloneIntoCgroup,
    /// A privilege over the whole machine; the detail is the capability.
    Capability,
    /// Input put into a terminal (`TIOCSTI`, `TIOCLINUX`).
    Terminal,
    /// A kernel thread of an io_uring that polls for work.
    SqPoll,
    UserNamespace,
    /// A key of the kernel's key rings.
    Key,
    /// A System V object of the job's own: memory, semaphores, messages.
    Ipc,
    /// Being told of what happens to files (inotify, fanotify).
    Watch,
    /// Other user or group ids.
    Identity,
    /// The clock, the host's name, quotas, accounting, swap.
    Machine,
    /// A descriptor of a socket that was made outside the job.
    Socket,
    /// Another process's limits, priority, processors or place in memory; the
    /// detail is the number of the system call.
    Process,
    /// Whoever opens or reads files is to wait for the job (fanotify).
    HoldUp,
    /// A System V object that the job did not make; where only system calls are
    /// seen, one that it did not make for sure.
    OthersIpc,
}
