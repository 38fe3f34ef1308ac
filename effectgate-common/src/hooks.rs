//! The hook table: the one source for what is attached where. Attachment, the
//! document of hooks (`cargo xtask schema`) and the list of cases that the
//! kernel tests must have all derive from it.

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// A BTF-typed raw tracepoint.
    TracePoint(&'static str),
    /// An LSM hook (`security/security.c`): by the `lsm` backend asked, by the
    /// `fentry` backend watched where its `security_…` function returns.
    Lsm(&'static str),
    /// A function of the kernel's, where it returns.
    Function(&'static str),
    /// A cgroup socket-address hook, at the root of the cgroup v2 hierarchy.
    SockAddr(SockAddr),
    /// A cgroup socket hook, at the root of the cgroup v2 hierarchy.
    Sock(Sock),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SockAddr {
    Connect4,
    Connect6,
    SendMsg4,
    SendMsg6,
    Bind4,
    Bind6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sock {
    PostBind4,
    PostBind6,
}

/// Which backends attach a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Every,
    /// Those that see the kernel's own objects: `lsm` and `fentry`.
    Objects,
    /// The one that can deny.
    Lsm,
    TracePoint,
}

/// The backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watches {
    Lsm,
    Fentry,
    TracePoint,
}

/// What a hook serves, for the document of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Which tasks belong to a job.
    Identity,
    File,
    Exec,
    Net,
    /// What the job reaches for that is not its own.
    Guard,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// Name of the program in the kernel object.
    pub program: &'static str,
    pub attach: Attach,
    pub on: On,
    pub serves: Serves,
    /// First kernel that has it; older ones attach without it.
    pub since: (u8, u8),
    /// First kernel on which another row does better.
    pub until: Option<(u8, u8)>,
    /// The program that it stands in for when the kernel skips that.
    pub stands_in_for: Option<&'static str>,
    /// What it contributes, for the document of hooks.
    pub doc: &'static str,
}

const fn row(
    program: &'static str,
    attach: Attach,
    on: On,
    serves: Serves,
    since: (u8, u8),
    doc: &'static str,
) -> Hook {
    Hook { program, attach, on, serves, since, until: None, stands_in_for: None, doc }
}

/// A row for kernels before the one on which another row does better.
const fn before(until: (u8, u8), row: Hook) -> Hook {
    Hook { until: Some(until), ..row }
}

/// A row that is told of the same once more, from Linux 7.0 on: since then programs
/// on tracepoints can be preempted, and the kernel skips one for other tasks on the
/// same processor until it has ended. (`cgroup_attach_task` is called with a lock
/// held, and cannot.)
const fn again(program: &'static str, first: Hook) -> Hook {
    Hook {
        program,
        stands_in_for: Some(first.program),
        since: (7, 0),
        doc: "the same, should the kernel have skipped the first",
        ..first
    }
}

const FORK: Hook = row(
    "task_fork",
    T("task_newtask"),
    On::Every,
    Serves::Identity,
    (5, 5),
    "a child or thread inherits its parent's job, an io_uring's workers included; CLONE_INTO_CGROUP is noticed",
);
const EXEC: Hook = row(
    "task_exec",
    T("sched_process_exec"),
    On::Every,
    Serves::Exec,
    (5, 5),
    "the file that runs, its arguments and environment",
);
const EXIT: Hook = row(
    "task_exit",
    T("sched_process_exit"),
    On::Every,
    Serves::Identity,
    (5, 5),
    "the last thread of a process ended",
);

#[rustfmt::skip]
use Attach::{Function as F, Lsm, Sock as S, SockAddr as A, TracePoint as T};

/// The oldest kernel that is watched and tested. What the programs need beside
/// their hooks is older: `bpf_loop` came with 5.17, atomic exchange with 5.12.
pub const MINIMUM: (u8, u8) = (6, 1);

/// Every hook of every backend.
#[rustfmt::skip]
pub const HOOKS: &[Hook] = &[
    FORK,
    again("task_fork_again", FORK),
    EXEC,
    again("task_exec_again", EXEC),
    EXIT,
    again("task_exit_again", EXIT),
    row("cgroup_move", T("cgroup_attach_task"), On::Every, Serves::Identity, (5, 5), "a task enters or leaves a job's cgroup"),

    row("network_made", F("copy_net_ns"), On::Objects, Serves::Identity, (5, 7), "a network namespace that the job makes is its own"),

    row("connect4", A(SockAddr::Connect4), On::Every, Serves::Net, (4, 17), "IPv4 connect, TCP Fast Open and io_uring included"),
    row("connect6", A(SockAddr::Connect6), On::Every, Serves::Net, (4, 17), "IPv6 connect"),
    row("sendmsg4", A(SockAddr::SendMsg4), On::Every, Serves::Net, (4, 18), "unconnected IPv4 sendto, sendmsg, sendmmsg"),
    row("sendmsg6", A(SockAddr::SendMsg6), On::Every, Serves::Net, (4, 18), "unconnected IPv6 sendto, sendmsg, sendmmsg"),
    row("before_bind4", A(SockAddr::Bind4), On::Every, Serves::Net, (4, 17), "IPv4 bind, refused before a port is taken"),
    row("before_bind6", A(SockAddr::Bind6), On::Every, Serves::Net, (4, 17), "IPv6 bind, refused before a port is taken"),
    row("bind4", S(Sock::PostBind4), On::Every, Serves::Net, (4, 17), "IPv4 bind, with the port that the kernel gave"),
    row("bind6", S(Sock::PostBind6), On::Every, Serves::Net, (4, 17), "IPv6 bind, with the port that the kernel gave"),

    row("socket_sent", T("sock_send_length"), On::TracePoint, Serves::Net, (6, 3), "data sent through a socket that was made outside the job"),
    row("socket_received", T("sock_recv_length"), On::TracePoint, Serves::Net, (6, 3), "data received through a socket that was made outside the job"),
    before((6, 3), row("syscall_passed", T("sys_exit"), On::TracePoint, Serves::Net, (5, 5), "data sent or received through a socket that was made outside the job")),
    row("syscall_socket", T("sys_exit"), On::TracePoint, Serves::Net, (5, 5), "Unix sockets, by what a connection left behind or by system-call arguments; sockets that listen without having been bound; network namespaces that the job makes"),
    row("syscall_guard", T("sys_exit"), On::TracePoint, Serves::Guard, (5, 5), "what is not the job's own, from system-call arguments: the machine, mounts, other processes' memory and settings, System V objects"),
    row("signal_sent", T("signal_generate"), On::TracePoint, Serves::Guard, (5, 5), "a signal to a process that is not the job's"),
    row("syscall_exit", T("sys_exit"), On::TracePoint, Serves::File, (5, 5), "opened file objects from the descriptor table; other file operations from their arguments"),
    row("syscall_content", T("sys_exit"), On::TracePoint, Serves::File, (5, 5), "files that are written to or mapped through descriptors; mapped files that are made code"),

    row("file_open", Lsm("file_open"), On::Objects, Serves::File, (5, 7), "every open, io_uring and handles included"),
    row("bprm_creds_from_file", Lsm("bprm_creds_from_file"), On::Lsm, Serves::Exec, (5, 8), "a program is kept from running before the old one is gone"),
    row("socket_create", Lsm("socket_create"), On::Objects, Serves::Net, (5, 7), "a socket whose traffic the cgroup hooks do not see: raw, packet, other protocols"),
    row("socket_listen", Lsm("socket_listen"), On::Objects, Serves::Net, (5, 7), "a socket that listens without having been bound: at every address, on a port that the kernel chooses"),
    row("socket_sendmsg", Lsm("socket_sendmsg"), On::Objects, Serves::Net, (5, 7), "data sent through a socket that was made outside the job"),
    row("socket_recvmsg", Lsm("socket_recvmsg"), On::Objects, Serves::Net, (5, 7), "data received through a socket that was made outside the job"),
    row("socket_setsockopt", Lsm("socket_setsockopt"), On::Objects, Serves::Net, (5, 7), "a source route: packets that go to another address than the one that was judged; a multicast group is joined"),
    row("socket_handed", Lsm("file_receive"), On::Objects, Serves::Net, (5, 7), "a socket that was made outside the job, received from another process or taken from it"),
    row("unix_stream_connect", Lsm("unix_stream_connect"), On::Objects, Serves::Net, (5, 7), "a connection to a Unix socket"),
    row("unix_may_send", Lsm("unix_may_send"), On::Objects, Serves::Net, (5, 7), "a datagram to a Unix socket"),
    row("path_mknod", Lsm("path_mknod"), On::Objects, Serves::File, (5, 7), "the mount for the creation that follows"),
    row("path_mkdir", Lsm("path_mkdir"), On::Objects, Serves::File, (5, 7), "the mount for the creation that follows"),
    row("path_symlink", Lsm("path_symlink"), On::Objects, Serves::File, (5, 7), "the mount for the creation that follows"),
    row("path_link", Lsm("path_link"), On::Objects, Serves::File, (5, 7), "the mount for the creation that follows"),
    row("path_rename", Lsm("path_rename"), On::Objects, Serves::File, (5, 7), "the mount for the rename that follows"),
    row("path_unlink", Lsm("path_unlink"), On::Objects, Serves::File, (5, 7), "the mount for the removal that follows"),
    row("path_rmdir", Lsm("path_rmdir"), On::Objects, Serves::File, (5, 7), "the mount for the removal that follows"),
    row("inode_create", Lsm("inode_create"), On::Objects, Serves::File, (5, 7), "a regular file comes into being"),
    row("inode_mknod", Lsm("inode_mknod"), On::Objects, Serves::File, (5, 7), "a FIFO, socket or device comes into being"),
    row("inode_mkdir", Lsm("inode_mkdir"), On::Objects, Serves::File, (5, 7), "a directory comes into being"),
    row("inode_symlink", Lsm("inode_symlink"), On::Objects, Serves::File, (5, 7), "a symbolic link comes into being"),
    row("inode_link", Lsm("inode_link"), On::Objects, Serves::File, (5, 7), "a hard link comes into being"),
    row("inode_rename", Lsm("inode_rename"), On::Objects, Serves::File, (5, 7), "a name moves"),
    row("inode_unlink", Lsm("inode_unlink"), On::Objects, Serves::File, (5, 7), "a name is removed"),
    row("inode_rmdir", Lsm("inode_rmdir"), On::Objects, Serves::File, (5, 7), "a directory is removed"),
    row("path_truncate", Lsm("path_truncate"), On::Objects, Serves::File, (5, 7), "truncate by name; before 6.2 also ftruncate"),
    row("file_truncate", Lsm("file_truncate"), On::Objects, Serves::File, (6, 2), "ftruncate and O_TRUNC"),
    row("path_chmod", Lsm("path_chmod"), On::Objects, Serves::File, (5, 7), "chmod, by name or descriptor"),
    row("path_chown", Lsm("path_chown"), On::Objects, Serves::File, (5, 7), "chown, by name or descriptor"),

    row("file_permission", Lsm("file_permission"), On::Objects, Serves::File, (5, 7), "writes through descriptors that the job did not open itself, by whatever call"),
    row("file_receive", Lsm("file_receive"), On::Objects, Serves::File, (5, 7), "a descriptor that is sent (SCM_RIGHTS) or taken (pidfd_getfd), judged like an open"),
    row("mmap_file", Lsm("mmap_file"), On::Objects, Serves::File, (5, 7), "a file mapped to be written, or to be run"),
    row("file_mprotect", Lsm("file_mprotect"), On::Objects, Serves::File, (5, 7), "a mapped file made writable or executable"),
    row("file_ioctl", Lsm("file_ioctl"), On::Objects, Serves::File, (5, 7), "commands that change a file or what is behind a device; input put into a terminal"),
    row("file_ioctl_compat", Lsm("file_ioctl_compat"), On::Objects, Serves::File, (6, 8), "the same by a 32-bit process"),
    row("inode_setattr", Lsm("inode_setattr"), On::Objects, Serves::File, (5, 7), "times are set"),
    row("inode_setxattr", Lsm("inode_setxattr"), On::Objects, Serves::File, (5, 7), "an extended attribute is set; before 6.2 also an access control list"),
    row("inode_removexattr", Lsm("inode_removexattr"), On::Objects, Serves::File, (5, 7), "an extended attribute is removed; before 6.2 also an access control list"),
    row("inode_set_acl", Lsm("inode_set_acl"), On::Objects, Serves::File, (6, 2), "an access control list is set"),
    row("inode_remove_acl", Lsm("inode_remove_acl"), On::Objects, Serves::File, (6, 2), "an access control list is removed"),
    row("inode_file_setattr", Lsm("inode_file_setattr"), On::Objects, Serves::File, (6, 17), "flags are set (file_setattr)"),
    row("dentry_create_files_as", Lsm("dentry_create_files_as"), On::Objects, Serves::File, (5, 7), "what overlayfs does to its layers is told from what the job does"),
    row("cred_free", Lsm("cred_free"), On::Objects, Serves::File, (5, 7), "the same"),
    row("path_chroot", Lsm("path_chroot"), On::Objects, Serves::Guard, (5, 7), "chroot(2) (recorded)"),
    row("path_notify", Lsm("path_notify"), On::Objects, Serves::Guard, (5, 7), "being told of what happens to files: inotify, fanotify (recorded); having others wait for the job's permission"),
    row("uring_sqpoll", Lsm("uring_sqpoll"), On::Objects, Serves::Guard, (5, 16), "an io_uring whose kernel thread polls for work (recorded)"),

    row("bpf", Lsm("bpf"), On::Objects, Serves::Guard, (5, 7), "bpf(2)"),
    row("perf_event_open", Lsm("perf_event_open"), On::Objects, Serves::Guard, (5, 7), "perf_event_open(2)"),
    row("sb_mount", Lsm("sb_mount"), On::Objects, Serves::Guard, (5, 7), "mount(2), bind mounts and remounts included"),
    row("move_mount", Lsm("move_mount"), On::Objects, Serves::Guard, (5, 7), "a detached mount is attached, or another one moved"),
    row("sb_remount", Lsm("sb_remount"), On::Objects, Serves::Guard, (5, 7), "the options of a file system change"),
    row("sb_kern_mount", Lsm("sb_kern_mount"), On::Objects, Serves::Guard, (5, 7), "a file system made by fsconfig, mounted or not"),
    row("sb_umount", Lsm("sb_umount"), On::Objects, Serves::Guard, (5, 7), "umount(2)"),
    row("sb_pivotroot", Lsm("sb_pivotroot"), On::Objects, Serves::Guard, (5, 7), "pivot_root(2)"),
    row("kernel_read_file", Lsm("kernel_read_file"), On::Objects, Serves::Guard, (5, 7), "modules, firmware, kernels and policies that the kernel reads from a file"),
    row("kernel_load_data", Lsm("kernel_load_data"), On::Objects, Serves::Guard, (5, 7), "the same from memory"),
    row("ptrace_access_check", Lsm("ptrace_access_check"), On::Objects, Serves::Guard, (5, 7), "another process is traced, or its memory or descriptors are taken"),
    row("ptrace_traceme", Lsm("ptrace_traceme"), On::Objects, Serves::Guard, (5, 7), "a process outside the job is asked to trace"),
    row("task_kill", Lsm("task_kill"), On::Objects, Serves::Guard, (5, 7), "a signal to a process that is not the job's"),
    row("task_alloc", Lsm("task_alloc"), On::Lsm, Serves::Guard, (5, 7), "under `enforce`: a child in a cgroup of its parent's choice (CLONE_INTO_CGROUP)"),
    row("file_fcntl", Lsm("file_fcntl"), On::Objects, Serves::Guard, (5, 7), "a process that is not the job's is to get a file's signals (F_SETOWN)"),
    row("capable", Lsm("capable"), On::Objects, Serves::Guard, (5, 7), "privileges over the whole machine; its name and its swap space"),
    row("settime", Lsm("settime"), On::Objects, Serves::Guard, (5, 7), "the clock is set"),
    row("syslog", Lsm("syslog"), On::Objects, Serves::Guard, (5, 7), "the kernel's log is cleared, read away or turned off"),
    row("quotactl", Lsm("quotactl"), On::Objects, Serves::Guard, (5, 7), "quotas are changed"),
    row("key_permission", Lsm("key_permission"), On::Objects, Serves::Guard, (5, 7), "a key of the kernel's key rings is used (recorded)"),
    row("key_alloc", Lsm("key_alloc"), On::Objects, Serves::Guard, (5, 7), "a key is asked for that a helper of the kernel's, outside the job, is to make"),
    row("userns_create", Lsm("userns_create"), On::Objects, Serves::Guard, (6, 1), "a new user namespace (recorded)"),
    row("shm_alloc_security", Lsm("shm_alloc_security"), On::Objects, Serves::Guard, (5, 7), "System V memory is told by who made it"),
    row("shm_free_security", Lsm("shm_free_security"), On::Objects, Serves::Guard, (5, 7), "the same"),
    row("sem_alloc_security", Lsm("sem_alloc_security"), On::Objects, Serves::Guard, (5, 7), "the same of semaphores"),
    row("sem_free_security", Lsm("sem_free_security"), On::Objects, Serves::Guard, (5, 7), "the same"),
    row("msg_queue_alloc_security", Lsm("msg_queue_alloc_security"), On::Objects, Serves::Guard, (5, 7), "the same of message queues"),
    row("msg_queue_free_security", Lsm("msg_queue_free_security"), On::Objects, Serves::Guard, (5, 7), "the same"),
    row("ipc_permission", Lsm("ipc_permission"), On::Objects, Serves::Guard, (5, 7), "System V memory, semaphores and messages are used: the job's own (recorded), or others'"),
    row("shm_shmctl", Lsm("shm_shmctl"), On::Objects, Serves::Guard, (5, 7), "System V memory is removed, locked or given away that is not the job's"),
    row("sem_semctl", Lsm("sem_semctl"), On::Objects, Serves::Guard, (5, 7), "the same of semaphores"),
    row("msg_queue_msgctl", Lsm("msg_queue_msgctl"), On::Objects, Serves::Guard, (5, 7), "the same of message queues"),
    row("task_setrlimit", Lsm("task_setrlimit"), On::Objects, Serves::Guard, (5, 7), "limits of a process that is not the job's"),
    row("task_setnice", Lsm("task_setnice"), On::Objects, Serves::Guard, (5, 7), "the priority of a process that is not the job's"),
    row("task_setioprio", Lsm("task_setioprio"), On::Objects, Serves::Guard, (5, 7), "the same for its reads and writes"),
    row("task_setscheduler", Lsm("task_setscheduler"), On::Objects, Serves::Guard, (5, 7), "how and on which processors a process runs that is not the job's"),
    row("task_movememory", Lsm("task_movememory"), On::Objects, Serves::Guard, (5, 7), "memory of a process that is not the job's is moved to another node"),
    row("task_fix_setuid", Lsm("task_fix_setuid"), On::Objects, Serves::Guard, (5, 7), "another user id (recorded)"),
    row("task_fix_setgid", Lsm("task_fix_setgid"), On::Objects, Serves::Guard, (5, 9), "another group id (recorded)"),
];

impl Hook {
    /// The kernel's function around a hook of the security modules: its name is
    /// the hook's, but for a few.
    #[must_use]
    pub const fn function(hook: &str) -> Option<&'static str> {
        match hook.as_bytes() {
            b"shm_alloc_security" => Some("security_shm_alloc"),
            b"shm_free_security" => Some("security_shm_free"),
            b"sem_alloc_security" => Some("security_sem_alloc"),
            b"sem_free_security" => Some("security_sem_free"),
            b"msg_queue_alloc_security" => Some("security_msg_queue_alloc"),
            b"msg_queue_free_security" => Some("security_msg_queue_free"),
            b"settime" => Some("security_settime64"),
            b"userns_create" => Some("security_create_user_ns"),
            _ => None,
        }
    }

    /// Whether it is loaded before those that are not: what a kernel may refuse
    /// comes first, then another backend is tried.
    #[must_use]
    pub const fn goes_first(&self) -> bool {
        matches!(self.attach, Lsm(_))
    }

    /// Whether a backend attaches this row on a kernel of this version.
    #[must_use]
    pub const fn attached(&self, backend: Watches, kernel: (u8, u8)) -> bool {
        let backend = match self.on {
            On::Every => true,
            On::Objects => matches!(backend, Watches::Lsm | Watches::Fentry),
            On::Lsm => matches!(backend, Watches::Lsm),
            On::TracePoint => matches!(backend, Watches::TracePoint),
        };
        let outdated = match self.until {
            Some(until) => !is_before(kernel, until),
            None => false,
        };
        backend && !is_before(kernel, self.since) && !outdated
    }
}

const fn is_before(kernel: (u8, u8), other: (u8, u8)) -> bool {
    kernel.0 < other.0 || kernel.0 == other.0 && kernel.1 < other.1
}
