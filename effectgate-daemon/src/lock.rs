//! Advisory locks (flock(2)): whose a file or a directory is as long as it is
//! open.

use std::{fs::File, io, path::Path};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// Whether it is ours now, and nobody else's.
///
/// # Errors
/// When it cannot be locked.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A directory's lock; `None` where another holds it.
///
/// # Errors
/// When the directory cannot be opened or locked.
pub fn of_directory(dir: &Path) -> io::Result<Option<File>> {
    let file = File::open(dir)?;
    Ok(try_lock(&file)?.then_some(file))
}
