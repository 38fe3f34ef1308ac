//! Offsets in kernel structures, which differ between kernels.
//!
//! Rust has no BTF field relocations, so each offset is a constant of the
//! kernel object that the loader sets from the running kernel's BTF before it
//! freezes `.rodata`; the verifier then sees a number.

/// Calls `$mac! { SYMBOL = "struct" "member"; … }` with every offset. The one
/// list from which the kernel object declares its statics and the loader
/// resolves them.
#[macro_export]
macro_rules! for_each_offset {
    ($mac:ident) => {
        $mac! {
            OFF_FILE_PATH_MNT = "file" "f_path.mnt";
            OFF_FILE_PATH_DENTRY = "file" "f_path.dentry";
            OFF_FILE_MODE = "file" "f_mode";
            OFF_FILE_FLAGS = "file" "f_flags";
            OFF_FILE_INODE = "file" "f_inode";
            OFF_DENTRY_PARENT = "dentry" "d_parent";
            OFF_DENTRY_INODE = "dentry" "d_inode";
            OFF_DENTRY_NAME = "dentry" "d_name.name";
            OFF_DENTRY_NAME_HASH = "dentry" "d_name.hash_len";
            OFF_DENTRY_SB = "dentry" "d_sb";
            OFF_DENTRY_HASH_PPREV = "dentry" "d_hash.pprev";
            OFF_INODE_INO = "inode" "i_ino";
            OFF_INODE_MODE = "inode" "i_mode";
            OFF_INODE_RDEV = "inode" "i_rdev";
            OFF_INODE_PRIVATE = "inode" "i_private";
            OFF_INODE_NLINK = "inode" "i_nlink";
            OFF_SB_DEV = "super_block" "s_dev";
            OFF_SB_MAGIC = "super_block" "s_magic";
            OFF_VFSMOUNT_ROOT = "vfsmount" "mnt_root";
            OFF_VFSMOUNT_FLAGS = "vfsmount" "mnt_flags";
            OFF_MOUNT_MNT = "mount" "mnt";
            OFF_MOUNT_PARENT = "mount" "mnt_parent";
            OFF_MOUNT_MOUNTPOINT = "mount" "mnt_mountpoint";
            OFF_TASK_PID = "task_struct" "pid";
            OFF_TASK_TGID = "task_struct" "tgid";
            OFF_TASK_PARENT = "task_struct" "real_parent";
            OFF_TASK_LEADER = "task_struct" "group_leader";
            OFF_TASK_START = "task_struct" "start_boottime";
            OFF_TASK_EXIT_CODE = "task_struct" "exit_code";
            OFF_TASK_SIGNAL = "task_struct" "signal";
            OFF_TASK_FILES = "task_struct" "files";
            OFF_TASK_FS = "task_struct" "fs";
            OFF_TASK_MM = "task_struct" "mm";
            OFF_TASK_CGROUPS = "task_struct" "cgroups";
            OFF_TASK_STATUS = "task_struct" "thread_info.status";
            OFF_TASK_THREADS = "task_struct" "thread_node";
            OFF_SIGNAL_THREADS = "signal_struct" "thread_head";
            OFF_SIGNAL_LIVE = "signal_struct" "live";
            OFF_FILES_FDT = "files_struct" "fdt";
            OFF_FDTABLE_FD = "fdtable" "fd";
            OFF_FDTABLE_MAX = "fdtable" "max_fds";
            OFF_FS_ROOT_MNT = "fs_struct" "root.mnt";
            OFF_FS_ROOT_DENTRY = "fs_struct" "root.dentry";
            OFF_FS_PWD_MNT = "fs_struct" "pwd.mnt";
            OFF_FS_PWD_DENTRY = "fs_struct" "pwd.dentry";
            OFF_PATH_MNT = "path" "mnt";
            OFF_PATH_DENTRY = "path" "dentry";
            OFF_TASK_PID_LINKS = "task_struct" "pid_links";
            OFF_PID_TASKS = "pid" "tasks";
            OFF_PROC_INODE_PID = "proc_inode" "pid";
            OFF_PROC_INODE_VFS = "proc_inode" "vfs_inode";
            OFF_TASK_COMM = "task_struct" "comm";
            OFF_MM_EXE_FILE = "mm_struct" "exe_file";
            OFF_MM_ARG_START = "mm_struct" "arg_start";
            OFF_MM_ARG_END = "mm_struct" "arg_end";
            OFF_MM_ENV_START = "mm_struct" "env_start";
            OFF_MM_ENV_END = "mm_struct" "env_end";
            OFF_BPRM_FILE = "linux_binprm" "file";
            OFF_BPRM_FILENAME = "linux_binprm" "filename";
            OFF_BPRM_INTERP = "linux_binprm" "interp";
            OFF_CSS_SET_CGROUP = "css_set" "dfl_cgrp";
            OFF_CGROUP_CSS = "cgroup" "self";
            OFF_CGROUP_KN = "cgroup" "kn";
            OFF_CSS_PARENT = "cgroup_subsys_state" "parent";
            OFF_CSS_CGROUP = "cgroup_subsys_state" "cgroup";
            OFF_KN_ID = "kernfs_node" "id";
            OFF_INODE_SB = "inode" "i_sb";
            OFF_SB_FLAGS = "super_block" "s_flags";
            OFF_SB_FS_INFO = "super_block" "s_fs_info";
            OFF_SB_USER_NS = "super_block" "s_user_ns";
            OFF_TASK_CRED = "task_struct" "cred";
            OFF_TASK_REAL_CRED = "task_struct" "real_cred";
            OFF_TASK_PERSONALITY = "task_struct" "personality";
            OFF_CRED_USER_NS = "cred" "user_ns";
            OFF_VMA_FILE = "vm_area_struct" "vm_file";
            OFF_VMA_END = "vm_area_struct" "vm_end";
            OFF_VMA_FLAGS = "vm_area_struct" "vm_flags";
            OFF_IATTR_VALID = "iattr" "ia_valid";
            OFF_TASK_NSPROXY = "task_struct" "nsproxy";
            OFF_TASK_PTRACED = "task_struct" "ptraced";
            OFF_TASK_PTRACE_ENTRY = "task_struct" "ptrace_entry";
            OFF_NSPROXY_UTS = "nsproxy" "uts_ns";
            OFF_UTS_NUMBER = "uts_namespace" "ns.inum";
            OFF_NSPROXY_NET = "nsproxy" "net_ns";
            OFF_NET_COOKIE = "net" "net_cookie";
            OFF_NET_NUMBER = "net" "ns.inum";
            OFF_NSPROXY_PID = "nsproxy" "pid_ns_for_children";
            OFF_PIDNS_LEVEL = "pid_namespace" "level";
            OFF_USERNS_LEVEL = "user_namespace" "level";
            OFF_SB_ROOT = "super_block" "s_root";
            OFF_CGROUP_ROOT = "cgroup" "root";
            OFF_HIERARCHY_ID = "cgroup_root" "hierarchy_id";
            OFF_CRED_UID = "cred" "uid";
            OFF_CRED_GID = "cred" "gid";
            OFF_IPC_ID = "kern_ipc_perm" "id";
            OFF_SOCK_CGROUP = "sock" "sk_cgrp_data.cgroup";
            OFF_SOCK_GROUP = "sock" "sk_reuseport_cb";
            OFF_SOCK_PEER_PID = "sock" "sk_peer_pid";
            OFF_PID_NUMBERS = "pid" "numbers";
            OFF_SOCK_FAMILY = "sock" "__sk_common.skc_family";
            OFF_SOCK_NET = "sock" "__sk_common.skc_net.net";
            OFF_SOCK_PORT = "sock" "__sk_common.skc_num";
            OFF_SOCK_TYPE = "sock" "sk_type";
            OFF_SOCK_PROTOCOL = "sock" "sk_protocol";
            OFF_SOCKET_SOCK = "socket" "sk";
            OFF_FILE_PRIVATE = "file" "private_data";
            OFF_UNIX_ADDRESS = "unix_sock" "addr";
            OFF_UNIX_PATH_MNT = "unix_sock" "path.mnt";
            OFF_UNIX_PATH_DENTRY = "unix_sock" "path.dentry";
            OFF_UNIX_PEER = "unix_sock" "peer";
            OFF_ADDRESS_LEN = "unix_address" "len";
            OFF_ADDRESS_NAME = "unix_address" "name";
            OFF_MSG_CONTROL = "msghdr" "msg_control";
            OFF_MSG_CONTROL_LEN = "msghdr" "msg_controllen";
            OFF_GROUP_COUNT = "sock_reuseport" "num_socks";
            OFF_GROUP_SOCKETS = "sock_reuseport" "socks";
        }
    };
}

