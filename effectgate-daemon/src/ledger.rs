//! The freeze ledger as a file: read whole, replaced whole, by one writer at a
//! time.

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use anyhow::{Context, Result};
use effectgate_core::{
    freeze::{self, Freeze},
    policy::Fault,
};
use rustix::fs::{FlockOperation, flock};

use crate::commands::policy::bounded;

/// The rows, or everything that is wrong with them.
pub type Rows = std::result::Result<Vec<Freeze>, Vec<Fault>>;

/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> Result<Rows> {
    let bytes = bounded(path).context("the ledger")?;
    Ok(freeze::parse(&path.to_string_lossy(), &bytes))
}

/// Adds a row; a ledger that is not there is made. One that does not hold
/// stays as it is, and so does one that would not hold with the row.
///
/// # Errors
/// When the file cannot be read or written.
pub fn add(path: &Path, row: Freeze) -> Result<Rows> {
    let what = || format!("cannot write the ledger {}", path.display());
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    // The directory is locked, as the file itself is replaced; released when
    // it is closed.
    let lock = File::open(parent).with_context(what)?;
    flock(&lock, FlockOperation::LockExclusive).with_context(what)?;
    let mode = fs::metadata(path).ok().map(|found| found.permissions().mode() & 0o777);
    let rows = if mode.is_some() { read(path)? } else { Ok(Vec::new()) };
    let mut rows = match rows {
        Ok(rows) => rows,
        Err(faults) => return Ok(Err(faults)),
    };
    rows.push(row);
    let text = freeze::format(&rows);
    if let Err(faults) = freeze::parse(&path.to_string_lossy(), text.as_bytes()) {
        return Ok(Err(faults));
    }
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(mode.unwrap_or(0o644)))
        .tempfile_in(parent)
        .with_context(what)?;
    file.write_all(text.as_bytes()).with_context(what)?;
    file.as_file().sync_all().with_context(what)?;
    file.persist(path).with_context(what)?;
    lock.sync_all().with_context(what)?;
    Ok(Ok(rows))
}
