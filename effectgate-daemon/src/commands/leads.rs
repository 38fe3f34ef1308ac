//! Where paths lead, even when their end is not there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where a path leads, all links followed.
///
/// # Errors
/// When it cannot be followed, or climbs with `..` out of what is not there.
pub fn leads_to(path: &Path) -> io::Result<PathBuf> {
    follow(path, 0)
}

fn follow(path: &Path, followed: usize) -> io::Result<PathBuf> {
    // As many as the kernel follows (path_resolution(7)).
    const MOST: usize = 40;
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && followed < MOST => {}
        other => return other,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let parent = follow(parent, followed)?;
    match fs::read_link(parent.join(name)) {
        Ok(target) => follow(&parent.join(target), followed + 1),
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
            let place = leads_to(&workspace.join(root)).unwrap();
            assert_eq!(place.starts_with(&workspace), is_inside, "{root}: {place:?}");
        }
        assert!(leads_to(&workspace.join("loop/x")).is_err());
    }
}
