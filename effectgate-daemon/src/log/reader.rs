//! A log read through all its segments, as one stream of lines.

use std::{
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use effectgate_core::{bundle::EVENTS, replay::ReplayError};

use tempfile::TempDir;

use super::{
    files::regular,
    segments::{self, Segments},
};
use crate::whole::directory;

/// Large, so that nearly every line is judged where it was read.
pub const BUFFER: usize = 1 << 18;
/// What the compressed data of a segment begins with (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// Most memory that decompressing may ask for, as a power of two: what is
/// written here asks for 2 MiB.
const WINDOW_LOG: u32 = 23;

/// A log, or another file of lines, compressed or not. Data that was changed
/// so that it cannot be what was written is an error of the kind
/// [`ErrorKind::InvalidData`].
pub struct Log {
    segments: Vec<Segment>,
    /// Segments that were begun.
    begun: usize,
    current: Option<Box<dyn BufRead>>,
    /// The last byte that was taken of the current segment.
    last: u8,
    /// Bytes taken, of the uncompressed log.
    at: u64,
    /// What could not be read: it cannot be read later either, and nothing
    /// behind it is taken for what comes next.
    failed: Option<io::Error>,
    left_over: Vec<String>,
    /// What its files lie in as long as it is read.
    kept: Option<TempDir>,
}

/// Opens a segment, from its start each time.
pub type Open = Box<dyn Fn() -> io::Result<Box<dyn Read>>>;

struct Segment {
    name: String,
    /// Where it begins in the uncompressed log, once it was begun.
    begins: u64,
    open: Open,
}

/// Where a byte of the log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name.
    pub segment: String,
    /// In it, from 1.
    pub line: u64,
    /// In it, uncompressed, from 0.
    pub byte: u64,
}

impl Log {
    /// A log's directory, its `events.jsonl`, one closed segment, or any other
    /// file of lines.
    ///
    /// # Errors
    /// When there is no such file, or no log in the directory.
    pub fn open(path: &Path) -> Result<Log> {
        let what = || format!("cannot read the log {}", path.display());
        let meta = path.metadata().with_context(what)?;
        if meta.is_dir() {
            let log = Log::of_directory(path).with_context(what)?;
            ensure!(
                !log.segments.is_empty(),
                "{} holds no log: there is no {EVENTS} in it",
                path.display()
            );
            return Ok(log);
        }
        // One file: it can be a pipe, so it is opened once here and kept.
        let first = File::open(path).with_context(what)?;
        if path.file_name().is_some_and(|name| name == EVENTS) {
            let log = Log::of_directory(directory(path)).with_context(what)?;
            if log.segments.len() > 1 {
                return Ok(log);
            }
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let again = path.to_owned();
        let mut log = Log::from_sources(vec![(
            name,
            Box::new(move || Ok(Box::new(File::open(&again)?) as Box<dyn Read>)),
        )]);
        log.begin(Box::new(first)).with_context(what)?;
        Ok(log)
    }

    /// The log may be written to meanwhile. Its open segment is held, since the
    /// name leads to the next one as soon as this one is closed.
    fn of_directory(dir: &Path) -> io::Result<Log> {
        const TRIES: usize = 1000;
        let mut tries = 0;
        let (segments, held) = loop {
            tries += 1;
            let segments = Segments::of(dir)?;
            let held = match segments.open.as_deref().map(regular).transpose() {
                Err(error) if error.kind() == ErrorKind::NotFound && tries < TRIES => continue,
                held => held?,
            };
            // Closed between the look and the opening: then another one was opened.
            if Segments::of(dir)?.closed.len() == segments.closed.len() || tries == TRIES {
                break (segments, held);
            }
        };
        let source = |path: PathBuf| -> (String, Open) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, Box::new(move || Ok(Box::new(segment(&path)?) as Box<dyn Read>)))
        };
        let mut sources: Vec<_> = segments.closed.into_iter().map(source).collect();
        if let Some(file) = held {
            let file = Arc::new(file);
            let open =
                move || Ok(Box::new(FromStart { file: Arc::clone(&file), at: 0 }) as Box<dyn Read>);
            sources.push((EVENTS.to_owned(), Box::new(open)));
        }
        let mut log = Log::from_sources(sources);
        log.left_over = segments.left_over;
        Ok(log)
    }

    /// Segments that are no files: their names, and how each is opened.
    #[must_use]
    pub fn from_sources(sources: Vec<(String, Open)>) -> Log {
        let segments =
            sources.into_iter().map(|(name, open)| Segment { name, begins: 0, open }).collect();
        Log {
            segments,
            begun: 0,
            current: None,
            last: b'\n',
            at: 0,
            failed: None,
            left_over: Vec::new(),
            kept: None,
        }
    }

    /// Keeps the directory of its files until the log is read.
    #[must_use]
    pub fn keeping(mut self, directory: Option<TempDir>) -> Log {
        self.kept = directory;
        self
    }

    /// Names of the segments, in order.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = &str> {
        self.segments.iter().map(|segment| segment.name.as_str())
    }

    /// Files beside the log that a crash left of a compression. Nothing of the
    /// log is in them that is not in its segments.
    #[must_use]
    pub fn left_over(&self) -> &[String] {
        &self.left_over
    }

    /// Where a byte of the log is that was read, or the log's end.
    ///
    /// # Errors
    /// When its segment cannot be read again.
    pub fn place(&self, byte: u64) -> io::Result<Place> {
        let begun = self.segments.iter().take(self.begun.max(1));
        let segment = begun.rev().find(|segment| segment.begins <= byte);
        let Some(segment) = segment else { return Err(ErrorKind::InvalidInput.into()) };
        let byte = byte - segment.begins;
        let mut lines = 0;
        let mut before = plain((segment.open)()?)?.take(byte);
        loop {
            let read = before.fill_buf()?;
            let length = read.len();
            if length == 0 {
                return Ok(Place { segment: segment.name.clone(), line: lines + 1, byte });
            }
            lines += read.iter().filter(|byte| **byte == b'\n').count() as u64;
            before.consume(length);
        }
    }

    /// Says of a flaw in which of the log's files it is.
    #[must_use]
    pub fn explain(&self, error: ReplayError) -> anyhow::Error {
        let place = match error {
            ReplayError::Flawed { byte, .. } if self.segments.len() > 1 => self.place(byte).ok(),
            _ => None,
        };
        match place {
            Some(Place { segment, line, .. }) => {
                anyhow::Error::new(error).context(format!("{segment}, line {line}"))
            }
            None => error.into(),
        }
    }

    fn begin(&mut self, source: Box<dyn Read>) -> io::Result<()> {
        if let Some(segment) = self.segments.get_mut(self.begun) {
            segment.begins = self.at;
        }
        self.begun += 1;
        self.last = b'\n';
        self.current = Some(plain(source)?);
        Ok(())
    }
}

