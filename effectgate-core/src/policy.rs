//! What an envelope or a manifest compiles to: the rules that effects are held
//! against, each with the line it was written in.

mod agent;
mod list;
mod outside;
mod roots;

use serde::Serialize;

pub use crate::fault::Fault;
pub use crate::host::{Host, HostName, Protocol};
use crate::input::Limited;
use crate::secret::is_secret_name;
use crate::{envelope, manifest};
pub use agent::{Agent, Exception, Limit, Limits, OnLoss, Reached, Server};
pub use list::{Entry, Key, List, Named};
pub use outside::leads_outside;
pub use roots::{Rights, RootRule, Roots};

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

/// Reads a policy: an envelope when the text begins like a JSON object (or
/// the file is called one), and a manifest otherwise. `today` is `YYYY-MM-DD`:
/// a manifest's exceptions expire.
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

    /// Whether package managers may run, and what was fetched in a shell.
    pub fn changes_dependencies(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.dependency_change)
    }

    /// Whether an exception lets this shell or form through, on that day
    /// (`YYYY-MM-DD`).
    pub fn excepts(&self, what: &str, today: &str) -> Option<&Exception> {
        let exceptions = &self.agent.as_ref()?.exceptions;
        exceptions.iter().find(|held| held.allows == what && held.expires.as_str() >= today)
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
