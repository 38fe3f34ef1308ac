//! What an envelope compiles to: the rules that effects are held against,
//! each with the line it was written in.

use std::path::Path;

use serde::Serialize;

pub use crate::envelope::parse;
pub use crate::fault::Fault;
pub use crate::host::{Host, HostName};

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
    /// Absolute paths in normal form, as written: not yet resolved.
    pub roots: List<String>,
    pub tools: List<String>,
    pub env: List<String>,
    pub hosts: List<Host>,
    pub network: Network,
    /// The line of the key `network`.
    pub network_line: u32,
}

/// The format a policy was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Envelope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    Deny,
    Allowlist,
}

/// One list of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T> {
    /// The line of the list's key.
    pub line: u32,
    pub entries: Vec<Entry<T>>,
}

/// One entry of a list, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    pub value: T,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

impl Policy {
    /// Whether a job may inherit this environment key: it is listed, or it
    /// belongs to the base set.
    pub fn allows_env(&self, name: &[u8]) -> bool {
        self.lists_env(name).is_some() || is_base_env(name)
    }

    /// The entry of `allowed_env` with this name.
    pub fn lists_env(&self, name: &[u8]) -> Option<&Entry<String>> {
        self.env.entries.iter().find(|entry| entry.value.as_bytes() == name)
    }

    /// The hosts that have to be resolved: index in [`Policy::hosts`], name.
    pub fn names_to_resolve(&self) -> impl Iterator<Item = (usize, &str)> {
        self.hosts.entries.iter().enumerate().filter_map(|(index, entry)| match &entry.value.name {
            HostName::Name(name) => Some((index, name.as_str())),
            HostName::Address(_) => None,
        })
    }

    /// The roots as paths, in the order of the file.
    pub fn root_paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.entries.iter().map(|entry| Path::new(&entry.value))
    }
}

/// Keys that every process has and that carry no capability, with the one
/// that the observer itself gives.
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
    name.starts_with(b"LC_") || BASE.iter().any(|base| base.as_bytes() == name)
}
