//! The smallest policy under which a recorded run passes.
//!
//! A draft lists what a run used and nothing else: hosts, programs and keys
//! exactly, and as roots the nearest directories that were there before the
//! run. It is a start for people, who know what the run was meant to do; so
//! `check` refuses it until they have put their names to it. What cannot be
//! allowed is never left out silently.

mod envelope;
mod log;
mod manifest;
mod places;
mod profiles;
mod trace;
mod used;
mod yaml;

use std::fmt;

pub use log::of_log;
pub use profiles::Known;
pub use trace::{TraceError, of_trace};
pub use used::Used;

/// What a draft is asked to be.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What relative roots are relative to: absolute and resolved.
    pub workspace: &'a [u8],
    /// Roots are cut to this many components, counted from the workspace
    /// below it and from `/` elsewhere; `None`: they are exact.
    pub root_depth: Option<usize>,
    /// `agent_id` or `envelope_id`. Without one, `check` refuses the draft.
    pub id: Option<&'a str>,
    /// Who answers for a manifest. Without one, `check` refuses it.
    pub owner: Option<&'a str>,
    /// The profiles that may be chosen, as they are on this machine.
    pub profiles: &'a [Known],
    /// As people might fill it in: not for them, but to try the draft.
    pub trial: bool,
}

/// A proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub text: String,
    /// Why each entry is there, where the format has no comments.
    pub because: Vec<String>,
    /// What the run did and this policy cannot allow.
    pub left_out: Vec<String>,
}

/// What an entry follows from: the first time that the run needed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Because {
    /// The line of the log or the trace, from 1.
    at: u64,
    /// The program, by its basename or its thread's name.
    who: String,
    did: String,
    /// Times after the first.
    more: u64,
}

impl Because {
    pub fn new(at: u64, who: impl Into<String>, did: impl Into<String>) -> Self {
        Because { at, who: who.into(), did: did.into(), more: 0 }
    }

    /// Both, under the earlier of the two.
    fn and(&mut self, other: Because) {
        let more = self.more + other.more + 1;
        if other.at < self.at {
            *self = other;
        }
        self.more = more;
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} {}", self.at, plain(&self.who), plain(&self.did))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// Text that comes from the job, for comments and terminals.
fn plain(text: &str) -> String {
    let hidden = |c: char| c.is_control() || crate::yaml::is_hidden(c);
    text.replace(hidden, "\u{fffd}")
}

/// Takes note of a need; the reason is made only for the first.
fn note<K: Ord>(
    all: &mut std::collections::BTreeMap<K, Because>,
    key: K,
    because: impl FnOnce() -> Because,
) {
    all.entry(key).and_modify(|known| known.more += 1).or_insert_with(because);
}
