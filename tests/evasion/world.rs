//! What an attempt may not change: everything outside, as it stands.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Every name at or below some places, with what stands behind it. Access times are
/// left out: looking changes them.
#[derive(Debug, PartialEq)]
pub(crate) struct World(BTreeMap<PathBuf, String>);

impl World {
    pub(crate) fn of(places: &[PathBuf]) -> World {
        let mut found = BTreeMap::new();
        places.iter().for_each(|place| look(place, &mut found));
        World(found)
    }

    /// What is not as it was, for a message.
    pub(crate) fn changes(&self, after: &World) -> Vec<String> {
        let names = self.0.keys().chain(after.0.keys());
        let changed = names.filter(|name| self.0.get(*name) != after.0.get(*name));
        changed
            .map(|name| {
                let was = |world: &World| world.0.get(name).cloned().unwrap_or("nothing".into());
                format!("{}: {} became {}", name.display(), was(self), was(after))
            })
            .collect()
    }
}

/// Depth first, but without calling itself: some trees are deep.
fn look(directory: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        found.insert(path.clone(), line(&path, &metadata));
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(entries.map(|entry| entry.path()));
        }
    }
}

fn line(path: &Path, metadata: &fs::Metadata) -> String {
    let kind = metadata.file_type();
    let content = if kind.is_file() {
        // Programs are known well enough by their size and their first bytes.
        let mut bytes = Vec::new();
        let file = fs::File::open(path).map(|file| file.take(64));
        let _ = file.and_then(|mut head| head.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    } else if kind.is_symlink() {
        fs::read_link(path).map(|to| to.display().to_string()).unwrap_or_default()
    } else if kind.is_socket() {
        "socket".to_owned()
    } else {
        String::new()
    };
    // A directory's times and sizes follow from its names.
    let (size, modified) = match kind.is_dir() {
        true => (0, 0),
        false => (metadata.size(), metadata.mtime()),
    };
    format!(
        "mode {:o} owner {}:{} links {} size {size} time {modified} attributes {:?} {content:?}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        if kind.is_dir() { 0 } else { metadata.nlink() },
        attributes(path),
    )
}

/// The names of its extended attributes, access control lists among them.
fn attributes(path: &Path) -> String {
    let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
    let mut names = [0_u8; 1024];
    // SAFETY: path and room live across the call, and the size is the room's.
    let len = unsafe { libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    String::from_utf8_lossy(&names[..usize::try_from(len).unwrap_or(0)]).into_owned()
}
