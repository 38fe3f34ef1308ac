//! What travels over the socket: one JSON request on a line, one JSON answer
//! on a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest request, in bytes; an envelope is part of it.
pub const REQUEST_MAX: u64 = 16 << 20;

/// What a client asks for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    Start(Box<Start>),
    Finish { job: u64 },
    Status { job: u64 },
    List {},
}

/// A job to be started. The client has read the policy and checked its pin;
/// the daemon parses the same bytes again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub cgroup: PathBuf,
    pub name: Option<String>,
    /// The policy file's name, which rules cite.
    pub policy_file: String,
    /// The policy file's text.
    pub policy: String,
    /// The digest that the policy must have.
    pub pinned: String,
    /// The review note's text.
    pub note: Option<String>,
    /// What the policy's relative roots are relative to, resolved.
    pub workspace: Option<PathBuf>,
    /// `observe`, `kill` or `enforce`.
    pub mode: String,
    /// `argument` or `object`.
    pub min_coverage: String,
}

/// What the daemon answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// A job number, a verdict, a status or a list.
    Ok(Value),
    /// Why not, and the exit code to leave with.
    Error { message: String, code: u8 },
}
