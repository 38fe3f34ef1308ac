//! Roots: directories held open, known to the kernel by their inode pointers.
//! Two jobs with the same root share its number.

use std::{
    fs::File,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_common::maps;
use effectgate_core::input::{JobId, Root};

use crate::observe::{kernel::Kernel, proc};

/// File systems whose files are the kernel's own state (`linux/magic.h`): to
/// write there is never to write below a root.
const PSEUDO: [u64; 12] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6367_7270, // cgroup2
    0x0027_e0eb, // cgroup
    0x6264_6576, // bdev
    0x1cd1,      // devpts
    0xde5e_81e4, // efivarfs
    0x6265_6570, // configfs
];

/// Every root of every job.
#[derive(Debug, Default)]
pub struct Roots {
    held: Vec<Held>,
    last: u32,
}

#[derive(Debug)]
struct Held {
    id: u32,
    /// The kernel's pointer to the inode, which stays its own while `_file` is open.
    inode: u64,
    path: PathBuf,
    _file: File,
    jobs: Vec<JobId>,
}

impl Roots {
    /// Grants `job` what lies below the directories `wanted` (path as written,
    /// index in the policy), with what is mounted below them now.
    ///
    /// # Errors
    /// When a path is no directory, or the kernel does not answer.
    pub fn grant(
        &mut self,
        kernel: &mut Kernel,
        job: JobId,
        wanted: &[(PathBuf, Option<usize>)],
    ) -> Result<Vec<Root>> {
        let mut roots = Vec::new();
        for (path, entry) in wanted {
            let real = std::fs::canonicalize(path).with_context(|| {
                format!("root {}: create it before the job, or take it out", path.display())
            })?;
            ensure!(real != Path::new("/"), "root {} is the whole file system", path.display());
            for place in std::iter::once(real.clone()).chain(proc::mounts_below(&real)?) {
                let id = match self.hold(kernel, job, &place) {
                    Ok(id) => id,
                    // Something that is mounted on a file, or gone meanwhile,
                    // is no root; the one above does not reach into it.
                    Err(_) if place != real => continue,
                    Err(error) => return Err(error),
                };
                let path = place.as_os_str().as_bytes().to_vec();
                roots.push(Root { id, path, entry: *entry });
            }
        }
        Ok(roots)
    }

    fn hold(&mut self, kernel: &mut Kernel, job: JobId, path: &Path) -> Result<u32> {
        kernel.clear_registrar()?;
        let file =
            File::open(path).with_context(|| format!("cannot open the root {}", path.display()))?;
        let meta = file.metadata()?;
        ensure!(meta.is_dir(), "root {} is no directory", path.display());
        let kind = rustix::fs::fstatfs(&file)?.f_type as u64;
        ensure!(
            !PSEUDO.contains(&kind),
            "root {} lies on a file system of the kernel's own (type {kind:#x})",
            path.display()
        );
        let answer = kernel.registrar()?;
        if answer.inode == 0 {
            bail!("the kernel did not report the open of {}: hooks do not fire", path.display());
        }
        tracing::debug!(path = %path.display(), ino = meta.ino(), "root held");
        let held = match self.held.iter_mut().position(|held| held.inode == answer.inode) {
            Some(index) => &mut self.held[index],
            None => {
                self.last += 1;
                let id = self.last;
                kernel
                    .put_root(answer.inode, maps::Root { ino: answer.ino, dev: answer.dev, id })?;
                self.held.push(Held {
                    id,
                    inode: answer.inode,
                    path: path.to_owned(),
                    _file: file,
                    jobs: Vec::new(),
                });
                self.held.last_mut().context("a root was just held")?
            }
        };
        if !held.jobs.contains(&job) {
            held.jobs.push(job);
        }
        kernel.grant(job, held.id)?;
        Ok(held.id)
    }

    /// Refuses a path, of which nothing need exist yet, below any root: a job
    /// could change what is written there, or lead it elsewhere.
    ///
    /// # Errors
    /// When it lies below one, or no part of its path can be resolved.
    pub fn keep_out(&self, path: &Path) -> Result<()> {
        let absolute = std::path::absolute(path)?;
        let mut existing = absolute.as_path();
        let real = loop {
            match (std::fs::canonicalize(existing), existing.parent()) {
                (Ok(real), _) => break real,
                (Err(_), Some(parent)) => existing = parent,
                (Err(error), None) => return Err(error).context("no part of the path exists"),
            }
        };
        if let Some(held) = self.held.iter().find(|held| real.starts_with(&held.path)) {
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
        for held in &mut self.held {
            if held.jobs.contains(&job) {
                held.jobs.retain(|other| *other != job);
                warn(kernel.revoke(job, held.id));
            }
        }
        for held in self.held.extract_if(.., |held| held.jobs.is_empty()) {
            warn(kernel.remove_root(held.inode));
        }
    }
}

/// For cleaning up, where going on is better than stopping.
pub fn warn(result: Result<()>) {
    if let Err(error) = result {
        tracing::warn!("while cleaning up: {error:#}");
    }
}
