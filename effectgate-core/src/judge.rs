//! One effect against one job's policy. Pure: what was seen in, what it means out.

mod env;
mod exec;
mod file;
mod guard;
mod kernel;
mod limit;
mod net;
mod read;
mod tables;

use serde::Serialize;

pub use env::{EnvJudgement, Origin, env};
pub use exec::{ExecJudgement, exec};
pub use file::file;
pub(crate) use file::is_device;
pub use guard::guard;
pub use kernel::{KernelTables, KnownFile, KnownHost, RootGrant};
pub use limit::limit;
pub use net::{NetJudgement, Peer, net, unix};
pub(crate) use tables::ancestors;
pub use tables::{Tables, grant_rights, is_kernel_file};

use crate::input::{Class, Decided, Started};
use crate::policy::Key;

/// What an effect means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub rule: Rule,
    pub finding: Finding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// No rule asks about it.
    Recorded,
    /// Inside the policy.
    Within,
    /// Outside the policy.
    Violation,
    /// Not known to be inside, not proven to be outside.
    Doubt(Doubt),
    /// Inside or unasked, but a sign that other effects may have gone unseen.
    RecordedWithDoubt(Doubt),
}

/// The rule that decided: a key of the policy file with its line, or, without
/// file and line, a rule that holds for every policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Rule {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What happened to the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decision {
    Allowed,
    Recorded,
    /// It did not happen.
    Denied,
    /// Its process was killed.
    Killed,
}

/// Why a verdict cannot be `pass` although nothing is known to be outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Doubt {
    #[error("no canary proved that effects are seen")]
    NoCanary,
    #[error("the canary missed effects of class {}", .0.name())]
    CanaryMissed(Class),
    #[error("the canary failed in the middle of the job: {0}")]
    CanaryFailed(String),
    #[error("the command never started")]
    NeverLaunched,
    #[error("the command ended, and no record says that a program started")]
    NoProgram,
    #[error("coverage of class {} is below the required minimum", .0.name())]
    Coverage(Class),
    #[error("a file could not be placed below or outside the roots")]
    Unplaced,
    #[error(
        "a program's arguments could not be read whole, and it may have been given its program there"
    )]
    ArgumentsCut,
    #[error(
        "a program ran whose digest the policy lists, and the log, written under another policy, \
         does not say what its file's was"
    )]
    DigestUnknown,
    #[error("a process's environment could not be read whole")]
    EnvIncomplete,
    #[error(
        "a process joined the job and acted or stayed without running a program first, \
         and its environment could not be read or is not allowed"
    )]
    EnvUnread,
    #[error("an io_uring was set up, whose effects the tracepoint backend does not see")]
    IoUring,
    #[error("32-bit system calls were made, which the tracepoint backend does not see")]
    CompatSyscall,
    #[error("System V memory, semaphores or messages were used that the job may not have made")]
    OthersIpc,
    #[error("a socket's network namespace may not be the job's")]
    Namespace,
    #[error("a process that ended dumped its memory, and where to is not known")]
    CoreDump,
    #[error("the kernel judged an effect otherwise than user space")]
    Disagreement,
    #[error("a kernel record of an unknown kind arrived")]
    UnknownRecord,
    #[error("the observer killed it for a violation: what it would still have done is not known")]
    Killed,
    #[error("the job was stopped from outside before it ended: {0}")]
    Stopped(String),
}

impl Judgement {
    pub(crate) fn within_rule(rule: Rule) -> Self {
        Judgement { rule, finding: Finding::Within }
    }

    pub(crate) fn violates(rule: Rule) -> Self {
        Judgement { rule, finding: Finding::Violation }
    }

    pub(crate) fn recorded(rule: &'static str) -> Self {
        Judgement { rule: Rule::of_every_policy(rule), finding: Finding::Recorded }
    }

    pub fn within(&self) -> bool {
        match self.finding {
            Finding::Recorded | Finding::Within | Finding::RecordedWithDoubt(_) => true,
            Finding::Violation | Finding::Doubt(_) => false,
        }
    }

    pub fn is_violation(&self) -> bool {
        self.finding == Finding::Violation
    }

    pub fn doubt(&self) -> Option<&Doubt> {
        match &self.finding {
            Finding::Doubt(doubt) | Finding::RecordedWithDoubt(doubt) => Some(doubt),
            Finding::Recorded | Finding::Within | Finding::Violation => None,
        }
    }

    /// Whether the kernel came to something else; nothing to compare is no
    /// difference.
    pub fn differs(&self, kernel: Option<Decided>) -> bool {
        let agrees = match kernel {
            None => true,
            Some(Decided::Within) => self.within(),
            Some(Decided::Outside | Decided::Killed) => self.is_violation(),
            Some(Decided::Unknown) => matches!(self.finding, Finding::Doubt(_)),
            Some(Decided::Denied) => !self.within(),
        };
        !agrees
    }

    /// What was done about it.
    pub fn decision(&self, kernel: Option<Decided>) -> Decision {
        match kernel {
            Some(Decided::Denied) => return Decision::Denied,
            Some(Decided::Killed) => return Decision::Killed,
            Some(Decided::Within | Decided::Outside | Decided::Unknown) | None => {}
        }
        match self.finding {
            Finding::Within => Decision::Allowed,
            Finding::Recorded
            | Finding::Violation
            | Finding::Doubt(_)
            | Finding::RecordedWithDoubt(_) => Decision::Recorded,
        }
    }
}

impl Rule {
    pub(crate) fn of_every_policy(name: &'static str) -> Self {
        Rule { name, file: None, line: None }
    }

    /// A key without a line is nobody's: what is built in.
    pub(crate) fn written(started: &Started, key: Key) -> Self {
        if key.line == 0 {
            return Rule::of_every_policy(key.name);
        }
        Rule { name: key.name, file: Some(started.policy.file.clone()), line: Some(key.line) }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{} ({file}:{line})", self.name),
            _ => f.write_str(self.name),
        }
    }
}
