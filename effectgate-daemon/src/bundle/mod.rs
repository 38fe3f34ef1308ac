//! Evidence bundles on this machine: a directory or one `.tar.zst`, read so
//! that nothing leads out of it, signed, and packed.

mod archive;
mod check;
mod host;
mod page;
mod seal;

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use effectgate_core::{
    bundle::{self, Digests},
    packet::Problem,
    pin,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{commands::policy, log::Log};

pub use archive::{is_tar, pack};
pub use check::{Checked, check};
pub use host::facts;
pub use page::page;
pub use seal::{Added, amend, finish, statement};

/// The largest file of a name that is read into memory, bytes. JSON takes many
/// times as much there, so that a small archive could take all of it.
fn largest(name: &str) -> u64 {
    match name {
        // That of a long job: two lists of 100,000 entries, in Base64.
        bundle::STATEMENT => 256 << 20,
        // A violation can be as long as the arguments of a program.
        bundle::VERDICT => 64 << 20,
        bundle::POLICY | bundle::PROPERTIES | bundle::DIGESTS => policy::LARGEST,
        _ => 1 << 20,
    }
}

/// A bundle that is being read.
#[derive(Debug)]
pub struct Bundle {
    dir: PathBuf,
    names: BTreeSet<String>,
    /// Where an archive was unpacked to, as long as it is read.
    unpacked: Option<TempDir>,
}

/// The log that lies here: as [`Log::open`], or in a bundle that was packed.
///
/// # Errors
/// When it cannot be opened, or the archive holds what belongs in no bundle.
pub fn log_at(path: &Path) -> Result<Log> {
    let mut log = Log::open(path)?;
    if path.is_dir() || !log.fill_buf().is_ok_and(is_tar) {
        return Ok(log);
    }
    let mut problems = Vec::new();
    let bundle = Bundle::open(path, &mut problems)?;
    if let Some(problem) = problems.first() {
        bail!("{}: {problem}", path.display());
    }
    Ok(bundle.log()?.keeping(bundle.unpacked))
}

impl Bundle {
    /// Opens a directory, or unpacks an archive. What is no file of a bundle is
    /// a problem, and is passed over.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path, problems: &mut Vec<Problem>) -> Result<Bundle> {
        let what = || format!("cannot read the bundle {}", path.display());
        if fs::metadata(path).with_context(what)?.is_dir() {
            let names = names(path, problems).with_context(what)?;
            return Ok(Bundle { dir: path.to_owned(), names, unpacked: None });
        }
        let unpacked = archive::unpack(path, problems).with_context(what)?;
        let names = names(unpacked.path(), problems).with_context(what)?;
        Ok(Bundle { dir: unpacked.path().to_owned(), names, unpacked: Some(unpacked) })
    }

    /// The directory of its files; of an archive, where it was unpacked to as
    /// long as this lives.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether there is a file of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Names of the files that are there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// What a file holds.
    ///
    /// # Errors
    /// When it cannot be read, or is larger than any of its kind.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let what = || format!("cannot read {}", self.dir.join(name).display());
        let mut bytes = Vec::new();
        let file = plain(&self.dir.join(name)).with_context(what)?;
        let largest = largest(name);
        file.take(largest + 1).read_to_end(&mut bytes).with_context(what)?;
        let fits = bytes.len() as u64 <= largest;
        fits.then_some(bytes).with_context(|| format!("{}: it is too large", what()))
    }

    /// The log, from its first record to its last, over all its segments.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn log(&self) -> Result<Log> {
        Log::open(&self.dir)
    }

    /// The SHA-256 of every file that a list of digests names.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn digests(&self) -> Result<Digests> {
        let listed = self.names().filter(|name| bundle::is_listed(name));
        listed.map(|name| Ok((name.to_owned(), self.digest(name)?))).collect()
    }

    fn digest(&self, name: &str) -> Result<String> {
        let path = self.dir.join(name);
        let mut digest = Sha256::new();
        plain(&path)
            .and_then(|mut file| io::copy(&mut file, &mut digest))
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(pin::hex(&digest.finalize()))
    }
}

/// The files of a directory that a bundle has.
fn names(dir: &Path, problems: &mut Vec<Problem>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !bundle::is_known(&name) {
            problems.push(extra(&name));
        } else if entry.file_type()?.is_file() {
            names.insert(name);
        } else {
            problems.push(Problem::new(
                "bundle-no-file",
                &name,
                "it is no plain file",
                "a link can lead anywhere: put the file itself in",
            ));
        }
    }
    Ok(names)
}

fn extra(name: &str) -> Problem {
    // It may be any bytes.
    let shown: String = name.chars().take(200).collect();
    Problem::new(
        "bundle-extra-file",
        &shown.escape_debug().to_string(),
        "no bundle has such a file",
        "keep it elsewhere",
    )
}

/// Opens a plain file: no link, which could lead out of the bundle, and
/// nothing that waits.
fn plain(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}
