//! What may be done below which directory or file.

use std::path::{Path, PathBuf};

use super::Key;

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
