//! The archive that the kernel unpacks as its first root file system: cpio
//! in the "newc" format (kernel: Documentation/driver-api/early-userspace/
//! buffer-format.rst). Written here because ownership and device numbers must
//! be root's even when the builder is not, and nothing is copied twice.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const DIRECTORY: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const FILE: u32 = 0o100_000;

/// A tree of files, sorted, so that every directory precedes its content.
#[derive(Debug, Default)]
pub struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug)]
enum Entry {
    Directory,
    Link(PathBuf),
    Host { path: PathBuf, mode: u32, size: u64 },
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
        self.insert(path.as_ref(), Entry::Bytes { bytes: bytes.into(), mode: FILE | mode });
    }

    /// A file of this machine, with its permissions.
    pub fn host(&mut self, path: impl AsRef<Path>, host: &Path) -> Result<()> {
        let metadata =
            fs::metadata(host).with_context(|| format!("cannot read {}", host.display()))?;
        let mode = FILE | (metadata.permissions().mode() & 0o755);
        let entry = Entry::Host { path: host.to_owned(), mode, size: metadata.len() };
        self.insert(path.as_ref(), entry);
        Ok(())
    }

    pub fn contains(&self, path: &Path) -> bool {
        self.entries.contains_key(relative(path))
    }

    /// Writes the archive and returns its size in bytes.
    pub fn write(&self, to: &Path) -> Result<u64> {
        let file = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
        let mut out = io::BufWriter::new(file);
        for (index, (path, entry)) in self.entries.iter().enumerate() {
            entry
                .write(&mut out, index + 1, path)
                .with_context(|| format!("cannot add /{} to the archive", path.display()))?;
        }
        header(&mut out, 0, 0, 0, "TRAILER!!!")?;
        out.flush().with_context(|| format!("cannot write {}", to.display()))?;
        Ok(fs::metadata(to)?.len())
    }

    fn insert(&mut self, path: &Path, entry: Entry) {
        let path = relative(path);
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            self.entries.entry(parent.to_owned()).or_insert(Entry::Directory);
        }
        self.entries.insert(path.to_owned(), entry);
    }
}

impl Entry {
    fn write(&self, out: &mut impl Write, inode: usize, path: &Path) -> Result<()> {
        let Some(name) = path.to_str() else { bail!("the name is not UTF-8") };
        match self {
            Self::Directory => header(out, inode, DIRECTORY, 0, name)?,
            Self::Link(target) => {
                let Some(target) = target.to_str() else { bail!("the target is not UTF-8") };
                header(out, inode, LINK, target.len() as u64, name)?;
                out.write_all(target.as_bytes())?;
                pad(out, target.len() as u64)?;
            }
            Self::Bytes { bytes, mode } => {
                header(out, inode, *mode, bytes.len() as u64, name)?;
                out.write_all(bytes)?;
                pad(out, bytes.len() as u64)?;
            }
            Self::Host { path, mode, size } => {
                header(out, inode, *mode, *size, name)?;
                let copied = io::copy(&mut File::open(path)?, out)?;
                if copied != *size {
                    bail!("{} changed while it was read", path.display());
                }
                pad(out, *size)?;
            }
        }
        Ok(())
    }
}

fn header(out: &mut impl Write, inode: usize, mode: u32, size: u64, name: &str) -> Result<()> {
    let size = u32::try_from(size).context("cpio holds no file of 4 GiB or more")?;
    let name_size = name.len() + 1;
    // magic, inode, mode, uid, gid, links, mtime, size, device (2), special
    // device (2), length of the name, checksum (unused)
    write!(
        out,
        "070701{inode:08x}{mode:08x}{0:08x}{0:08x}{1:08x}{0:08x}{size:08x}\
         {0:08x}{0:08x}{0:08x}{0:08x}{name_size:08x}{0:08x}{name}\0",
        0, 1
    )?;
    pad(out, (110 + name_size) as u64)
}

/// Headers and contents start at multiples of four bytes.
fn pad(out: &mut impl Write, written: u64) -> Result<()> {
    let missing = (4 - written % 4) % 4;
    out.write_all(&[0; 3][..usize::try_from(missing)?])?;
    Ok(())
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_and_everything_is_aligned() {
        let mut tree = Tree::default();
        tree.bytes("/a/b/file", *b"12345", 0o644);
        tree.link("/a/link", "b/file");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive");
        let size = tree.write(&path).unwrap();
        assert_eq!(size % 4, 0);
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("no {needle}"));
        assert!(at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/file\0"));
        assert!(at("a/link\0") < at("TRAILER!!!"));
    }
}
