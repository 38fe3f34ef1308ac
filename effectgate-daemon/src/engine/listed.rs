//! Files that mean something to a job beside where they lie: programs, sockets,
//! streams, files with a name elsewhere. They are known by what the kernel
//! programs see of them, and held open.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use effectgate_core::input::{self, FileId, Found, Linked};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::surroundings::{Program, Socket};
use crate::{
    observe::identity::{Listed, Registrar},
    run::streams::Stream,
};

/// Those of one job.
#[derive(Debug)]
pub struct Files<'a> {
    registrar: &'a Registrar,
    listed: Listed,
    held: Vec<OwnedFd>,
}

impl Files<'_> {
    #[must_use]
    pub fn new(registrar: &Registrar) -> Files<'_> {
        Files { registrar, listed: Listed::default(), held: Vec::new() }
    }

    /// # Errors
    /// When the kernel does not answer.
    pub fn programs(&mut self, programs: Vec<Program>) -> Result<Vec<Found>> {
        let found = programs.into_iter().map(|Program { entry, path, file }| {
            let what = || format!("cannot identify the program {}", path.display());
            Ok(found(entry, &path, self.hold(file).with_context(what)?))
        });
        found.collect()
    }

    /// # Errors
    /// When the kernel does not answer.
    pub fn sockets(&mut self, sockets: Vec<Socket>) -> Result<Vec<Found>> {
        let found = sockets.into_iter().map(|Socket { entry, path, file }| {
            let what = || format!("cannot identify the socket {}", path.display());
            Ok(found(entry, &path, self.hold(file).with_context(what)?))
        });
        found.collect()
    }

    /// Each once.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn streams(&mut self, streams: Vec<Stream>) -> Result<Vec<input::Stream>> {
        let mut found = Vec::with_capacity(streams.len());
        for Stream { file, read, write } in streams {
            let FileId { dev, ino, twin } =
                self.hold(file).context("cannot identify a standard stream")?;
            let stream = input::Stream { dev, ino, twin, read, write };
            if !found.contains(&stream) {
                found.push(stream);
            }
        }
        Ok(found)
    }

    /// Files that had a name elsewhere when they were looked for.
    ///
    /// # Errors
    /// When the kernel does not answer, or no more can be held.
    pub fn linked(&mut self, paths: &[PathBuf]) -> Result<Vec<Linked>> {
        let mut linked = Vec::with_capacity(paths.len());
        for path in paths {
            let file = match open(path) {
                // What takes its place has no name elsewhere.
                Ok(None) => continue,
                Ok(Some(file)) => file,
                Err(error) => {
                    let what =
                        format!("cannot hold {}, which has a name elsewhere", path.display());
                    return Err(error).context(what);
                }
            };
            let FileId { dev, ino, twin } = self.hold(file)?;
            linked.push(Linked { path: path.as_os_str().as_bytes().to_vec(), dev, ino, twin });
        }
        Ok(linked)
    }

    /// What is to be kept open, and which files that are.
    #[must_use]
    pub fn held(self) -> (Vec<OwnedFd>, Listed) {
        (self.held, self.listed)
    }

    fn hold(&mut self, file: impl Into<OwnedFd>) -> Result<FileId> {
        let file = file.into();
        let id = self.listed.add(&self.registrar.identify(file.as_fd())?);
        self.held.push(file);
        Ok(id)
    }
}

/// By its place only; `None` for what is gone, or has no other name any more.
fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    Ok((meta.is_file() && meta.nlink() > 1).then_some(file))
}

fn found(entry: usize, path: &Path, FileId { dev, ino, twin }: FileId) -> Found {
    Found { entry, path: path.as_os_str().as_bytes().to_vec(), dev, ino, twin }
}
