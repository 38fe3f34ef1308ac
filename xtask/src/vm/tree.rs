//! A tree of files for a machine: an archive or a disk image is made of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

/// Sorted, so that every directory precedes its content.
#[derive(Debug, Default)]
pub struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
}

/// Permissions are the lower twelve bits of `mode`.
#[derive(Debug)]
pub enum Entry {
    Directory,
    Link(PathBuf),
    Host { path: PathBuf, mode: u32, size: u64, modified: SystemTime },
    Bytes { bytes: Vec<u8>, mode: u32 },
}

impl Tree {
    pub fn directory(&mut self, path: &str) {
        self.insert(Path::new(path), Entry::Directory);
    }

    pub fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        self.insert(path.as_ref(), Entry::Link(target.into()));
    }

    pub fn bytes(&mut self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>, mode: u32) {
        self.insert(path.as_ref(), Entry::Bytes { bytes: bytes.into(), mode });
    }

    /// A file of this machine, with its permissions.
    pub fn host(&mut self, path: impl AsRef<Path>, host: &Path) -> Result<()> {
        let metadata =
            fs::metadata(host).with_context(|| format!("cannot read {}", host.display()))?;
        let mode = metadata.permissions().mode() & 0o755;
        let modified = metadata.modified()?;
        let entry = Entry::Host { path: host.to_owned(), mode, size: metadata.len(), modified };
        self.insert(path.as_ref(), entry);
        Ok(())
    }

    /// Every file and link below a directory of this machine, at the same
    /// place. Nothing whose name `is_wanted` refuses, nor what is below it.
    pub fn host_directory(
        &mut self,
        path: &Path,
        host: &Path,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        self.insert(path, Entry::Directory);
        let listed =
            fs::read_dir(host).with_context(|| format!("cannot list {}", host.display()))?;
        for entry in listed {
            let entry = entry?;
            if !is_wanted(&entry.file_name().to_string_lossy()) {
                continue;
            }
            let (path, host) = (path.join(entry.file_name()), entry.path());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.host_directory(&path, &host, is_wanted)?;
            } else if kind.is_symlink() {
                self.link(path, fs::read_link(host)?);
            } else {
                self.host(path, &host)?;
            }
        }
        Ok(())
    }

    pub fn contains(&self, path: &Path) -> bool {
        self.entries.contains_key(relative(path))
    }

    /// Relative to the root.
    pub fn entries(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    fn insert(&mut self, path: &Path, entry: Entry) {
        let path = relative(path);
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            self.entries.entry(parent.to_owned()).or_insert(Entry::Directory);
        }
        self.entries.insert(path.to_owned(), entry);
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
