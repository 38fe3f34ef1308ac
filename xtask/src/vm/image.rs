//! The root file system of the machines as a disk image (ext4, which the
//! pinned kernels have built in, as they have NVMe). It costs a boot nothing:
//! only what is read is ever transferred.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::tree::{Entry, Tree};
use crate::repo::Repo;
use crate::run::{run, which};

/// What the tests may write, at most. The file is sparse.
const FREE: u64 = 1 << 30;

/// The image of `tree`: the one of an earlier run when nothing has changed.
pub fn of(repo: &Repo, tree: &Tree) -> Result<PathBuf> {
    let images = repo.cache().join("images");
    let image = images.join(format!("{}.ext4", identity(tree)?));
    if !image.is_file() {
        // One is enough: each is large.
        let _ = fs::remove_dir_all(&images);
        fs::create_dir_all(&images)
            .with_context(|| format!("cannot create {}", images.display()))?;
        let temporary = tempfile::tempdir_in(&images)?;
        let unfinished = temporary.path().join("image");
        build(tree, &temporary.path().join("root"), &unfinished)?;
        fs::rename(&unfinished, &image)
            .with_context(|| format!("cannot move the image to {}", image.display()))?;
    }
    Ok(image)
}

/// Of what the image would hold. A file of this machine is known by its path,
/// its size and when it was changed.
fn identity(tree: &Tree) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for (path, entry) in tree.entries() {
        field(path.as_os_str().as_bytes());
        match entry {
            Entry::Directory => field(b"directory"),
            Entry::Link(target) => field(target.as_os_str().as_bytes()),
            Entry::Bytes { bytes, mode } => {
                field(bytes);
                field(&mode.to_le_bytes());
            }
            Entry::Host { path, mode, size, modified } => {
                field(path.as_os_str().as_bytes());
                field(&mode.to_le_bytes());
                field(&size.to_le_bytes());
                field(&modified.duration_since(UNIX_EPOCH)?.as_nanos().to_le_bytes());
            }
        }
    }
    Ok(hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// mke2fs takes a directory, so that there has to be one for a moment.
fn build(tree: &Tree, staging: &Path, image: &Path) -> Result<()> {
    fs::create_dir(staging).with_context(|| format!("cannot create {}", staging.display()))?;
    let (mut size, mut files) = (0, 0);
    for (path, entry) in tree.entries() {
        let to = staging.join(path);
        size += stage(entry, &to).with_context(|| format!("cannot write {}", to.display()))?;
        files += 1;
    }
    // A page for each name beside the contents, and a tenth for the tables.
    let blocks = (size + files * 4096) / 4096;
    let total = (blocks + blocks / 10) * 4096 + FREE;
    let mke2fs = which("mke2fs").context("no mke2fs; run `cargo xtask setup --for vm`")?;
    let mut make = Command::new(mke2fs);
    // No journal: an image outlives no run that writes to it.
    make.args(["-q", "-t", "ext4", "-b", "4096", "-m", "0"])
        .args(["-O", "^has_journal,^metadata_csum,^resize_inode"])
        .args(["-E", "root_owner=0:0,nodiscard"])
        .args(["-N", &(files + 65536).to_string()])
        .arg("-d")
        .args([staging, image])
        .arg((total / 4096).to_string());
    run(&mut make)
}

/// Returns the size in bytes.
fn stage(entry: &Entry, to: &Path) -> Result<u64> {
    match entry {
        Entry::Directory => {
            fs::create_dir(to)?;
            fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
            Ok(0)
        }
        Entry::Link(target) => {
            symlink(target, to)?;
            Ok(0)
        }
        Entry::Bytes { bytes, mode } => {
            let mut file = File::create(to)?;
            file.write_all(bytes)?;
            file.set_permissions(fs::Permissions::from_mode(*mode))?;
            Ok(bytes.len() as u64)
        }
        Entry::Host { path, mode, modified, .. } => {
            let size = fs::copy(path, to)?;
            fs::set_permissions(to, fs::Permissions::from_mode(mode | 0o200))?;
            // Python compiles again what is younger than its compiled form.
            File::options().write(true).open(to)?.set_modified(*modified)?;
            fs::set_permissions(to, fs::Permissions::from_mode(*mode))?;
            Ok(size)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        let mut tree = Tree::default();
        tree.bytes("/etc/file", text, 0o644);
        tree.link("/etc/link", "file");
        tree
    }

    #[test]
    fn another_content_is_another_image() {
        assert_eq!(identity(&tree("a")).unwrap(), identity(&tree("a")).unwrap());
        assert_ne!(identity(&tree("a")).unwrap(), identity(&tree("b")).unwrap());
    }

    #[test]
    fn a_file_of_this_machine_keeps_its_time() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::write(&from, "x").unwrap();
        let time = UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        File::options().write(true).open(&from).unwrap().set_modified(time).unwrap();
        let mut tree = Tree::default();
        tree.host("/file", &from).unwrap();
        let (_, entry) = tree.entries().next().unwrap();
        assert_eq!(stage(entry, &to).unwrap(), 1);
        assert_eq!(fs::metadata(&to).unwrap().modified().unwrap(), time);
    }
}
