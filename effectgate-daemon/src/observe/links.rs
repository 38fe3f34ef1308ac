//! The symbolic links of a job, in the order of its calls.

use std::collections::BTreeMap;

use effectgate_core::input::Bytes;

/// Links remembered of one job.
const MAX: usize = 65_536;

/// What stands at a path: a link with this target, or (`None`) something that
/// was moved there and may be a link.
#[derive(Debug, Default)]
pub struct Links(BTreeMap<Bytes, Option<Bytes>>);

impl Links {
    #[must_use]
    pub fn get(&self, path: &[u8]) -> Option<Option<&[u8]>> {
        self.0.get(path).map(|target| target.as_deref())
    }

    /// A link was made. As all that add something, false when there are too many.
    #[must_use]
    pub fn make(&mut self, path: &[u8], target: &[u8]) -> bool {
        self.put(path, Some(target.to_vec()))
    }

    pub fn remove(&mut self, path: &[u8]) {
        self.0.remove(path);
    }

    /// A name moved, with all below it.
    #[must_use]
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> bool {
        let moved = self.0.remove(from).unwrap_or(None);
        let mut prefix = from.to_vec();
        prefix.push(b'/');
        let below: Vec<Bytes> = self
            .0
            .range(prefix.clone()..)
            .take_while(|(path, _)| path.starts_with(&prefix))
            .map(|(path, _)| path.clone())
            .collect();
        let mut whole = self.put(to, moved);
        for path in below {
            let target = self.0.remove(&path).unwrap_or(None);
            whole &= self.put(&[to, &path[from.len()..]].concat(), target);
        }
        whole
    }

    /// A second name for what stands at `path`.
    #[must_use]
    pub fn link(&mut self, path: &[u8], new: &[u8]) -> bool {
        let same = self.0.get(path).cloned().unwrap_or(None);
        self.put(new, same)
    }

    fn put(&mut self, path: &[u8], target: Option<Bytes>) -> bool {
        if self.0.len() >= MAX && !self.0.contains_key(path) {
            return false;
        }
        self.0.insert(path.to_vec(), target);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_move_with_their_directory() {
        let mut links = Links::default();
        assert!(links.make(b"/a/d/l", b"/x") && links.make(b"/a/dd", b"/y"));
        assert!(links.rename(b"/a/d", b"/b"));
        assert_eq!(links.get(b"/b/l"), Some(Some(&b"/x"[..])));
        assert_eq!(links.get(b"/b"), Some(None), "moved there: perhaps a link");
        assert_eq!(links.get(b"/a/dd"), Some(Some(&b"/y"[..])), "another name");
        assert_eq!(links.get(b"/a/d/l"), None);
        assert!(links.link(b"/b/l", b"/c"));
        links.remove(b"/b/l");
        assert_eq!(links.get(b"/c"), Some(Some(&b"/x"[..])));
    }

    #[test]
    fn there_is_an_end_to_them() {
        let mut links = Links::default();
        for number in 0..MAX {
            assert!(links.make(number.to_string().as_bytes(), b""));
        }
        assert!(!links.make(b"one more", b""));
        assert!(links.make(b"7", b"again"));
    }
}