/// The same for members that only some kernels have. Where there is none, the
/// offset is 0, at which none of these is.
#[macro_export]
macro_rules! for_each_optional_offset {
    ($mac:ident) => {
        $mac! {
            OFF_BACKING_FILE_PATH = "backing_file" "user_path";
        }
    };
}

/// Calls `$mac! { SYMBOL = "function" "parameter"; … }` with the parameters of
/// hooks whose position differs between kernels: 0 for the first.
#[macro_export]
macro_rules! for_each_parameter {
    ($mac:ident) => {
        $mac! {
            ARG_SETATTR_ENTRY = "bpf_lsm_inode_setattr" "dentry";
        }
    };
}

/// One number to resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The static in the kernel object.
    pub symbol: &'static str,
    /// The structure's or function's name in BTF.
    pub ty: &'static str,
    /// Members separated by `.`; anonymous structures and unions are passed
    /// through. A parameter's name.
    pub member: &'static str,
}

macro_rules! list {
    ($($symbol:ident = $ty:literal $member:literal;)*) => {
        &[$(Offset { symbol: stringify!($symbol), ty: $ty, member: $member }),*]
    };
}

/// Every offset that the kernel object needs.
pub const OFFSETS: &[Offset] = for_each_offset!(list);
/// Those that it uses where they are.
pub const OPTIONAL: &[Offset] = for_each_optional_offset!(list);
/// The positions of parameters that it needs.
pub const PARAMETERS: &[Offset] = for_each_parameter!(list);
