//! A log written: the open segment, and those closed and compressed behind it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Seek as _, Write},
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result, anyhow};
use effectgate_core::{bundle::EVENTS, pin};
use sha2::{Digest, Sha256};

use crate::held::Held;

use super::segments::{compressed, plain, unfinished};

/// Size at which a segment is closed, in bytes before compression, where
/// nobody says otherwise.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// The least such size: a job's opening record alone is often longer.
pub const SMALLEST_SEGMENT: u64 = 4096;

/// What level 3 makes of records is about a twentieth, and higher ones little
/// less.
const LEVEL: i32 = 3;

/// The file's name and its digest.
type Digested = (String, String);

/// The writing end of a log. What was appended is durable after
/// [`Writer::sync`], and in the order in which it was appended.
#[derive(Debug)]
pub struct Writer {
    dir: Held,
    open: BufWriter<File>,
    /// Bytes in the open segment.
    length: u64,
    digest: Sha256,
    limit: u64,
    /// The number of the next segment to be closed.
    next: u32,
    sealing: Option<JoinHandle<Digested>>,
    closed: Vec<Digested>,
    appended: u64,
    synced: u64,
}

impl Writer {
    /// Begins a log in a directory that has none. A segment is closed before
    /// it would become longer than `limit` bytes, but never empty.
    ///
    /// # Errors
    /// When it has one, or cannot be written.
    pub fn create(dir: &Held, limit: u64) -> Result<Writer> {
        let open = create(dir)?;
        dir.file().sync_all().with_context(|| format!("cannot sync {}", dir.name().display()))?;
        Ok(Writer {
            dir: dir.clone(),
            open,
            length: 0,
            digest: Sha256::new(),
            limit,
            next: 0,
            sealing: None,
            closed: Vec::new(),
            appended: 0,
            synced: 0,
        })
    }

    /// Adds a line, given without its newline.
    ///
    /// # Errors
    /// When it cannot be written. The log then ends somewhere before it.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        let length = line.len() as u64 + 1;
        if self.length > 0 && self.length + length > self.limit {
            self.rotate()?;
        }
        self.appended += 1;
        self.length += length;
        for bytes in [line, b"\n"] {
            self.digest.update(bytes);
            self.open.write_all(bytes).with_context(|| self.cannot_write())?;
        }
        Ok(())
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// When the file cannot be written or synced.
    pub fn sync(&mut self) -> Result<()> {
        if self.synced < self.appended {
            let synced = self.open.flush().and_then(|()| self.open.get_ref().sync_data());
            synced.with_context(|| self.cannot_write())?;
            self.synced = self.appended;
        }
        Ok(())
    }

    /// Records that are durable.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Ends the log; everything in it is durable. Returns its files and their
    /// digests.
    ///
    /// # Errors
    /// When it cannot be written or synced.
    pub fn close(mut self) -> Result<Vec<Digested>> {
        self.sync()?;
        self.sealed()?;
        let digest = pin::hex(&self.digest.finalize());
        self.closed.push((EVENTS.to_owned(), digest));
        Ok(self.closed)
    }

    /// Closes the open segment and begins another one. Until its compressed
    /// form is durable, the segment stays as it is: at no moment is a record
    /// nowhere.
    fn rotate(&mut self) -> Result<()> {
        self.sync()?;
        self.sealed()?;
        let number = self.next;
        self.next += 1;
        let renamed = fs::rename(self.dir.at(EVENTS), self.dir.at(&plain(number)));
        renamed.with_context(|| self.cannot_write())?;
        let closed = std::mem::replace(&mut self.open, create(&self.dir)?);
        self.length = 0;
        self.dir.file().sync_all().with_context(|| self.cannot_write())?;
        let digest = pin::hex(&self.digest.finalize_reset());
        let dir = self.dir.clone();
        let sealing = thread::Builder::new().name("compress".to_owned());
        let sealing = sealing.spawn(move || seal(&dir, number, closed.get_ref(), digest));
        self.sealing = Some(sealing.context("cannot start the thread that compresses the log")?);
        Ok(())
    }

    /// Waits for the segment that is being compressed: one at a time.
    fn sealed(&mut self) -> Result<()> {
        if let Some(sealing) = self.sealing.take() {
            let digested = sealing.join();
            let died = |_| anyhow!("the thread that compresses the log died");
            self.closed.push(digested.map_err(died)?);
        }
        Ok(())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write the log {}", self.dir.shown(EVENTS))
    }
}

/// Replaces a closed segment by its compressed form. One that cannot be
/// compressed, say for want of room, stays as it is: it is whole.
fn seal(dir: &Held, number: u32, closed: &File, digest: String) -> Digested {
    match compress(dir, number, closed) {
        Ok(digest) => (compressed(number), digest),
        Err(error) => {
            tracing::warn!(
                "the log's segment {} stays uncompressed: {error}",
                dir.shown(&plain(number))
            );
            let _ = fs::remove_file(dir.at(&unfinished(number)));
            (plain(number), digest)
        }
    }
}

fn compress(dir: &Held, number: u32, mut closed: &File) -> io::Result<String> {
    let part = dir.at(&unfinished(number));
    closed.rewind()?;
    let mut source = BufReader::with_capacity(1 << 18, closed);
    let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
    let into = Digesting { file, digest: Sha256::new() };
    let mut encoder = zstd::Encoder::new(into, LEVEL)?;
    encoder.include_checksum(true)?;
    io::copy(&mut source, &mut encoder)?;
    let Digesting { file, digest } = encoder.finish()?;
    file.sync_all()?;
    fs::rename(&part, dir.at(&compressed(number)))?;
    dir.file().sync_all()?;
    fs::remove_file(dir.at(&plain(number)))?;
    Ok(pin::hex(&digest.finalize()))
}

/// A file that knows the digest of what was written to it.
struct Digesting {
    file: File,
    digest: Sha256,
}

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn create(dir: &Held) -> Result<BufWriter<File>> {
    // Read as well, when it is compressed.
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(dir.at(EVENTS));
    let file = file.with_context(|| format!("cannot create {}", dir.shown(EVENTS)))?;
    Ok(BufWriter::with_capacity(1 << 16, file))
}

#[cfg(test)]
mod tests;
