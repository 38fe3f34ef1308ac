//! A packet's files, read and written so that nothing leads out of it.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, Read},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use anyhow::{Context, Result};
use effectgate_core::{packet::Problem, pin};
use sha2::{Digest, Sha256};

use crate::{
    commands::policy::{LARGEST, at_most},
    whole::replace,
};

/// A file's bytes, unless it is missing, no plain file, or too large.
pub fn bytes(
    directory: &Path,
    name: &'static str,
    problems: &mut Vec<Problem>,
) -> Result<Option<Vec<u8>>> {
    let Some(file) = open(directory, name, problems)? else { return Ok(None) };
    let what = || format!("cannot read {}", directory.join(name).display());
    let bytes = at_most(file).with_context(what)?;
    if bytes.is_none() {
        let message = format!("it is larger than {LARGEST} bytes");
        problems.push(Problem::new("packet-file-size", name, message, "no honest one is"));
    }
    Ok(bytes)
}

/// Opens a plain file: no link, which could lead out of the packet, and
/// nothing that could be read twice with other bytes.
pub fn open(
    directory: &Path,
    name: &'static str,
    problems: &mut Vec<Problem>,
) -> Result<Option<File>> {
    let path = directory.join(name);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    let mut problem = |rule, message: &str, help| {
        problems.push(Problem::new(rule, name, message, help));
        Ok(None)
    };
    match options.open(&path) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => problem("packet-no-file", "it is no plain file", "put the file itself in"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let help =
                "missing evidence is a failure; --assemble writes what follows from the rest";
            problem("packet-missing-file", "it is missing", help)
        }
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            problem("packet-no-file", "it is a symbolic link", "put the file itself in")
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Replaces a file whole: whoever looks sees the old or the new one.
pub fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = directory.join(name);
    replace(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// A file that is hashed as it is read: what was judged is what was hashed.
pub struct Hashed<R> {
    inner: R,
    digest: Sha256,
}

impl<R: BufRead> Hashed<R> {
    pub fn new(inner: R) -> Self {
        Hashed { inner, digest: Sha256::new() }
    }

    /// Reads what is left; gives the digest of all.
    pub fn finish(mut self) -> io::Result<String> {
        loop {
            let length = self.inner.fill_buf()?.len();
            if length == 0 {
                return Ok(pin::hex(&self.digest.finalize()));
            }
            self.consume(length);
        }
    }
}

impl<R: BufRead> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.inner.fill_buf()?;
        let length = available.len().min(buffer.len());
        buffer[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Hashed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        // What is consumed was filled before; filling again gives the same.
        if let Ok(buffer) = self.inner.fill_buf() {
            self.digest.update(&buffer[..length.min(buffer.len())]);
        }
        self.inner.consume(length);
    }
}
