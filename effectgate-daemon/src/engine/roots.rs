//! Roots: directories and files held open, known to the kernel by their inode
//! pointers. Two jobs with the same root share its number.

use std::{
    collections::HashMap,
    fs::File,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_common::maps;
use effectgate_core::{
    input::{JobId, Root},
    policy::Rights,
};

use super::{
    listed::Files,
    surroundings::{Wanted, is_pseudo},
    tables::encoded,
};
use crate::observe::{identity::Listed, kernel::Kernel};

/// Every root of every job.
#[derive(Debug, Default)]
pub struct Roots {
    /// By the kernel's pointer to the inode, which stays its own while the
    /// file is open.
    held: HashMap<u64, Held>,
    last: u32,
    /// The other files that mean something to jobs.
    files: HashMap<JobId, Vec<OwnedFd>>,
}

#[derive(Debug)]
struct Held {
    id: u32,
    path: PathBuf,
    _file: File,
    jobs: HashMap<JobId, Use>,
}

/// What a job may do below a root, as far as the observer has to know.
#[derive(Clone, Copy, Debug)]
struct Use {
    writes: bool,
}

impl Roots {
    /// Holds the roots that `job` wants. What it may do there is granted with its
    /// other tables.
    ///
    /// # Errors
    /// When one is not to be had, or the kernel does not answer.
    pub fn hold_all(
        &mut self,
        kernel: &mut Kernel,
        job: JobId,
        wanted: &[Wanted],
    ) -> Result<Vec<Root>> {
        let mut roots = Vec::with_capacity(wanted.len());
        for root in wanted {
            match self.hold(kernel, job, root) {
                Ok(id) => roots.push(Root {
                    id,
                    path: root.path.as_os_str().as_bytes().to_vec(),
                    entry: root.entry,
                    rights: root.rights,
                }),
                Err(error) if root.needed => return Err(error),
                // The root above does not reach into it.
                Err(error) => tracing::debug!("{error:#}"),
            }
        }
        Ok(roots)
    }

    /// Holds places below the job's roots where it may do nothing: the nearest
    /// root decides. Not where the policy says more than a profile.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn keep_from(&mut self, kernel: &mut Kernel, job: JobId, places: &[PathBuf]) -> Result<()> {
        for path in places {
            let wanted = Wanted {
                path: path.clone(),
                entry: None,
                rights: Rights::default(),
                needed: true,
                of_kernel: false,
            };
            match self.hold(kernel, job, &wanted) {
                Ok(id) => kernel.grant(job, id, 0)?,
                // It is gone again, or no file or directory.
                Err(error) => tracing::debug!("{error:#}"),
            }
        }
        Ok(())
    }

    fn hold(&mut self, kernel: &mut Kernel, job: JobId, root: &Wanted) -> Result<u32> {
        let path = &root.path;
        let what = || format!("cannot open the root {}", path.display());
        let (open, file) = kernel.registrar().find(path).with_context(what)?;
        // It was resolved a moment ago: no link may have taken its place since.
        let link = format!("/proc/self/fd/{}", open.as_raw_fd());
        let opened = std::fs::read_link(link).with_context(what)?;
        ensure!(
            opened == *path,
            "root {} leads to {} now: something is changing it",
            path.display(),
            opened.display()
        );
        let kind = open.metadata()?.file_type();
        // A file that is mounted below a root is not what is written there.
        let read = kind.is_file() && (root.needed || !root.rights.write);
        ensure!(kind.is_dir() || read, "root {} is no directory", path.display());
        // What is mounted below a root can be of that kind.
        let kind = rustix::fs::fstatfs(&open)?.f_type as u64;
        ensure!(
            root.of_kernel || !is_pseudo(kind),
            "root {} lies on a file system of the kernel's own (type {kind:#x})",
            path.display()
        );
        let held = match self.held.entry(file.inode) {
            std::collections::hash_map::Entry::Occupied(held) => held.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) => {
                self.last += 1;
                let id = self.last;
                let root = maps::Root { ino: file.ino, dev: encoded(file.dev), id };
                kernel.put_root(file.inode, root)?;
                let path = path.clone();
                free.insert(Held { id, path, _file: open, jobs: HashMap::new() })
            }
        };
        held.jobs.entry(job).or_insert(Use { writes: false }).writes |= root.rights.write;
        Ok(held.id)
    }

    /// Keeps files open until the job is released, and says which they are.
    pub fn keep(&mut self, job: JobId, files: Files<'_>) -> Listed {
        let (held, listed) = files.held();
        self.files.insert(job, held);
        listed
    }

    /// Refuses a path below any root that a job may write: it could change
    /// what is written there, or lead it elsewhere.
    ///
    /// # Errors
    /// When it lies below one, or no part of its path can be resolved.
    pub fn keep_out(&self, path: &Path) -> Result<()> {
        let real = real(path)?;
        let written = self.held.values().filter(|held| held.jobs.values().any(|job| job.writes));
        if let Some(held) = written.into_iter().find(|held| real.starts_with(&held.path)) {
            bail!(
                "{} lies below the root {}, where a job could change it: choose another place",
                path.display(),
                held.path.display()
            );
        }
        Ok(())
    }

    /// Takes back all that was granted to a job.
    pub fn release(&mut self, kernel: &mut Kernel, job: JobId) {
        self.files.remove(&job);
        for held in self.held.values_mut() {
            if held.jobs.remove(&job).is_some() {
                warn(kernel.revoke(job, held.id));
            }
        }
        for (inode, _) in self.held.extract_if(|_, held| held.jobs.is_empty()) {
            warn(kernel.remove_root(inode));
        }
    }
}

/// A path, of which nothing need exist yet, without symbolic links.
///
/// # Errors
/// When no part of it can be resolved.
pub fn real(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut existing = absolute.as_path();
    loop {
        match (std::fs::canonicalize(existing), existing.parent()) {
            (Ok(real), _) => {
                let rest = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
                return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
            }
            (Err(_), Some(parent)) => existing = parent,
            (Err(error), None) => return Err(error).context("no part of the path exists"),
        }
    }
}

/// For cleaning up, where going on is better than stopping.
pub fn warn(result: Result<()>) {
    if let Err(error) = result {
        tracing::warn!("while cleaning up: {error:#}");
    }
}
