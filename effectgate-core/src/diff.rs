//! What a changed policy permits that the one before did not: the capability
//! delta, for a reviewer and for machines.
//!
//! Policies are compared by what they permit, not by their text: a root below
//! one that was allowed already is nothing new. Paths are compared as they are
//! written. What a link on some machine makes of them is not known here.

mod agent;
mod programs;
mod reach;
mod roots;
mod text;

use serde::Serialize;

use crate::policy::{self, Policy};

/// The rule that what is newly permitted breaks until it was reviewed.
pub const PERMITS_MORE: &str = "permits-more";

/// The difference of two policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// What is newly permitted, the most dangerous first. Any of it wants a review.
    pub more: Vec<Change>,
    /// What is no longer permitted.
    pub less: Vec<Change>,
    /// What a reviewer should know, and what permits nothing: sentences.
    pub said: Vec<String>,
    #[serde(skip)]
    shown: Shown,
}

/// One thing that is permitted by one of the two policies only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub kind: Kind,
    /// What it is about: a path, a name, a host, a key of the file.
    pub what: String,
    /// What is said of it in the old policy; `None`: nothing.
    pub old: Option<String>,
    /// What is said of it in the new policy; `None`: nothing.
    pub new: Option<String>,
    /// The line that permits it, from 1, in the file of the policy that does.
    pub line: Option<u32>,
    /// What may be done, to be read after "may".
    #[serde(rename = "may")]
    act: String,
    /// What stands in its place in the policy that does not permit it, for a sentence.
    #[serde(skip)]
    instead: Option<String>,
}

/// What a change is about, the most dangerous first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Another `agent_id`: a new service.
    Service,
    /// Programs are not judged at all.
    ProgramsUnjudged,
    /// Reads are not judged at all.
    ReadsUnjudged,
    Write,
    /// Whatever lies there may run.
    Exec,
    /// A shell, or an interpreter used as one.
    Exception,
    DependencyChange,
    MountedSecret,
    /// An environment key whose name promises a secret.
    SecretEnv,
    Network,
    Host,
    UnixSocket,
    Binary,
    /// A further place where listed programs are looked for.
    Search,
    Read,
    /// The same, by a profile.
    ProfileRead,
    Env,
    Server,
    Tool,
    OnViolation,
    OnLoss,
    MinCoverage,
    Limit,
    Pin,
}

/// How the two policies are named in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    id: String,
    old_file: String,
    new_file: String,
}

/// Compares two policies, of the same format or of two.
pub fn diff(old: &Policy, new: &Policy) -> Delta {
    let mut more = grants(old, new);
    let mut less = grants(new, old);
    // Another service, another server: said once.
    less.retain(|change| {
        let again = |same: &Change| (same.kind, &same.what) == (change.kind, &change.what);
        change.kind != Kind::Service && !(change.kind == Kind::Server && more.iter().any(again))
    });
    // Read from `new` to `old`: what stood before and after is the other way round.
    for change in &mut less {
        std::mem::swap(&mut change.old, &mut change.new);
    }
    for (changes, word) in [(&mut more, "before"), (&mut less, "now")] {
        for change in changes {
            let instead = change.instead.take().map(|it| format!(", {word} {it}"));
            change.act.push_str(&instead.unwrap_or_default());
        }
    }
    let shown =
        Shown { id: new.id.clone(), old_file: old.file.clone(), new_file: new.file.clone() };
    Delta { more, less, said: agent::said(old, new), shown }
}

impl Delta {
    /// Whether the new policy permits anything that the old one did not.
    pub fn widens(&self) -> bool {
        !self.more.is_empty()
    }

    /// Whether the two permit and say the same.
    pub fn is_empty(&self) -> bool {
        self.more.is_empty() && self.less.is_empty() && self.said.is_empty()
    }
}

/// What `new` permits and `old` does not.
fn grants(old: &Policy, new: &Policy) -> Vec<Change> {
    let mut found = Vec::new();
    agent::identity(old, new, &mut found);
    roots::grants(old, new, &mut found);
    programs::grants(old, new, &mut found);
    reach::grants(old, new, &mut found);
    agent::grants(old, new, &mut found);
    // Stable: within a kind, the order of the file.
    found.sort_by_key(|change| change.kind);
    found
}

impl Change {
    /// What may be done, to be read after "may".
    pub fn may(&self) -> &str {
        &self.act
    }

    /// Something of which the old policy says nothing.
    fn new(kind: Kind, what: impl Into<String>, line: Option<u32>, act: impl Into<String>) -> Self {
        Change {
            kind,
            what: what.into(),
            old: None,
            new: None,
            line,
            act: act.into(),
            instead: None,
        }
    }

    fn instead(mut self, instead: impl Into<String>) -> Self {
        self.instead = Some(instead.into());
        self
    }

    fn between(mut self, old: Option<String>, new: Option<String>) -> Self {
        (self.old, self.new) = (old, new);
        self
    }
}

/// The entries of `new`'s list that `covered` does not find in the old one.
fn uncovered<'a, T: policy::Named>(
    new: &'a policy::List<T>,
    covered: impl Fn(&T) -> bool + 'a,
) -> impl Iterator<Item = &'a policy::Entry<T>> + 'a {
    new.entries().iter().filter(move |entry| !covered(&entry.value))
}
