//! A pinned kernel on disk: downloaded once, verified, unpacked.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::apt::Apt;
use super::pins::{FILE, Kernel, Package, Pins};
use crate::repo::Repo;
use crate::run::run;

/// An unpacked kernel.
#[derive(Debug)]
pub struct Unpacked {
    pub name: String,
    directory: PathBuf,
}

impl Unpacked {
    /// The image that QEMU boots. Packages up to 6.x keep it in `/boot`,
    /// later ones beside the modules.
    pub fn image(&self) -> Result<PathBuf> {
        find(&self.directory, &|name| name.starts_with("vmlinuz"))?
            .with_context(|| format!("no vmlinuz under {}", self.directory.display()))
    }

    /// A loadable module, plain or compressed; `None` when built in.
    pub fn module(&self, module: &str) -> Result<Option<PathBuf>> {
        let plain = format!("{module}.ko");
        let compressed = format!("{module}.ko.xz");
        find(&self.directory, &|name| name == plain || name == compressed)
    }
}

/// The kernel, from the cache when its packages were unpacked before.
pub fn fetch(repo: &Repo, kernel: &Kernel) -> Result<Unpacked> {
    let packages = repo.cache().join("packages");
    let directory = repo.cache().join("kernels").join(identity(kernel));
    if !directory.is_dir() {
        fs::create_dir_all(&packages)
            .with_context(|| format!("cannot create {}", packages.display()))?;
        let files = download(repo, kernel, &packages)?;
        unpack(&files, &directory)?;
    }
    Ok(Unpacked { name: kernel.name.clone(), directory })
}

/// What the mirrors have now for each pinned package, as pins to paste.
pub fn candidates(repo: &Repo, pins: &Pins) -> Result<String> {
    let apt = Apt::refreshed(repo, pins)?;
    let mut text = String::new();
    for kernel in pins.all() {
        for pinned in &kernel.packages {
            let Some((prefix, suffix)) = series(&pinned.package, &kernel.name) else {
                bail!("{FILE}: {} does not contain its series {}", pinned.package, kernel.name);
            };
            let mut described = apt.describe(prefix, suffix)?;
            described.sort_by_key(|one| numbers(&one.version));
            if described.is_empty() {
                writeln!(text, "// nothing like {} is left", pinned.package)?;
            }
            for one in described {
                let pin = Package {
                    package: one.package,
                    version: one.version,
                    suite: pinned.suite.clone(),
                    sha256: one.sha256,
                };
                writeln!(text, "{}", serde_json::to_string(&pin)?)?;
            }
        }
    }
    Ok(text)
}

/// Splits a package's name around what changes from one update to the next.
fn series<'a>(package: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    // With the dot behind it: 6.1 is not the beginning of 6.12.
    let series = format!("{name}.");
    let end = package.find(&series)? + series.len();
    let suffix = package.find("-cloud-")?;
    Some((&package[..end], &package[suffix..]))
}

/// A version's numbers, which order the versions of one series.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// A directory name that changes with any pin of the kernel.
fn identity(kernel: &Kernel) -> String {
    let digests: String = kernel.packages.iter().map(|p| p.sha256.as_str()).collect();
    format!("{}-{}", kernel.name, &hex(&Sha256::digest(digests))[..16])
}

fn download(repo: &Repo, kernel: &Kernel, into: &Path) -> Result<Vec<PathBuf>> {
    let mut apt = None;
    let mut files = Vec::new();
    for package in &kernel.packages {
        // Named by content: a changed pin never meets a stale file.
        let kept = into.join(format!("{}.deb", package.sha256));
        if !kept.is_file() {
            let apt = match &apt {
                Some(apt) => apt,
                None => apt.insert(Apt::refreshed(repo, &Pins::read()?)?),
            };
            let temporary = tempfile::tempdir_in(into)?;
            let file = apt.download(package, temporary.path())?;
            verify(&file, package)?;
            fs::rename(&file, &kept)
                .with_context(|| format!("cannot keep {} as {}", file.display(), kept.display()))?;
        }
        verify(&kept, package)?;
        files.push(kept);
    }
    Ok(files)
}

fn verify(file: &Path, package: &Package) -> Result<()> {
    let mut digest = Sha256::new();
    let mut opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    io::copy(&mut opened, &mut digest)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let found = hex(&digest.finalize());
    if found != package.sha256 {
        bail!(
            "{} {} has SHA-256 {found}, but {FILE} pins {}; it was rebuilt or tampered with. \
             Remove {} and try again, or pin anew (`cargo xtask vm --pin`)",
            package.package,
            package.version,
            package.sha256,
            file.display()
        );
    }
    Ok(())
}

/// Unpacked beside the final place and then renamed, so that an interrupted
/// run leaves nothing that looks complete.
fn unpack(files: &[PathBuf], directory: &Path) -> Result<()> {
    let parent = directory.parent().context("the cache has no parent directory")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let temporary = tempfile::tempdir_in(parent)?;
    for file in files {
        run(Command::new("dpkg-deb").arg("--extract").arg(file).arg(temporary.path()))?;
    }
    fs::rename(temporary.keep(), directory)
        .with_context(|| format!("cannot move the unpacked kernel to {}", directory.display()))
}

fn find(directory: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Option<PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        // Never through a symbolic link: packages link back to themselves.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if let Some(found) = find(&entry.path(), wanted)? {
                return Ok(Some(found));
            }
        } else if kind.is_file() && wanted(&entry.file_name().to_string_lossy()) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_of_a_package_leaves_out_its_update() {
        let package = "linux-image-6.12.117+deb13-cloud-amd64";
        assert_eq!(series(package, "6.12"), Some(("linux-image-6.12.", "-cloud-amd64")));
        assert_eq!(series(package, "7.3"), None);
    }

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(numbers("6.1.9-1") < numbers("6.1.176-1"));
    }

    #[test]
    fn another_content_is_another_directory() {
        let pins = Pins::read().unwrap();
        let mut kernel = pins.all()[0].clone();
        let before = identity(&kernel);
        kernel.packages[0].sha256 = "0".repeat(64);
        assert_ne!(identity(&kernel), before);
    }
}
