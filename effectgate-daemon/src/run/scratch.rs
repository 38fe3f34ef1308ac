//! The job's own temporary directory.
//!
//! It is made by the observer and shaped by the job, so it is removed with
//! suspicion: a mount that the job left in it leads to somebody else's files.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use rustix::mount::{UnmountFlags, unmount};

use super::user::User;
use crate::observe::proc;

/// A directory that is removed when dropped; what cannot be removed is said.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one below the system's temporary directory, for `user` alone.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(user: Option<&User>) -> Result<Scratch> {
        let what = "cannot make the job's temporary directory";
        let made = tempfile::Builder::new().prefix("effectgate-").tempdir().context(what)?;
        let scratch = Scratch { path: made.keep() };
        fs::set_permissions(&scratch.path, fs::Permissions::from_mode(0o700)).context(what)?;
        if let Some(user) = user {
            chown(&scratch.path, Some(user.uid), Some(user.gid)).context(what)?;
        }
        Ok(scratch)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn remove(&self) -> Result<()> {
        let mut mounts = proc::mounts_below(&self.path)?;
        // The innermost first.
        mounts.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        for mount in &mounts {
            let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
            unmount(mount, flags)
                .with_context(|| format!("cannot detach the job's mount {}", mount.display()))?;
        }
        // Detached or not, what is still there would be somebody else's.
        if let Some(mount) = proc::mounts_below(&self.path)?.first() {
            bail!("{} is still a mount", mount.display());
        }
        // Does not follow links.
        fs::remove_dir_all(&self.path)?;
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::error!(
                "the job's temporary directory {} is left: {error:#}",
                self.path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_what_is_in_it_and_nothing_that_links_lead_to() {
        let elsewhere = tempfile::tempdir().expect("a directory");
        fs::write(elsewhere.path().join("kept"), "x").expect("a file");
        let scratch = Scratch::make(None).expect("made");
        let path = scratch.path().to_owned();
        fs::create_dir(path.join("d")).expect("a directory");
        std::os::unix::fs::symlink(elsewhere.path(), path.join("d/link")).expect("a link");
        drop(scratch);
        assert!(!path.exists());
        assert!(elsewhere.path().join("kept").exists());
    }
}
