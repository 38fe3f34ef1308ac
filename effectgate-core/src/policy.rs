//! What an envelope or a manifest compiles to: the rules that effects are held
//! against, each with the line it was written in.

mod list;
mod outside;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use crate::fault::Fault;
pub use crate::host::{Host, HostName, Protocol};
use crate::input::{Coverage, Limited};
use crate::secret::is_secret_name;
use crate::{envelope, manifest};
pub use list::{Entry, Key, List, Named};
pub use outside::leads_outside;

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub kind: Kind,
    /// The stable name written in the file.
    pub id: String,
    /// SHA-256 of the file's bytes, lower-case hexadecimal.
    pub sha256: String,
    /// The file's name as it was given; faults and rules cite it.
    pub file: String,
    /// What the job may do below which directory or file.
    pub roots: Roots,
    /// What may run. `None`: programs are recorded and not judged.
    pub binaries: Option<List<Binary>>,
    pub tools: List<Tool>,
    pub env: List<String>,
    pub hosts: List<Host>,
    pub network: Network,
    /// The key `network`, or `network.mode`.
    pub network_key: Key,
    /// Paths of the sockets of other programs that the job may talk to.
    pub unix_sockets: List<String>,
    /// What only a manifest says.
    pub agent: Option<Box<Agent>>,
}

/// The format a policy was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Envelope,
    Manifest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    Deny,
    Allowlist,
}

/// Every root of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// In the order of the file, then those of the profiles.
    pub entries: Vec<RootRule>,
    /// The key cited when a write lies below none of them.
    pub writes: Key,
    /// The key cited when a read does. `None`: reads are recorded and not judged.
    pub reads: Option<Key>,
}

/// One directory (or, for reading, one file), and what may be done below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootRule {
    /// As written: absolute, or relative to the workspace, in normal form
    /// (`.` is the workspace itself; a leading `~/` is the job's user's home,
    /// which only profiles write). Not yet resolved.
    pub path: String,
    pub rights: Rights,
    /// The key that grants it, and the line of its entry.
    pub key: Key,
    /// A root of a profile need not exist, and lets nobody read credentials.
    pub profile: bool,
}

/// What may be done below a root; each includes no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights {
    pub read: bool,
    pub write: bool,
    /// Whatever lies there may run, whoever wrote it.
    pub exec: bool,
    /// The programs that are listed are looked for here too.
    pub search: bool,
}

/// A program that may run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    /// A basename.
    pub name: String,
    /// SHA-256 that its file must have, lower-case hexadecimal.
    pub sha256: Option<String>,
}

/// A tool call that may appear.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tool {
    /// The MCP server whose tool it is; `None` for the harness's own.
    pub server: Option<String>,
    pub name: String,
}

/// What a manifest says beyond the capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub version: u8,
    pub owner: String,
    /// The profiles named in `extends`.
    pub extends: Vec<String>,
    /// The change is about dependencies: package managers may run.
    pub dependency_change: bool,
    pub exceptions: Vec<Exception>,
    pub servers: Vec<Server>,
    /// Files that hold secrets and are there for the job to read.
    pub mounted_secrets: Vec<String>,
    /// What else is pinned: name (`model`, `tool_host`) and version.
    pub pins: Vec<(String, String)>,
    pub limits: Limits,
    pub min_coverage: Option<Coverage>,
    pub on_loss: OnLoss,
    pub on_violation: OnViolation,
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

/// What is done when records are lost. The verdict is never `pass`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    #[default]
    Observe,
    /// The job is stopped at the first loss.
    Kill,
}

/// What is done about a violation: the mode that the policy demands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnViolation {
    #[default]
    Observe,
    Kill,
    Enforce,
}

/// Reads a policy: an envelope when the text begins like a JSON object (or
/// the file is called one), and a manifest otherwise. `today` is `YYYY-MM-DD`: a manifest's exceptions
/// expire.
///
/// # Errors
/// Every fault of the file, in its order. A syntax fault hides those behind it.
pub fn parse(file_name: &str, bytes: &[u8], today: &str) -> Result<Policy, Vec<Fault>> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => envelope::parse(file_name, bytes),
        // It is neither; its name says which format its faults are about.
        _ if file_name.ends_with(".json") => envelope::parse(file_name, bytes),
        _ => manifest::parse(file_name, bytes, today),
    }
}

impl Policy {
    /// Whether a job may inherit this environment key: it is listed, or it
    /// belongs to the base set.
    pub fn allows_env(&self, name: &[u8]) -> bool {
        self.lists_env(name).is_some() || is_base_env(name)
    }

