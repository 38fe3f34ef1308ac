//! The symbolic links of a job: those that lay below its roots, and what it
//! did to them and to its own, in the order of its calls.

use std::{collections::BTreeMap, fs, os::unix::ffi::OsStringExt, path::PathBuf};

use effectgate_core::input::Bytes;

use super::proc::mount_of;

/// Links remembered of one job.
const MAX: usize = 65_536;

/// What stands at a path: a link with this target, or (`None`) something that
/// was moved there and may be a link.
#[derive(Debug, Default)]
pub struct Links(BTreeMap<Bytes, Option<Bytes>>);

/// Directory entries that are looked at below a job's roots, so that a huge
/// tree does not hold the job up: some 0.3 s.
const LOOKED_AT: usize = 200_000;

/// Links that lie below `roots`, with what they say; those of a tree with more
/// entries than are looked at are not all among them. Mounts are not crossed.
#[must_use]
pub fn below(roots: &[PathBuf]) -> Vec<(Bytes, Bytes)> {
    let mut links = Vec::new();
    let mut left = LOOKED_AT;
    let mut todo: Vec<PathBuf> =
        roots.iter().filter_map(|root| fs::canonicalize(root).ok()).collect();
    while let Some(directory) = todo.pop() {
        // What cannot be read cannot be led through by its path either.
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let mount = mount_of(&directory);
        for entry in entries.flatten() {
            if left == 0 || links.len() >= MAX {
                return links;
            }
            left -= 1;
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => {
                    if let Ok(target) = fs::read_link(&path) {
                        links.push((
                            path.into_os_string().into_vec(),
                            target.into_os_string().into_vec(),
                        ));
                    }
                }
                Ok(kind) if kind.is_dir() && mount_of(&path) == mount => todo.push(path),
                _ => {}
            }
        }
    }
    links
}

impl Links {
    /// Those that were there before the job.
    #[must_use]
    pub fn with(before: Vec<(Bytes, Bytes)>) -> Links {
        Links(before.into_iter().map(|(path, target)| (path, Some(target))).collect())
    }

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

    /// A name moved, with all below it, and took the place of what was there.
    #[must_use]
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> bool {
        let moved = self.take(from);
        self.take(to);
        self.give(to, moved)
    }

    /// Two names changed places, with all below them.
    #[must_use]
    pub fn exchange(&mut self, one: &[u8], other: &[u8]) -> bool {
        let (first, second) = (self.take(one), self.take(other));
        self.give(other, first) & self.give(one, second)
    }

    /// Removes a path and all below it, by the rest of their paths.
    fn take(&mut self, path: &[u8]) -> Vec<(Bytes, Option<Bytes>)> {
        let mut taken = vec![(Bytes::new(), self.0.remove(path).unwrap_or(None))];
        let prefix = [path, b"/"].concat();
        let below: Vec<Bytes> = self
            .0
            .range(prefix.clone()..)
            .take_while(|(path, _)| path.starts_with(&prefix))
            .map(|(path, _)| path.clone())
            .collect();
        for whole in below {
            let target = self.0.remove(&whole).unwrap_or(None);
            taken.push((whole[path.len()..].to_vec(), target));
        }
        taken
    }

    fn give(&mut self, path: &[u8], taken: Vec<(Bytes, Option<Bytes>)>) -> bool {
        let mut whole = true;
        for (rest, target) in taken {
            whole &= self.put(&[path, &rest].concat(), target);
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
    fn two_names_change_places_with_what_is_below_them() {
        let mut links = Links::default();
        assert!(links.make(b"/l", b"/x") && links.make(b"/d/m", b"/y"));
        assert!(links.exchange(b"/l", b"/d"));
        assert_eq!(links.get(b"/d"), Some(Some(&b"/x"[..])));
        assert_eq!(links.get(b"/l"), Some(None), "moved there: perhaps a link");
        assert_eq!(links.get(b"/l/m"), Some(Some(&b"/y"[..])));
        assert_eq!(links.get(b"/d/m"), None);
    }

    #[test]
    fn those_that_were_there_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("d")).expect("a directory");
        std::os::unix::fs::symlink("/etc", dir.path().join("d/l")).expect("a link");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("round")).expect("a link");
        let mut found = below(&[dir.path().to_owned()]);
        found.sort();
        let names: Vec<&[u8]> = found.iter().map(|(_, target)| &target[..]).collect();
        assert_eq!(names[0], b"/etc");
        assert_eq!(names.len(), 2, "links are not followed");
        assert!(below(&[PathBuf::from("/nowhere/at/all")]).is_empty());
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
