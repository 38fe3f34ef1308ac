//! Which of the known profiles a run needs.

use super::Because;
use super::places::{Places, contains};
use crate::input::Bytes;

/// What every program needs.
const BASE: &str = "base-linux";

/// A profile as it is on one machine, with those that it extends: resolved,
/// and without what is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    /// Directories and files that it lets be read.
    pub read: Vec<Bytes>,
    /// Directories in which it looks for listed programs.
    pub search: Vec<Bytes>,
}

impl Known {
    pub(super) fn covers(&self, path: &[u8]) -> bool {
        self.read.iter().chain(&self.search).any(|root| contains(root, path))
    }

    pub(super) fn searches(&self, directory: &[u8]) -> bool {
        self.search.iter().any(|own| own == directory)
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
        next = all
            .iter()
            .filter(|known| count(known) > 0)
            .max_by_key(|known| (count(known), std::cmp::Reverse(known.read.len())));
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