impl Log {
    /// Goes on to where there are bytes to take, or to the log's end.
    fn advance(&mut self) -> io::Result<()> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(segment) = self.segments.get(self.begun) else { return Ok(()) };
                let source = (segment.open)()?;
                self.begin(source)?;
                continue;
            };
            if !current.fill_buf().map_err(damaged)?.is_empty() {
                return Ok(());
            }
            // The log's own end is for those to judge who know what a record is.
            if self.last != b'\n' && self.begun < self.segments.len() {
                return Err(invalid("the segment ends in the middle of a line"));
            }
            self.current = None;
        }
    }
}

impl BufRead for Log {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(failed) = &self.failed {
            return Err(same(failed));
        }
        if let Err(error) = self.advance() {
            // What only interrupted it may go on.
            if error.kind() != ErrorKind::Interrupted {
                self.failed = Some(same(&error));
            }
            return Err(error);
        }
        self.current.as_mut().map_or(Ok(&[]), |current| current.fill_buf())
    }

    fn consume(&mut self, amount: usize) {
        let Some(current) = &mut self.current else { return };
        if let Some(taken) = amount.checked_sub(1)
            && let Ok(buffer) = current.fill_buf()
        {
            self.last = buffer.get(taken).copied().unwrap_or(self.last);
        }
        current.consume(amount);
        self.at += amount as u64;
    }
}

impl Read for Log {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: Vec<&str> = self.segments().collect();
        f.debug_struct("Log").field("segments", &segments).field("at", &self.at).finish()
    }
}

/// The lines themselves, decompressed where that is needed.
fn plain(source: Box<dyn Read>) -> io::Result<Box<dyn BufRead>> {
    let mut source = BufReader::with_capacity(BUFFER, source);
    if !source.fill_buf()?.starts_with(&ZSTD) {
        return Ok(Box::new(source));
    }
    let mut decoder = zstd::Decoder::with_buffer(source)?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(Box::new(BufReader::with_capacity(BUFFER, decoder)))
}

/// A file that is open already, read from its start.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

/// A closed segment's file. Whoever writes the log may compress it between the look into
/// the directory and this.
fn segment(path: &Path) -> io::Result<File> {
    let compressed = segments::is_plain(path).then(|| path.with_added_extension("zst"));
    match regular(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            compressed.map_or(Err(error), |compressed| regular(&compressed))
        }
        opened => opened,
    }
}

fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// What the system did not refuse to read does not decompress.
fn damaged(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(_) => error,
        None if error.kind() == ErrorKind::UnexpectedEof => {
            invalid("the compressed data ends before its end")
        }
        None => invalid(&format!("the compressed data is damaged ({error})")),
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests;
