//! What only a manifest says.

use super::Key;
use crate::input::{Coverage, Mode};

/// What a manifest says beyond the capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub version: u8,
    pub owner: String,
    /// The change is about dependencies: package managers may run.
    pub dependency_change: bool,
    pub exceptions: Vec<Exception>,
    pub servers: Vec<Server>,
    /// What else is pinned: name (`model`, `tool_host`) and version.
    pub pins: Vec<(String, String)>,
    pub limits: Limits,
    pub min_coverage: Option<Coverage>,
    pub on_loss: OnLoss,
    /// The mode that the policy demands.
    pub on_violation: Mode,
}

/// Bounds of a run; reaching one is a violation. All are positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub max_steps: Limit,
    /// Seconds.
    pub max_wall_clock_sec: Limit,
    pub max_tool_calls_per_step: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub value: u64,
    pub key: Key,
}

/// What is otherwise refused, let through by two people until a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// A shell (`bash`), or an interpreter's form (`python -c`).
    pub allows: String,
    /// Two or more, all different.
    pub reviewers: Vec<String>,
    pub reason: String,
    /// The last day it holds, `YYYY-MM-DD`.
    pub expires: String,
    /// From 1.
    pub line: u32,
}

/// An MCP server, frozen with its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub reached: Reached,
    /// SHA-256, lower-case hexadecimal.
    pub digest: String,
    /// From 1.
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    Command(Vec<String>),
    Url(String),
}

/// What is done when records are lost. The verdict is never `pass`; the later
/// one is stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnLoss {
    /// The log and the verdict say so.
    #[default]
    Mark,
    /// The job is stopped at the first loss.
    Kill,
    /// What cannot be reported is denied.
    Deny,
}
