//! The words in which the pipeline's enumerations are written in records.
//! One table gives both directions, so that neither can be forgotten.

use serde::{Serialize, Serializer};

use crate::decide::Answer;
use crate::dropped::Why;
use crate::input::{
    Backend, Class, Coverage, Coverages, Decided, Exit, FileOp, Limited, Mode, Namespace, NetOp,
    Reach, Stage,
};
use crate::judge::Decision;
use crate::policy::OnLoss;
use crate::properties::PropertyResult;
use crate::record::{EnvAction, GuardAction, ProcessAction};
use crate::verdict::Outcome;

macro_rules! names {
    ($($type:ident { $($variant:ident = $name:literal),* $(,)? })*) => {$(
        impl $type {
            /// Every value, in order.
            pub const ALL: &'static [$type] = &[$($type::$variant),*];

            /// The word in records and verdicts.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }

            /// The value of a word.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some($type::$variant),)* _ => None }
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    )*};
}

names! {
    Answer {
        Pass = "pass",
        Hold = "hold",
        Fail = "fail",
        Indeterminate = "indeterminate",
    }
    PropertyResult {
        Pass = "pass",
        Fail = "fail",
        Absent = "absent",
    }
    Class {
        File = "file", Exec = "exec", Env = "env", Net = "net", Tool = "tool", Limit = "limit",
        Guard = "guard",
    }
    Backend { Lsm = "lsm", Fentry = "fentry", TracePoint = "tracepoint" }
    Coverage { None = "none", Argument = "argument", Object = "object" }
    Mode { Observe = "observe", Kill = "kill", Enforce = "enforce" }
    Stage { Ring = "ring", Decode = "decode", Hook = "hook" }
    FileOp {
        OpenRead = "open_read", OpenWrite = "open_write", Create = "create", Mkdir = "mkdir",
        Rmdir = "rmdir", Unlink = "unlink", Rename = "rename", Link = "link", Symlink = "symlink",
        Truncate = "truncate", Chmod = "chmod", Chown = "chown", Write = "write",
        Setxattr = "setxattr", Utimes = "utimes", Ioctl = "ioctl", MapExec = "map_exec",
    }
    Namespace { Own = "own", Foreign = "foreign", Unknown = "unknown" }
    NetOp { Connect = "connect", Bind = "bind", Send = "send" }
    ProcessAction { Fork = "fork", Exec = "exec", Exit = "exit" }
    EnvAction { Hold = "hold", Inherit = "inherit", Make = "make" }
    GuardAction {
        Start = "start", Canary = "canary", Launch = "launch", Gap = "gap",
        Leftovers = "leftovers", Stopped = "stopped", Killed = "killed", CanaryFailed = "canary_failed",
        IoUring = "io_uring", CompatSyscall = "compat_syscall", Socket = "socket", Entered = "entered",
        Escaped = "escaped", Reached = "reached", Repeated = "repeated", Unknown = "unknown",
        Verdict = "verdict",
    }
    Reach {
        Bpf = "bpf", Perf = "perf_event", Mount = "mount", Umount = "umount",
        PivotRoot = "pivot_root", Chroot = "chroot", Load = "kernel_load", Ptrace = "ptrace",
        Signal = "signal", CloneIntoCgroup = "clone_into_cgroup", Capability = "capability",
        Terminal = "terminal_input", SqPoll = "sqpoll", UserNamespace = "user_namespace",
        Key = "key", Ipc = "ipc", Watch = "watch", Identity = "identity", Machine = "machine",
        Socket = "socket", Process = "process", OthersIpc = "others_ipc",
        HoldUp = "hold_up",
    }
    OnLoss { Mark = "mark", Kill = "kill", Deny = "deny" }
    Limited { WallClock = "max_wall_clock_sec" }
    Decided {
        Within = "within", Outside = "outside", Unknown = "unknown", Denied = "denied",
        Killed = "killed",
    }
    Decision { Allowed = "allowed", Recorded = "recorded", Denied = "denied", Killed = "killed" }
    Why { Age = "age", Size = "size" }
    Outcome { Pass = "pass", Fail = "fail", Indeterminate = "indeterminate" }
}

impl Serialize for Exit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (word, number) = match self {
            Exit::Code(code) => ("code", code),
            Exit::Signal(signal) => ("signal", signal),
        };
        serializer.collect_map([(word, number)])
    }
}

impl Serialize for Coverages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.each().map(|(class, coverage)| (class.name(), coverage)))
    }
}