    /// The entry of the list of environment keys with this name.
    pub fn lists_env(&self, name: &[u8]) -> Option<&Entry<String>> {
        self.env.find(std::str::from_utf8(name).ok()?)
    }

    /// The entry that lets this program run. Whether the file is the one that
    /// is meant is another question.
    pub fn lists_binary(&self, name: &str) -> Option<&Entry<Binary>> {
        self.binaries.as_ref()?.find(name)
    }

    /// The entry of a tool call.
    pub fn lists_tool(&self, server: Option<&str>, name: &str) -> Option<&Entry<Tool>> {
        self.tools.all(name).find(|entry| entry.value.server.as_deref() == server)
    }

    /// The entries of a host, whatever the port.
    pub fn lists_host<'a>(
        &'a self,
        host: &HostName,
    ) -> impl Iterator<Item = &'a Entry<Host>> + use<'a> {
        self.hosts.all(&host.to_string())
    }

    /// The hosts that have to be resolved: index in [`Policy::hosts`], name.
    pub fn names_to_resolve(&self) -> impl Iterator<Item = (usize, &str)> {
        self.hosts.entries().iter().enumerate().filter_map(|(index, entry)| {
            match &entry.value.name {
                HostName::Name(name) => Some((index, name.as_str())),
                HostName::Address(_) => None,
            }
        })
    }

    /// A bound of the run.
    pub fn limit(&self, limit: Limited) -> Option<&Limit> {
        let limits = &self.agent.as_ref()?.limits;
        match limit {
            Limited::WallClock => Some(&limits.max_wall_clock_sec),
        }
    }

    /// Whether an exception lets this shell or form through, on that day
    /// (`YYYY-MM-DD`).
    pub fn excepts(&self, what: &str, today: &str) -> Option<&Exception> {
        let exceptions = &self.agent.as_ref()?.exceptions;
        exceptions.iter().find(|held| held.allows == what && held.expires.as_str() >= today)
    }
}

impl RootRule {
    /// The path as it stands on the machine, not resolved; `None` when it
    /// needs a workspace or a home and there is none.
    pub fn place(&self, workspace: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
        if let Some(rest) = self.path.strip_prefix("~/") {
            return home.map(|home| home.join(rest));
        }
        let path = Path::new(&self.path);
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        let workspace = workspace?;
        Some(if self.path == "." { workspace.to_owned() } else { workspace.join(path) })
    }
}

impl Rights {
    pub const READ: Rights = Rights { read: true, write: false, exec: false, search: false };
    pub const WRITE: Rights = Rights { read: true, write: true, exec: false, search: false };
    pub const EXEC: Rights = Rights { read: true, write: false, exec: true, search: false };
    pub const SEARCH: Rights = Rights { read: true, write: false, exec: false, search: true };

    /// Their words, in order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("read", self.read),
            ("write", self.write),
            ("exec", self.exec),
            ("search", self.search),
        ];
        all.into_iter().filter_map(|(name, granted)| granted.then_some(name))
    }

    /// The right of a word.
    pub fn from_name(name: &str) -> Option<Rights> {
        let none = Rights::default();
        match name {
            "read" => Some(Rights { read: true, ..none }),
            "write" => Some(Rights { write: true, ..none }),
            "exec" => Some(Rights { exec: true, ..none }),
            "search" => Some(Rights { search: true, ..none }),
            _ => None,
        }
    }

    /// What two roots allow together.
    #[must_use]
    pub fn and(self, other: Rights) -> Rights {
        Rights {
            read: self.read || other.read,
            write: self.write || other.write,
            exec: self.exec || other.exec,
            search: self.search || other.search,
        }
    }

    /// What both of two roots allow.
    #[must_use]
    pub fn common(self, other: Rights) -> Rights {
        Rights {
            read: self.read && other.read,
            write: self.write && other.write,
            exec: self.exec && other.exec,
            search: self.search && other.search,
        }
    }
}

/// Keys that every process has and that carry no capability, with the one
/// that the observer itself gives. A name that promises a secret must be listed,
/// even among the locale's.
pub fn is_base_env(name: &[u8]) -> bool {
    const BASE: [&str; 14] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",
        "TZ",
        "TMPDIR",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "ENVELOPE_HASH",
    ];
    name.starts_with(b"LC_") && !is_secret_name(name)
        || BASE.iter().any(|base| base.as_bytes() == name)
}
