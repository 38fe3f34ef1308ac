//! A directory that is held open: whatever is done in it is done there, wherever
//! its name leads by then.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};

use crate::whole;

/// Its clones hold one descriptor.
#[derive(Clone, Debug)]
pub struct Held {
    /// What it was called.
    name: PathBuf,
    file: Arc<File>,
}

impl Held {
    /// # Errors
    /// When it is no directory, or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Held> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)?;
        Ok(Held { name: path.to_owned(), file: Arc::new(file) })
    }

    /// What it was called when it was opened.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A path to it that holds as long as this lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Such a path to a file in it.
    #[must_use]
    pub fn at(&self, file: &str) -> PathBuf {
        self.path().join(file)
    }

    /// What people call a file in it.
    #[must_use]
    pub fn shown(&self, file: &str) -> String {
        self.name.join(file).display().to_string()
    }

    /// Whether its name still leads to it.
    ///
    /// # Errors
    /// When the directory itself cannot be asked.
    pub fn is_where_it_was(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        let named = std::fs::metadata(&self.name);
        Ok(named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())))
    }

    /// Whether nobody but this process's user can put something into it.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn is_own(&self) -> io::Result<bool> {
        const GROUP: u32 = 0o020;
        const OTHERS: u32 = 0o002;
        let meta = self.file.metadata()?;
        let group = rustix::process::getegid().as_raw();
        let others =
            meta.mode() & OTHERS | if meta.gid() == group { 0 } else { meta.mode() & GROUP };
        Ok(meta.uid() == rustix::process::geteuid().as_raw() && others == 0)
    }

    /// Writes a file that is not there yet.
    ///
    /// # Errors
    /// When it is, or cannot be written.
    pub fn create(&self, file: &str, bytes: &[u8]) -> Result<()> {
        let written = whole::create(&self.at(file), bytes);
        written.with_context(|| format!("cannot create {}", self.shown(file)))
    }

    /// Writes a file, in the place of one that is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(&self, file: &str, bytes: &[u8]) -> Result<()> {
        let written = whole::replace(&self.at(file), bytes);
        written.with_context(|| format!("cannot write {}", self.shown(file)))
    }
}
