//! Processes that joined the job from outside. What they hold came with them:
//! it is judged as inherited, whenever the first of them comes.

use std::collections::BTreeMap;

use crate::input::{Bytes, FileOp, Guard, Reach, What};

/// By pid, until their own environment of an exec inside the job is known.
#[derive(Debug, Default)]
pub(super) struct Guests(BTreeMap<u32, Guest>);

#[derive(Clone, Debug)]
struct Guest {
    start: u64,
    held: Held,
}

#[derive(Clone, Debug)]
enum Held {
    /// The keys it came with, still unjudged; `None` when they are not known.
    Unjudged(Option<Vec<Bytes>>),
    /// Judged, or gone with the program that held them.
    Settled,
}

/// Whether a process that does this is more than on its way to its program.
///
/// Who starts a command in a job's cgroup enters it between fork and exec, and
/// still holds the starter's whole environment there, which the command never
/// gets to see. An exec opens and maps the program and its interpreter before it
/// takes place, so reads do not count either, nor does becoming the command's
/// user; a process that does nothing else is judged when it ends.
pub(super) fn acts(what: &What) -> bool {
    match what {
        What::Exec(_)
        | What::Env { .. }
        | What::File { op: FileOp::OpenRead | FileOp::MapExec, .. }
        | What::Guard(Guard::Entered { .. } | Guard::Reached { reach: Reach::Identity, .. }) => {
            false
        }
        What::Fork { .. }
        | What::Exit { .. }
        | What::File { .. }
        | What::Net { .. }
        | What::Unix { .. }
        | What::Guard(_) => true,
    }
}

impl Guests {
    pub fn enter(&mut self, pid: u32, start: u64, env: Option<Vec<Bytes>>) {
        self.0.insert(pid, Guest { start, held: Held::Unjudged(env) });
    }

    /// A child holds what its parent holds, until it executes.
    pub fn fork(&mut self, parent: u32, pid: u32, start: u64) {
        // A child that was cloned into the cgroup entered a moment ago; any
        // other guest of that pid is gone, though its end was not seen.
        if self.0.get(&pid).is_some_and(|guest| guest.start == start) {
            return;
        }
        match self.0.get(&parent).map(|parent| parent.held.clone()) {
            Some(held) => self.0.insert(pid, Guest { start, held }),
            None => self.0.remove(&pid),
        };
    }

    pub fn exec(&mut self, pid: u32) {
        if let Some(guest) = self.0.get_mut(&pid) {
            guest.held = Held::Settled;
        }
    }

    /// Whether an environment that `pid` shows came from outside. From then on
    /// it is a process of the job like any other.
    pub fn shows_env(&mut self, pid: u32) -> bool {
        self.0.remove(&pid).is_some()
    }

    pub fn exit(&mut self, pid: u32) {
        self.0.remove(&pid);
    }

    /// The keys to be judged because `pid` acted, once.
    pub fn acted(&mut self, pid: u32) -> Option<Option<Vec<Bytes>>> {
        match std::mem::replace(&mut self.0.get_mut(&pid)?.held, Held::Settled) {
            Held::Unjudged(env) => Some(env),
            Held::Settled => None,
        }
    }

    /// The keys that are unjudged at the end.
    pub fn rest(self) -> impl Iterator<Item = Option<Vec<Bytes>>> {
        self.0.into_values().filter_map(|guest| match guest.held {
            Held::Unjudged(env) => Some(env),
            Held::Settled => None,
        })
    }
}
