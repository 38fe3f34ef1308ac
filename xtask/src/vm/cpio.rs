//! The archive that the kernel unpacks as its first root file system: cpio
//! in the "newc" format (kernel: Documentation/driver-api/early-userspace/
//! buffer-format.rst). Written here because ownership and device numbers must
//! be root's even when the builder is not, and nothing is copied twice.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::tree::{Entry, Tree};

const DIRECTORY: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const FILE: u32 = 0o100_000;

/// Writes the archive and returns its size in bytes.
pub fn write(tree: &Tree, to: &Path) -> Result<u64> {
    let file = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
    let mut out = io::BufWriter::new(file);
    for (index, (path, entry)) in tree.entries().enumerate() {
        member(&mut out, index + 1, path, entry)
            .with_context(|| format!("cannot add /{} to the archive", path.display()))?;
    }
    header(&mut out, 0, 0, 0, "TRAILER!!!")?;
    out.flush().with_context(|| format!("cannot write {}", to.display()))?;
    Ok(fs::metadata(to)?.len())
}

fn member(out: &mut impl Write, inode: usize, path: &Path, entry: &Entry) -> Result<()> {
    let Some(name) = path.to_str() else { bail!("the name is not UTF-8") };
    match entry {
        Entry::Directory => header(out, inode, DIRECTORY, 0, name)?,
        Entry::Link(target) => {
            let Some(target) = target.to_str() else { bail!("the target is not UTF-8") };
            header(out, inode, LINK, target.len() as u64, name)?;
            out.write_all(target.as_bytes())?;
            pad(out, target.len() as u64)?;
        }
        Entry::Bytes { bytes, mode } => {
            header(out, inode, FILE | mode, bytes.len() as u64, name)?;
            out.write_all(bytes)?;
            pad(out, bytes.len() as u64)?;
        }
        Entry::Host { path, mode, size, .. } => {
            header(out, inode, FILE | mode, *size, name)?;
            let copied = io::copy(&mut File::open(path)?, out)?;
            if copied != *size {
                bail!("{} changed while it was read", path.display());
            }
            pad(out, *size)?;
        }
    }
    Ok(())
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
        let size = write(&tree, &path).unwrap();
        assert_eq!(size % 4, 0);
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("no {needle}"));
        assert!(at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/file\0"));
        assert!(at("a/link\0") < at("TRAILER!!!"));
    }
}
