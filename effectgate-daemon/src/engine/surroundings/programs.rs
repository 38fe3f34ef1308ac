//! The files that the names of a policy's programs mean: those on the system's
//! path, and in the directories that its profiles add, which the job cannot
//! write.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use effectgate_core::{
    pin,
    policy::{Binary, Entry, Policy},
    programs,
};
use sha2::{Digest, Sha256};

use super::Wanted;
use crate::clock::today;

/// A file that may run.
#[derive(Debug)]
pub struct Program {
    /// Index in the policy's programs.
    pub entry: usize,
    /// Resolved.
    pub path: PathBuf,
    pub file: File,
}

/// Looks every listed program up.
///
/// # Errors
/// When one is not to be found, has another digest than is listed, or is a
/// shell that no exception covers under another name.
pub fn find(policy: &Policy, roots: &[Wanted]) -> Result<Vec<Program>> {
    let Some(binaries) = &policy.binaries else { return Ok(Vec::new()) };
    let places = Places::of(roots);
    let shells = places.shells();
    let exec_roots = roots.iter().any(|root| root.rights.exec);
    let mut found = Vec::new();
    for (index, entry) in binaries.entries().iter().enumerate() {
        let cited = || format!("{}:{}: {}", policy.file, entry.line, binaries.key.name);
        let files = places.files(&entry.value.name).with_context(cited)?;
        if files.is_empty() && !exec_roots {
            let searched: Vec<_> = places.dirs.iter().map(|d| d.display().to_string()).collect();
            bail!(
                "{}: there is no program {} that the job could not change; searched: {}",
                cited(),
                entry.value.name,
                searched.join(" ")
            );
        }
        for (path, file) in files {
            check(policy, entry, &path, &file, &shells).with_context(cited)?;
            found.push(Program { entry: index, path, file });
        }
    }
    Ok(found)
}

/// Names of shells, by device and inode of their files, both as `stat` says.
type Shells = HashMap<(u64, u64), Vec<&'static str>>;

fn check(
    policy: &Policy,
    entry: &Entry<Binary>,
    path: &Path,
    file: &File,
    shells: &Shells,
) -> Result<()> {
    let name = &entry.value.name;
    if let Some(wanted) = &entry.value.sha256 {
        let is = digest(file).with_context(|| format!("cannot read {}", path.display()))?;
        if is != *wanted {
            bail!("{name}: {} has the SHA-256 {is}, and {wanted} is listed", path.display());
        }
    }
    let meta = file.metadata()?;
    let Some(shells) = shells.get(&(meta.dev(), meta.ino())) else { return Ok(()) };
    let today = today();
    let mut names = std::iter::once(name.as_str()).chain(shells.iter().copied());
    if !names.any(|name| policy.excepts(name, &today).is_some()) {
        bail!(
            "{name} is the file {}, which is also the shell {}: who may run the one may run the \
             other. List a program of its own, or have an exception for {} reviewed",
            path.display(),
            shells.join(", "),
            shells.first().copied().unwrap_or_default()
        );
    }
    Ok(())
}

fn digest(mut file: &File) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash)?;
    Ok(pin::hex(&hash.finalize()))
}

/// Where programs are looked for.
struct Places {
    /// Resolved, each once.
    dirs: Vec<PathBuf>,
    /// Below these lies what the job could write.
    written: HashSet<PathBuf>,
}

impl Places {
    fn of(roots: &[Wanted]) -> Places {
        let added = roots.iter().filter(|root| root.rights.search).map(|root| root.path.clone());
        let system = programs::SEARCH_PATH.iter().map(PathBuf::from);
        let mut dirs = Vec::new();
        for dir in system.chain(added) {
            match dir.canonicalize() {
                Ok(real) if !dirs.contains(&real) => dirs.push(real),
                _ => {}
            }
        }
        let written = roots.iter().filter(|root| root.rights.write);
        Places { dirs, written: written.map(|root| root.path.clone()).collect() }
    }

    /// The files of this name that run, each once.
    fn files(&self, name: &str) -> Result<Vec<(PathBuf, File)>> {
        let mut seen = HashSet::new();
        let mut files = Vec::new();
        for dir in &self.dirs {
            let Some(path) = self.file(&dir.join(name)) else { continue };
            if seen.insert(path.clone()) {
                let file = File::open(&path)
                    .with_context(|| format!("cannot open the program {}", path.display()))?;
                files.push((path, file));
            }
        }
        Ok(files)
    }

    fn file(&self, path: &Path) -> Option<PathBuf> {
        // Mostly there is none, and to ask for it costs least.
        path.symlink_metadata().ok()?;
        let real = path.canonicalize().ok()?;
        let meta = real.metadata().ok()?;
        let runs = meta.is_file() && meta.permissions().mode() & 0o111 != 0;
        let written = real.ancestors().any(|above| self.written.contains(above));
        (runs && !written).then_some(real)
    }

    fn shells(&self) -> Shells {
        let mut shells = Shells::new();
        for shell in programs::SHELLS {
            for dir in &self.dirs {
                let Ok(meta) = dir.join(shell).metadata() else { continue };
                let names = shells.entry((meta.dev(), meta.ino())).or_default();
                if !names.contains(&shell) {
                    names.push(shell);
                }
            }
        }
        shells
    }
}
