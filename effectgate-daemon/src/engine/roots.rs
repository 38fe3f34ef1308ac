//! Roots: directories and files held open, known to the kernel by their inode
//! pointers. Two jobs with the same root share its number.

use std::{
    collections::HashMap,
    fs::File,
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_common::maps;
use effectgate_core::{
    input::{Device, Found, JobId, Linked, Root},
    policy::Rights,
};

use super::surroundings::{Program, Socket, Wanted, is_pseudo};
use crate::observe::{attribute::device, kernel::Kernel, proc};

/// Every root of every job.
#[derive(Debug, Default)]
pub struct Roots {
    /// By the kernel's pointer to the inode, which stays its own while the
    /// file is open.
    held: HashMap<u64, Held>,
    last: u32,
    /// The programs that jobs may run, and the sockets that they may speak to,
    /// held open so that their inode numbers stay their own.
    files: HashMap<JobId, Vec<File>>,
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
        let (open, answer) = identify(kernel, path).with_context(what)?;
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
        let file = kind.is_file() && (root.needed || !root.rights.write);
        ensure!(kind.is_dir() || file, "root {} is no directory", path.display());
        // What is mounted below a root can be of that kind.
        let kind = rustix::fs::fstatfs(&open)?.f_type as u64;
        ensure!(
            root.of_kernel || !is_pseudo(kind),
            "root {} lies on a file system of the kernel's own (type {kind:#x})",
            path.display()
        );
        let held = match self.held.entry(answer.inode) {
            std::collections::hash_map::Entry::Occupied(held) => held.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) => {
                self.last += 1;
                let id = self.last;
                kernel
                    .put_root(answer.inode, maps::Root { ino: answer.ino, dev: answer.dev, id })?;
                let path = path.clone();
                free.insert(Held { id, path, _file: open, jobs: HashMap::new() })
            }
        };
        held.jobs.entry(job).or_insert(Use { writes: false }).writes |= root.rights.write;
        Ok(held.id)
    }

    /// Holds the programs that `job` may run, and says how the kernel knows
    /// them.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn hold_programs(
        &mut self,
        kernel: &mut Kernel,
        job: JobId,
        programs: Vec<Program>,
    ) -> Result<Vec<Found>> {
        let mut found = Vec::with_capacity(programs.len());
        for Program { entry, path, file } in programs {
            // Through the open file: by its path it could be another one now.
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            let (_, answer) = identify(kernel, Path::new(&link))
                .with_context(|| format!("cannot identify the program {}", path.display()))?;
            let (dev, ino): (Device, u64) = (device(answer.dev), answer.ino);
            found.push(Found { entry, path: path.as_os_str().as_bytes().to_vec(), dev, ino });
            self.files.entry(job).or_default().push(file);
        }
        Ok(found)
    }

    /// Says how the kernel knows files that have another name elsewhere. Their
    /// numbers stay their own as long as they have that name.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn know_linked(&mut self, kernel: &mut Kernel, paths: &[PathBuf]) -> Result<Vec<Linked>> {
        let mut linked = Vec::with_capacity(paths.len());
        for path in paths {
            // Gone again: then what takes its place has no name elsewhere.
            let Ok((_, answer)) = identify(kernel, path) else { continue };
            let bytes = path.as_os_str().as_bytes().to_vec();
            linked.push(Linked { path: bytes, dev: device(answer.dev), ino: answer.ino });
        }
        Ok(linked)
    }

    /// Holds the Unix sockets that `job` may speak to, and says how the kernel
    /// knows their files.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn hold_sockets(
        &mut self,
        kernel: &mut Kernel,
        job: JobId,
        sockets: Vec<Socket>,
    ) -> Result<Vec<Found>> {
        let mut found = Vec::with_capacity(sockets.len());
        for Socket { entry, path, file } in sockets {
            let what = || format!("cannot identify the socket {}", path.display());
            // A socket cannot be opened; its directory can, and knows the device
            // unless something is mounted over the socket itself.
            let (directory, answer) =
                identify(kernel, path.parent().unwrap_or(&path)).with_context(what)?;
            let meta = file.metadata().with_context(what)?;
            let same = directory.metadata().with_context(what)?.dev() == meta.dev();
            let dev = if same { device(answer.dev) } else { proc::device(meta.dev()) };
            let bytes = path.as_os_str().as_bytes().to_vec();
            found.push(Found { entry, path: bytes, dev, ino: meta.ino() });
            self.files.entry(job).or_default().push(file);
        }
        Ok(found)
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

/// Opens a file, and says how the kernel knows it.
fn identify(kernel: &mut Kernel, path: &Path) -> Result<(File, maps::Registrar)> {
    kernel.clear_registrar()?;
    // Something else than a file or a directory could have been put there.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let answer = kernel.registrar()?;
    if answer.inode == 0 {
        bail!("the kernel did not report the open of {}: hooks do not fire", path.display());
    }
    Ok((file, answer))
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
