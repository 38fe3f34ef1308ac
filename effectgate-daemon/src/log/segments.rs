//! The names of segments, and which of a directory's files are the log.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use effectgate_core::bundle::{EVENTS, segment};

/// A closed segment, before it is compressed.
pub(super) fn plain(number: u32) -> String {
    format!("events-{number:06}.jsonl")
}

/// A closed segment.
pub(super) fn compressed(number: u32) -> String {
    plain(number) + ".zst"
}

/// What becomes [`compressed`] once it is whole and durable.
pub(super) fn unfinished(number: u32) -> String {
    compressed(number) + ".part"
}

/// Whether a file of this name is a segment of a log.
#[must_use]
pub fn is_segment(name: &str) -> bool {
    name == EVENTS || segment(name).is_some()
}

/// Whether a file is a closed segment that is not compressed.
pub(super) fn is_plain(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(number).is_some_and(|(_, form)| form == Form::Plain)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Compressed,
    Unfinished,
}

/// The number in a closed segment's name.
fn number(name: &str) -> Option<(u32, Form)> {
    let (name, whole) = name.strip_suffix(".part").map_or((name, true), |name| (name, false));
    let form = match (whole, name.ends_with(".zst")) {
        (true, false) => Form::Plain,
        (true, true) => Form::Compressed,
        (false, true) => Form::Unfinished,
        (false, false) => return None,
    };
    Some((segment(name)?, form))
}

/// A log's files.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// The closed ones, in the order of the log.
    pub closed: Vec<PathBuf>,
    /// The one that is written to, behind them.
    pub open: Option<PathBuf>,
    /// What a crash left of a compression. The segment itself is still there:
    /// it is removed when its compressed form is durable.
    pub left_over: Vec<String>,
}

impl Segments {
    /// The log in a directory; empty where there is none.
    pub fn of(dir: &Path) -> io::Result<Segments> {
        let mut plains = BTreeMap::new();
        let mut compresseds = BTreeMap::new();
        let mut segments = Segments::default();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            match number(name) {
                Some((number, Form::Plain)) => drop(plains.insert(number, name.to_owned())),
                Some((number, Form::Compressed)) => {
                    drop(compresseds.insert(number, name.to_owned()));
                }
                Some((_, Form::Unfinished)) => segments.left_over.push(name.to_owned()),
                None if name == EVENTS => segments.open = Some(dir.join(name)),
                None => {}
            }
        }
        for (number, name) in compresseds {
            match plains.get(&number) {
                Some(_) => segments.left_over.push(name),
                None => drop(plains.insert(number, name)),
            }
        }
        segments.left_over.sort();
        segments.closed.extend(plains.into_values().map(|name| dir.join(name)));
        Ok(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for n in [0, 7, 999_999, 1_000_000, u32::MAX] {
            assert_eq!(number(&plain(n)), Some((n, Form::Plain)));
            assert_eq!(number(&compressed(n)), Some((n, Form::Compressed)));
            assert_eq!(number(&unfinished(n)), Some((n, Form::Unfinished)));
        }
        for other in [
            "events.jsonl",
            "events-.jsonl",
            "events-0.jsonl",
            "events-+00001.jsonl",
            "events-0000001.jsonl",
            "events-000001.jsonl.gz",
            "events-4294967296.jsonl",
            "events-000001.json",
            "xevents-000001.jsonl",
            "events-000001.jsonl.part",
            "events-000001.jsonl.zst.part.part",
        ] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
