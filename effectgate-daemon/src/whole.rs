//! Files that are there whole or not at all, whenever somebody looks, and
//! whenever their writer dies.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::{
        fd::AsRawFd as _,
        unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, linkat};
use tempfile::NamedTempFile;

/// Writes a file that readers find whole, as it was before or as it is now, with
/// the mode that it had.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = Part::of(path, bytes)?;
    if let Ok(found) = fs::metadata(path) {
        part.file().set_permissions(found.permissions())?;
    }
    part.replace(path)?;
    File::open(directory(path))?.sync_all()
}

/// The same of several files: all are written before one of them is there.
///
/// # Errors
/// When one cannot be written.
pub fn replace_all(files: &[(PathBuf, &[u8])]) -> io::Result<()> {
    let parts = files.iter().map(|(path, bytes)| Part::of(path, bytes));
    for (part, (path, _)) in parts.collect::<io::Result<Vec<_>>>()?.into_iter().zip(files) {
        part.replace(path)?;
    }
    files.first().map_or(Ok(()), |(path, _)| File::open(directory(path))?.sync_all())
}

/// The same where no file is.
///
/// # Errors
/// When one is, or it cannot be written.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Part::of(path, bytes)?.link(path)
}

/// What becomes a file once it is whole. It has no name until then, so that
/// nothing is left of it where its writer dies, but in the very moment in which it
/// takes another's place; some file systems cannot do that.
enum Part {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Part {
    /// What is to become a file in the directory of this path, durable.
    fn of(path: &Path, bytes: &[u8]) -> io::Result<Part> {
        const MODE: u32 = 0o644;
        let dir = directory(path);
        let unnamed =
            OpenOptions::new().write(true).mode(MODE).custom_flags(libc::O_TMPFILE).open(dir);
        let part = match unnamed {
            Ok(file) => Part::Unnamed(file),
            Err(_) => Part::Named(
                tempfile::Builder::new()
                    .permissions(Permissions::from_mode(MODE))
                    .tempfile_in(dir)?,
            ),
        };
        let mut file = part.file();
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(part)
    }

    fn file(&self) -> &File {
        match self {
            Part::Unnamed(file) => file,
            Part::Named(named) => named.as_file(),
        }
    }

    /// Gives it a name that no file has.
    fn link(self, path: &Path) -> io::Result<()> {
        match self {
            Part::Unnamed(file) => name(&file, path),
            Part::Named(named) => Ok(named.persist_noclobber(path).map(drop)?),
        }
    }

    /// Gives it this name, which another file may have.
    fn replace(self, path: &Path) -> io::Result<()> {
        match self {
            Part::Unnamed(file) => {
                // A link cannot take another's place, a name can.
                let between = tempfile::Builder::new()
                    .make_in(directory(path), |between| name(&file, between))?
                    .into_temp_path();
                Ok(between.persist(path)?)
            }
            Part::Named(named) => Ok(named.persist(path).map(drop)?),
        }
    }
}

/// Names a file that has no name (open(2), `O_TMPFILE`).
fn name(file: &File, path: &Path) -> io::Result<()> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The directory of a path, which may be a name alone.
pub fn directory(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
