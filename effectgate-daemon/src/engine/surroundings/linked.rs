//! Files that have a name below the job's roots and another one elsewhere.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::observe::proc::mount_of;

/// Directory entries that are looked at, so that a huge tree does not hold the
/// job up for ever: some seconds.
const LOOKED_AT: usize = 2_000_000;

/// A file by device and inode as `stat` says, which together are its own: how
/// many names it has, how many were found, and one of them.
type Names = HashMap<(u64, u64), (u64, u64, PathBuf)>;

/// The files below `roots` that have more names than are there: what is written
/// to them is written elsewhere. Mounts are not crossed.
#[must_use]
pub fn elsewhere(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut names = Names::new();
    let mut left = LOOKED_AT;
    for root in apart(roots) {
        look(&root, &mut names, &mut left);
    }
    if left == 0 {
        tracing::warn!(
            "more than {LOOKED_AT} files lie below the roots: of those beyond, it is not known \
             which have another name elsewhere"
        );
    }
    let mut paths: Vec<PathBuf> = names
        .into_values()
        .filter(|(all, found, _)| found < all)
        .map(|(_, _, path)| path)
        .collect();
    paths.sort();
    paths
}

/// Those that lie below no other: no name is to be counted twice.
fn apart(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> =
        roots.iter().filter_map(|root| fs::canonicalize(root).ok()).collect();
    real.sort();
    real.dedup_by(|below, above| below.starts_with(above));
    real
}

fn look(root: &Path, names: &mut Names, left: &mut usize) {
    let mount = mount_of(root);
    let mut todo = vec![root.to_owned()];
    while let Some(directory) = todo.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                // Not by their devices: those of subvolumes and overlays differ
                // within one mount.
                let path = entry.path();
                if mount_of(&path) == mount {
                    todo.push(path);
                }
            } else if meta.is_file() && meta.nlink() > 1 {
                let file = (meta.dev(), meta.ino());
                names.entry(file).or_insert_with(|| (meta.nlink(), 0, entry.path())).1 += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_over_all_roots() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        for name in ["a/deep", "b", "outside"] {
            fs::create_dir_all(at(name)).expect("mkdir");
        }
        for name in ["a/both", "a/deep/inside", "outside/one", "a/alone"] {
            fs::write(at(name), "content").expect("write");
        }
        fs::hard_link(at("a/both"), at("b/both")).expect("link");
        fs::hard_link(at("a/deep/inside"), at("a/inside")).expect("link");
        fs::hard_link(at("outside/one"), at("a/one")).expect("link");
        let roots = [at("a"), at("a/deep"), at("b")];
        assert_eq!(elsewhere(&roots), [at("a/one").canonicalize().expect("it is there")]);
        let both = elsewhere(&[at("a")]);
        assert_eq!(both.len(), 2, "{both:?}");
    }
}
