//! Files of an evidence directory, which may come from somebody else.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use effectgate_core::pin;
use sha2::{Digest, Sha256};

/// No checkpoint, proof, verdict or manifest is larger, bytes: a proof holds
/// one record in Base64.
pub const SMALL: u64 = 64 << 20;

/// Opens a regular file. No link leads out of the directory, and nothing that
/// blocks is waited for.
pub fn regular(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("{} is no regular file", path.display())));
    }
    Ok(file)
}

/// A file that is held whole; `None` where there is none.
///
/// # Errors
/// When it cannot be read, is no regular file, or is larger than any such.
pub fn small(path: &Path) -> Result<Option<Vec<u8>>> {
    let what = || format!("cannot read {}", path.display());
    let file = match regular(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.with_context(what)?,
    };
    let mut bytes = Vec::new();
    file.take(SMALL + 1).read_to_end(&mut bytes).with_context(what)?;
    ensure!(bytes.len() as u64 <= SMALL, "{}: it is larger than any such file", what());
    Ok(Some(bytes))
}

/// The SHA-256 of a file; `None` where there is none.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub fn digest_of(path: &Path) -> Result<Option<String>> {
    let what = || format!("cannot read {}", path.display());
    let mut file = match regular(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.with_context(what)?,
    };
    let mut digest = Sha256::new();
    io::copy(&mut file, &mut digest).with_context(what)?;
    Ok(Some(pin::hex(&digest.finalize())))
}
