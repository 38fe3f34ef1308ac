//! A bundle as one file: tar (POSIX.1-1988 ustar) in zstd.
//!
//! Every entry is a plain file with a name that a bundle has. There are no
//! directories, links, devices, long names and other extensions: what other
//! programs make of those differs, so that they would read another bundle.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use effectgate_core::{bundle, packet::Problem};
use tar::{EntryType, Header};
use tempfile::TempDir;

use crate::whole::directory;

use super::{Bundle, extra, plain};

/// A bundle is never larger when it is unpacked, bytes.
const LARGEST: u64 = 8 << 30;
/// Nor so much larger than its archive: hashes do not compress, and each
/// record holds two.
const RATIO: u64 = 1000;
/// An archive of nothing but small files may exceed that.
const SMALL: u64 = 1 << 20;

/// Nor of more files: an empty one costs an archive next to nothing, and a file
/// system much.
const MOST: usize = 100_000;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// zstd's default; higher ones cost much time and save little.
const LEVEL: i32 = 3;

/// Whether data, decompressed, begins as such an archive does.
#[must_use]
pub fn is_tar(begin: &[u8]) -> bool {
    const AT: usize = 257;
    begin.get(AT..).is_some_and(|from| from.starts_with(b"ustar"))
}

/// Unpacks an archive into a new directory. What does not belong there is a
/// problem, and ends the reading.
///
/// # Errors
/// When the file cannot be read or is no archive, or the directory cannot be
/// written.
pub fn unpack(path: &Path, problems: &mut Vec<Problem>) -> Result<TempDir> {
    let mut file = plain(path)?;
    let length = file.metadata()?.len();
    let mut magic = [0; MAGIC.len()];
    let read = file.read(&mut magic)?;
    ensure!(
        read == MAGIC.len() && magic == MAGIC,
        "it is neither a directory nor an archive in zstd (.tar.zst)"
    );
    let dir = TempDir::with_prefix("effectgate-bundle-").context("cannot make a directory")?;
    let whole = io::Cursor::new(magic).chain(file);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bounds = Bounds { bytes: bytes_of(length), files: MOST };
    if let Err(problem) = entries(whole, bounds, dir.path(), &name)? {
        problems.push(problem);
    }
    Ok(dir)
}

/// Packs a bundle's files; the same files give the same bytes.
///
/// # Errors
/// When there is such a file already, or it cannot be written.
pub fn pack(bundle: &Bundle, output: &Path) -> Result<()> {
    let what = || format!("cannot write the archive {}", output.display());
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(directory(output))
        .with_context(what)?;
    ensure!(bundle.names().count() <= MOST, "{}: the bundle has more than {MOST} files", what());
    let mut encoder = zstd::Encoder::new(&mut file, LEVEL).with_context(what)?;
    encoder.include_checksum(true).with_context(what)?;
    let mut builder = tar::Builder::new(encoder);
    for name in bundle.names() {
        let source = plain(&bundle.dir.join(name)).with_context(what)?;
        let size = source.metadata().with_context(what)?.len();
        let mut header = Header::new_ustar();
        header.set_path(name).with_context(what)?;
        header.set_mode(0o644);
        header.set_size(size);
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        builder.append(&header, source.take(size)).with_context(what)?;
    }
    builder.into_inner().and_then(zstd::Encoder::finish).with_context(what)?;
    file.flush().and_then(|()| file.as_file().sync_all()).with_context(what)?;
    file.persist_noclobber(output).map_err(|error| error.error).with_context(what)?;
    Ok(())
}

/// A problem of the archive itself is not an error: it can be read, and does
/// not hold.
type Held = std::result::Result<(), Problem>;

/// How much may come out of an archive.
struct Bounds {
    bytes: u64,
    files: usize,
}

/// Of an archive of this length.
fn bytes_of(length: u64) -> u64 {
    LARGEST.min(SMALL.saturating_add(length.saturating_mul(RATIO)))
}

fn entries(archive: impl Read, bounds: Bounds, dir: &Path, name: &str) -> Result<Held> {
    let broken = |error: &io::Error| {
        let message = format!("it cannot be unpacked: {error}");
        Problem::new("bundle-archive", name, message, "take the archive as it was written")
    };
    let decoder = zstd::Decoder::new(archive).context("cannot start unpacking")?;
    let mut archive = tar::Archive::new(Bounded { inner: decoder, left: bounds.bytes });
    let entries = match archive.entries() {
        Ok(entries) => entries.raw(true),
        Err(error) => return Ok(Err(broken(&error))),
    };
    for (count, entry) in entries.enumerate() {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Ok(Err(broken(&error))),
        };
        if count == bounds.files {
            let error = io::Error::other("it holds more files than any bundle");
            return Ok(Err(broken(&error)));
        }
        let inside = match admit(&entry) {
            Ok(Some(name)) => name,
            Ok(None) => continue,
            Err(problem) => return Ok(Err(problem)),
        };
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(dir.join(&inside));
        let mut file = match opened {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let help = "which of them is meant? take the archive as it was written";
                return Ok(Err(Problem::new("bundle-archive", &inside, "it is there twice", help)));
            }
            opened => opened.with_context(|| format!("cannot unpack {inside}"))?,
        };
        match write(&mut entry, &mut file) {
            Ok(()) => {}
            Err(Failed::Reading(error)) => return Ok(Err(broken(&error))),
            Err(Failed::Writing(error)) => {
                return Err(error).with_context(|| format!("cannot unpack {inside}"));
            }
        }
    }
    Ok(nothing_more(archive.into_inner()).map_err(|error| broken(&error)))
}

/// The entry's name; `None` for the directory `./`, which tar itself writes
/// for the files' own.
fn admit(entry: &tar::Entry<'_, impl Read>) -> std::result::Result<Option<String>, Problem> {
    let bytes = entry.header().path_bytes();
    let path = String::from_utf8_lossy(&bytes);
    let name = path.strip_prefix("./").unwrap_or(&path);
    let kind = entry.header().entry_type();
    if name.is_empty() && path == "./" && kind == EntryType::Directory {
        return Ok(None);
    }
    if !bundle::is_known(name) {
        return Err(extra(&path));
    }
    if kind != EntryType::Regular {
        return Err(Problem::new(
            "bundle-no-file",
            name,
            format!("it is no plain file (tar's type {:?})", char::from(kind.as_byte())),
            "only plain files belong in a bundle: pack it with `effectgate bundle`",
        ));
    }
    Ok(Some(name.to_owned()))
}

/// Behind the last entry, tar has zeros.
fn nothing_more(mut rest: impl Read) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match rest.read(&mut buffer)? {
            0 => return Ok(()),
            read if buffer[..read].iter().all(|byte| *byte == 0) => {}
            _ => return Err(io::Error::other("something follows the archive's end")),
        }
    }
}

enum Failed {
    Reading(io::Error),
    Writing(io::Error),
}

fn write(entry: &mut impl Read, file: &mut File) -> std::result::Result<(), Failed> {
    let mut buffer = vec![0; crate::log::BUFFER];
    loop {
        let read = entry.read(&mut buffer).map_err(Failed::Reading)?;
        if read == 0 {
            return Ok(());
        }
        file.write_all(&buffer[..read]).map_err(Failed::Writing)?;
    }
}

/// Gives no more than so many bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other("it becomes larger than any bundle of its size when it is unpacked")
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
