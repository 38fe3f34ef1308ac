//! Which of the known profiles a run needs.

use std::collections::HashSet;

use super::Because;
use super::places::Places;
use crate::input::Bytes;
use crate::judge::ancestors;

/// What every program needs.
const BASE: &str = "base-linux";

/// A profile as it is on one machine, with those that it extends: resolved,
/// and without what is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    /// Directories and files that it lets be read.
    read: HashSet<Bytes>,
    /// Directories in which it looks for listed programs.
    search: HashSet<Bytes>,
}

impl Known {
    /// `search` are directories that may be read as well.
    pub fn new(name: &str, read: Vec<Bytes>, search: Vec<Bytes>) -> Known {
        let read = read.into_iter().chain(search.iter().cloned()).collect();
        Known { name: name.to_owned(), read, search: search.into_iter().collect() }
    }

    pub(super) fn covers(&self, path: &[u8]) -> bool {
        ancestors(path).any(|above| self.read.contains(above))
    }

    pub(super) fn searches(&self, directory: &[u8]) -> bool {
        self.search.contains(directory)
    }
}

/// A small set of profiles that covers what any of them does: the base first,
/// then always the one that covers most of what is left. Each with the first
/// need that it covers.
pub(super) fn choose<'a>(
    all: &'a [Known],
    reads: &Places,
    searched: impl Iterator<Item = (&'a [u8], &'a Because)>,
) -> Vec<(&'a Known, Because)> {
    let mut left: Vec<Need<'_>> = reads
        .files()
        .map(|(path, because)| Need { path, searched: false, because })
        .chain(searched.map(|(path, because)| Need { path, searched: true, because }))
        .collect();
    let mut chosen = Vec::new();
    let mut next = all.iter().find(|known| known.name == BASE);
    loop {
        if let Some(known) = next {
            let (met, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|need| need.met(known));
            left = rest;
            if let Some(first) = met.iter().min_by_key(|need| need.because.at) {
                let mut because = first.because.clone();
                because.more = met.len() as u64 - 1;
                chosen.push((known, because));
            }
        }
        let count = |known: &Known| left.iter().filter(|need| need.met(known)).count();
        // Of two that cover as much, the one that gives less.
        let counted = all.iter().map(|known| (count(known), known));
        next = counted
            .filter(|(count, _)| *count > 0)
            .max_by_key(|(count, known)| (*count, std::cmp::Reverse(known.read.len())))
            .map(|(_, known)| known);
        if next.is_none() {
            return chosen;
        }
    }
}

struct Need<'a> {
    path: &'a [u8],
    searched: bool,
    because: &'a Because,
}

impl Need<'_> {
    fn met(&self, known: &Known) -> bool {
        if self.searched { known.searches(self.path) } else { known.covers(self.path) }
    }
}
