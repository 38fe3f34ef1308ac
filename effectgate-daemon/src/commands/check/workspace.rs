//! A manifest's roots, as they lie in the workspace: none may be a way out of it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use effectgate_core::policy::{self, Fault, Kind, Policy, RootRule};

/// The roots that lead out of the workspace, a path without links. A root
/// that is not there yet is no fault: the job may be what makes it.
pub fn faults(policy: &Policy, bytes: &[u8], workspace: &Path) -> Vec<Fault> {
    if policy.kind == Kind::Envelope {
        return Vec::new();
    }
    let relative = |root: &&RootRule| {
        !root.profile && !Path::new(&root.path).is_absolute() && !root.path.starts_with("~/")
    };
    let mut faults: Vec<Fault> = Vec::new();
    for root in policy.roots.entries.iter().filter(relative) {
        let said = match leads_to(&workspace.join(&root.path), 0) {
            Ok(place) if place.starts_with(workspace) => continue,
            Ok(place) => format!("leads to {:?}, which is outside the workspace", place),
            Err(error) => format!("cannot be followed: {error}"),
        };
        faults.push(policy::leads_outside(policy, root, &said, bytes));
    }
    // A path may be a root for writing and for reading.
    faults.sort_by_key(|fault| (fault.line, fault.column));
    faults.dedup_by_key(|fault| (fault.line, fault.column));
    faults
}

/// Where a path leads, all links followed, even when its end is not there.
fn leads_to(path: &Path, followed: usize) -> io::Result<PathBuf> {
    // As many as the kernel follows (path_resolution(7)).
    const MOST: usize = 40;
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && followed < MOST => {}
        other => return other,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let parent = leads_to(parent, followed)?;
    match fs::read_link(parent.join(name)) {
        Ok(target) => leads_to(&parent.join(target), followed + 1),
        Err(_) => Ok(parent.join(name)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_their_end_even_where_nothing_is() {
        let place = tempfile::tempdir().unwrap();
        let workspace = fs::canonicalize(place.path()).unwrap().join("repo");
        fs::create_dir_all(workspace.join("src")).unwrap();
        for (name, target) in [
            ("in", "src"),
            ("in-absolute", workspace.join("src").to_str().unwrap()),
            ("in-later", "src/later"),
            ("out", "/etc"),
            ("out-later", "../later"),
            ("out-by-two", "out-later"),
        ] {
            symlink(target, workspace.join(name)).unwrap();
        }
        symlink("loop", workspace.join("loop")).unwrap();
        for (root, is_inside) in [
            (".", true),
            ("src", true),
            ("missing/deep", true),
            ("in", true),
            ("in-absolute", true),
            ("in-later/deep", true),
            ("out", false),
            ("out/missing", false),
            ("out-later", false),
            ("out-later/deep", false),
            ("out-by-two", false),
        ] {
            let place = leads_to(&workspace.join(root), 0).unwrap();
            assert_eq!(place.starts_with(&workspace), is_inside, "{root}: {place:?}");
        }
        assert!(leads_to(&workspace.join("loop/x"), 0).is_err());
    }
}
