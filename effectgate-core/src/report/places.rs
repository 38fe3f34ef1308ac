//! Which files were touched: a tree of paths with what was done at each.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::input::{Access, FileOp};

/// Names that are kept, and those beyond that are kept for violations alone.
const MOST: usize = 100_000;
const RESERVE: usize = 10_000;
/// A path with more names than this is kept up to here.
const DEEPEST: usize = 256;

/// A tree of names; the first is the root directory, and each stands behind
/// the directory that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub all: Vec<Place>,
}

/// A name, and what was done to exactly this path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    /// The directory's index; that of the first is its own.
    pub parent: usize,
    /// By name.
    pub children: BTreeMap<String, usize>,
    /// Effects here: reads, changes of any kind, runs (as a program or a library).
    pub reads: u64,
    pub changes: u64,
    pub runs: u64,
    /// Effects outside the policy, among those above.
    pub violations: u64,
    /// Effects on names below that are not kept.
    pub unlisted: u64,
}

impl Places {
    /// The whole path of a name.
    #[must_use]
    pub fn path(&self, mut index: usize) -> String {
        let mut names = Vec::new();
        while index != 0 {
            let Some(place) = self.all.get(index) else { break };
            names.push(place.name.as_str());
            index = place.parent;
        }
        names.reverse();
        match names.first() {
            Some(first) if first.starts_with('/') => names.join("/"),
            _ => format!("/{}", names.join("/")),
        }
    }

    /// For each name, the sums of it and everything below.
    #[must_use]
    pub fn sums(&self) -> Vec<Place> {
        let mut sums = self.all.clone();
        for index in (1..sums.len()).rev() {
            let Place { parent, reads, changes, runs, violations, unlisted, .. } = sums[index];
            let above = &mut sums[parent];
            above.reads += reads;
            above.changes += changes;
            above.runs += runs;
            above.violations += violations;
            above.unlisted += unlisted;
        }
        sums
    }
}

/// As a list of paths: a tree would be nested more deeply than readers of JSON
/// go.
impl Serialize for Places {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            path: String,
            reads: u64,
            changes: u64,
            runs: u64,
            violations: u64,
            unlisted: u64,
        }
        let touched = |place: &Place| place.reads + place.changes + place.runs + place.unlisted > 0;
        let shown = self.all.iter().enumerate().filter(|(_, place)| touched(place));
        serializer.collect_seq(shown.map(|(index, place)| Shown {
            path: self.path(index),
            reads: place.reads,
            changes: place.changes,
            runs: place.runs,
            violations: place.violations,
            unlisted: place.unlisted,
        }))
    }
}

#[derive(Debug)]
pub(super) struct Recorder {
    all: Vec<Place>,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder { all: vec![Place::default()] }
    }
}

impl Recorder {
    pub fn take(&mut self, op: FileOp, object: &Value, outside: bool) {
        self.touch(object, op.access(), outside);
    }

    /// The other end of a rename or a link.
    pub fn take_other(&mut self, op: FileOp, object: &Value, outside: bool) {
        if object.is_object() {
            self.take(op, object, outside);
        }
    }

    /// The file of a program; for a script, the script.
    pub fn run(&mut self, object: &Value, outside: bool) {
        self.touch(object, Access::Run, outside);
    }

    fn touch(&mut self, object: &Value, access: Access, outside: bool) {
        let Some(path) = object["path"].as_str() else { return };
        let (at, whole) = self.place(path, outside);
        let place = &mut self.all[at];
        match access {
            _ if !whole => place.unlisted += 1,
            Access::Read => place.reads += 1,
            Access::Change => place.changes += 1,
            Access::Run => place.runs += 1,
        }
        place.violations += u64::from(outside);
    }

    /// Where a path is kept, and whether all of it is.
    fn place(&mut self, path: &str, outside: bool) -> (usize, bool) {
        let most = if outside { MOST + RESERVE } else { MOST };
        let mut at = 0;
        let names = path.split('/').filter(|name| !name.is_empty());
        for (depth, name) in names.enumerate() {
            at = match self.all[at].children.get(name) {
                Some(child) => *child,
                None if self.all.len() >= most || depth >= DEEPEST => return (at, false),
                None => {
                    let child = self.all.len();
                    let place = Place { name: name.to_owned(), parent: at, ..Place::default() };
                    self.all.push(place);
                    self.all[at].children.insert(name.to_owned(), child);
                    child
                }
            };
        }
        (at, true)
    }

    pub fn finish(self) -> Places {
        Places { all: self.all }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn touch(recorder: &mut Recorder, path: &str, outside: bool) {
        recorder.take(FileOp::OpenWrite, &json!({ "path": path }), outside);
    }

    #[test]
    fn what_is_not_kept_is_counted_where_it_is() {
        let mut recorder = Recorder::default();
        for n in 0..MOST + 10 {
            touch(&mut recorder, &format!("/srv/{n}"), false);
        }
        touch(&mut recorder, "/etc/passwd", true);
        let places = recorder.finish();
        assert!(places.all.len() <= MOST + RESERVE);
        let sums = places.sums();
        assert_eq!(sums[0].changes + sums[0].unlisted, MOST as u64 + 11);
        assert_eq!(sums[0].violations, 1);
        let found = (0..places.all.len()).find(|index| places.path(*index) == "/etc/passwd");
        assert!(found.is_some(), "a violation has room");
        let srv = places.all[0].children["srv"];
        assert_eq!(places.all[srv].unlisted, 12);
    }

    #[test]
    fn paths_come_back() {
        let mut recorder = Recorder::default();
        let deep = "/a".repeat(DEEPEST + 5);
        for path in ["/", "/srv/a", "/srv/a/b", "relative", "", &deep] {
            touch(&mut recorder, path, false);
        }
        let places = recorder.finish();
        assert_eq!(places.sums()[0].changes, 5);
        assert_eq!(places.sums()[0].unlisted, 1);
        let shown = serde_json::to_value(&places).unwrap();
        let paths: Vec<&str> =
            shown.as_array().unwrap().iter().filter_map(|place| place["path"].as_str()).collect();
        assert!(paths.contains(&"/srv/a/b") && paths.contains(&"/"), "{paths:?}");
    }
}
