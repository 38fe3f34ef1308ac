//! Directories, and the smallest set of them that lies around what was used.

use std::collections::{BTreeMap, HashSet};

use super::{Because, note};
use crate::input::Bytes;
use crate::redact;
use crate::yaml::is_hidden;

/// Directories that a run needs, and those that it made or removed itself:
/// a root must be there before the run, and again before the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    wanted: BTreeMap<Bytes, Because>,
}

/// Directories that were not there all the time.
#[derive(Clone, Debug, Default)]
pub(super) struct Passing(HashSet<Bytes>);

impl Passing {
    pub fn add(&mut self, directory: &[u8]) {
        self.0.insert(directory.to_vec());
    }

    pub fn is_one(&self, directory: &[u8]) -> bool {
        self.0.contains(directory)
    }

    /// The nearest directory that was there all the time, and whose name a
    /// policy can write.
    fn nearest<'a>(&self, directory: &'a [u8]) -> &'a [u8] {
        let mut found = directory;
        while found != b"/" && (self.0.contains(found) || !writable(found)) {
            found = parent(found);
        }
        found
    }
}

impl Places {
    pub fn want(&mut self, directory: &[u8], because: impl FnOnce() -> Because) {
        note(&mut self.wanted, directory.to_vec(), because);
    }

    /// Each as it is.
    pub fn files(&self) -> impl Iterator<Item = (&[u8], &Because)> {
        self.wanted.iter().map(|(path, because)| (path.as_slice(), because))
    }

    /// The directories around them.
    pub fn directories(&self) -> Places {
        let mut all = Places::default();
        for (path, because) in &self.wanted {
            merge(&mut all.wanted, parent(path).to_vec(), because.clone());
        }
        all
    }

    /// Needs what another one needs too.
    pub fn extend(&mut self, other: &Places) {
        for (place, because) in &other.wanted {
            merge(&mut self.wanted, place.clone(), because.clone());
        }
    }

    /// Those that `keep` holds of.
    pub fn only(&self, keep: impl Fn(&[u8]) -> bool) -> Places {
        let wanted = self.wanted.iter().filter(|(place, _)| keep(place));
        Places { wanted: wanted.map(|(place, because)| (place.clone(), because.clone())).collect() }
    }

    /// None around another one, each there all the time, and cut as asked.
    pub fn smallest(
        &self,
        passing: &Passing,
        cut: impl Fn(&[u8]) -> Bytes,
    ) -> Vec<(String, Because)> {
        let mut all: BTreeMap<Bytes, Because> = BTreeMap::new();
        for (place, because) in &self.wanted {
            merge(&mut all, cut(passing.nearest(place)), because.clone());
        }
        let inner: Vec<(Bytes, Bytes)> =
            all.keys().filter_map(|place| Some((place.clone(), outermost(place, &all)?))).collect();
        for (place, around) in inner {
            if let Some(because) = all.remove(&place) {
                merge(&mut all, around, because);
            }
        }
        let text = |place: Bytes| String::from_utf8_lossy(&place).into_owned();
        all.into_iter().map(|(place, because)| (text(place), because)).collect()
    }
}

fn merge(all: &mut BTreeMap<Bytes, Because>, place: Bytes, because: Because) {
    match all.get_mut(&place) {
        Some(known) => known.and(because),
        None => {
            all.insert(place, because);
        }
    }
}

/// The outermost of the other places that `place` lies below.
fn outermost(place: &[u8], all: &BTreeMap<Bytes, Because>) -> Option<Bytes> {
    let mut found = None;
    let mut above = place;
    while above != b"/" && !above.is_empty() {
        above = parent(above);
        if all.contains_key(above) {
            found = Some(above.to_vec());
        }
    }
    found
}

/// The directory of an absolute path; `/` is its own.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// The first components of a path below `base`.
pub(super) fn cut(path: &[u8], base: &[u8], depth: usize) -> Bytes {
    let Some(rest) = path.strip_prefix(base) else { return path.to_vec() };
    let parts = rest.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    parts.take(depth).fold(base.to_vec(), |mut cut, part| {
        if !cut.ends_with(b"/") {
            cut.push(b'/');
        }
        cut.extend_from_slice(part);
        cut
    })
}

/// Whether a policy can write this path, and the log did not redact it. What
/// a manifest refuses in names is left to larger roots in an envelope too.
pub(super) fn writable(path: &[u8]) -> bool {
    let odd =
        |c: char| c.is_control() || is_hidden(c) || matches!(c, '\\' | '$' | '%' | '*' | '?' | '~');
    let part = |part: &str| part != "." && part != "..";
    std::str::from_utf8(path).is_ok_and(|text| !text.contains(odd) && text.split('/').all(part))
        && !redact::is_in(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smallest(wanted: &[&str], passing: &[&str], depth: Option<usize>) -> Vec<String> {
        let mut places = Places::default();
        let mut gone = Passing::default();
        for place in wanted {
            places.want(place.as_bytes(), || Because::new(1, "p", "d"));
        }
        for place in passing {
            gone.add(place.as_bytes());
        }
        let cut = |path: &[u8]| depth.map_or_else(|| path.to_vec(), |n| cut(path, b"/w", n));
        places.smallest(&gone, cut).into_iter().map(|(place, _)| place).collect()
    }

    #[test]
    fn around_all_and_no_larger() {
        assert_eq!(
            smallest(&["/w/a", "/w/a/b", "/w/a-b", "/w/ab"], &[], None),
            ["/w/a", "/w/a-b", "/w/ab"]
        );
        assert_eq!(smallest(&["/w/a/b/c", "/w/a"], &[], None), ["/w/a"]);
        assert_eq!(smallest(&["/w/a/b/c"], &["/w/a/b/c", "/w/a/b"], None), ["/w/a"]);
        assert_eq!(smallest(&["/w/a/b"], &["/w/a"], None), ["/w/a/b"]);
        assert_eq!(smallest(&["/w/a/b/c", "/w/d/e", "/w"], &[], Some(1)), ["/w"]);
        assert_eq!(smallest(&["/w/a/b/c", "/w/a/d", "/w/e"], &[], Some(1)), ["/w/a", "/w/e"]);
        assert_eq!(smallest(&["/w/a\nb/c", "/w/[redacted]/x"], &[], None), ["/w"]);
        assert_eq!(smallest(&["/"], &[], None), ["/"]);
    }

    #[test]
    fn reasons_add_up() {
        let mut places = Places::default();
        for (at, place) in [(9, "/w/a"), (3, "/w/a/b"), (5, "/w/a/b")] {
            places.want(place.as_bytes(), || Because::new(at, "cc", "wrote"));
        }
        let all = places.smallest(&Passing::default(), <[u8]>::to_vec);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].1.to_string(), "line 3: cc wrote, and 2 more");
    }
}
