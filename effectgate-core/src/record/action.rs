//! What a record can be about: every pair of class and action there is. Who
//! writes and who reads records matches on it, so that none is forgotten.

use crate::input::{Class, FileOp, Guard, Limited, NetOp, Notice};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    File(FileOp),
    Net(NetOp),
    Process(ProcessAction),
    Env(EnvAction),
    /// Reached, and the job stopped.
    Limit(Limited),
    Guard(GuardAction),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessAction {
    Fork,
    Exec,
    Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvAction {
    /// Held before the launch.
    Hold,
    /// Came from outside.
    Inherit,
    /// First held by a process inside.
    Make,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardAction {
    Start,
    Canary,
    Launch,
    Gap,
    Leftovers,
    Stopped,
    Killed,
    CanaryFailed,
    IoUring,
    CompatSyscall,
    Socket,
    Entered,
    Escaped,
    Reached,
    Repeated,
    Unknown,
    Verdict,
}

impl Action {
    pub fn class(self) -> Class {
        match self {
            Action::File(_) => Class::File,
            Action::Net(_) => Class::Net,
            Action::Process(_) => Class::Exec,
            Action::Env(_) => Class::Env,
            Action::Limit(_) => Class::Limit,
            Action::Guard(_) => Class::Guard,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Action::File(op) => op.name(),
            Action::Net(op) => op.name(),
            Action::Process(action) => action.name(),
            Action::Env(action) => action.name(),
            Action::Limit(limit) => limit.name(),
            Action::Guard(action) => action.name(),
        }
    }

    pub fn from_names(class: Class, name: &str) -> Option<Action> {
        match class {
            Class::File => FileOp::from_name(name).map(Action::File),
            Class::Net => NetOp::from_name(name).map(Action::Net),
            Class::Exec => ProcessAction::from_name(name).map(Action::Process),
            Class::Env => EnvAction::from_name(name).map(Action::Env),
            Class::Guard => GuardAction::from_name(name).map(Action::Guard),
            Class::Limit => Limited::from_name(name).map(Action::Limit),
            // No input gives records of this class yet.
            Class::Tool => None,
        }
    }

    pub fn of_notice(notice: &Notice) -> Self {
        match notice {
            Notice::Leftovers { .. } => Action::Guard(GuardAction::Leftovers),
            Notice::Stopped { .. } => Action::Guard(GuardAction::Stopped),
            Notice::Killed { .. } => Action::Guard(GuardAction::Killed),
            Notice::CanaryFailed { .. } => Action::Guard(GuardAction::CanaryFailed),
            Notice::Repeated { .. } => Action::Guard(GuardAction::Repeated),
            Notice::Limit { limit, .. } => Action::Limit(*limit),
        }
    }
}

impl GuardAction {
    pub fn of_kernel(guard: &Guard) -> Self {
        match guard {
            Guard::IoUring => GuardAction::IoUring,
            Guard::CompatSyscall { .. } => GuardAction::CompatSyscall,
            Guard::Socket { .. } => GuardAction::Socket,
            Guard::Entered { .. } => GuardAction::Entered,
            Guard::Escaped { .. } => GuardAction::Escaped,
            Guard::Reached { .. } => GuardAction::Reached,
            Guard::Unknown { .. } => GuardAction::Unknown,
        }
    }
}
