//! The freeze ledger as a file: read whole, replaced whole, by one writer at a
//! time.

use std::{
    fs::File,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use effectgate_core::{
    freeze::{self, Freeze},
    policy::Fault,
};

use crate::{
    commands::policy::bounded,
    lock::try_lock,
    whole::{directory, replace},
};

/// How long is waited for whoever writes it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The rows, or everything that is wrong with them.
pub type Rows = std::result::Result<Vec<Freeze>, Vec<Fault>>;

/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> Result<Rows> {
    let bytes = bounded(path).context("the ledger")?;
    Ok(freeze::parse(&path.to_string_lossy(), &bytes))
}

/// Why a row was not added.
#[derive(Debug)]
pub enum Refused {
    /// The ledger does not hold.
    Faults(Vec<Fault>),
    /// This row says the same, and still holds.
    Twin(Box<Freeze>),
}

/// Adds a row, in the place of one that said the same and has expired; a ledger
/// that is not there is made. One that does not hold stays as it is.
///
/// # Errors
/// When the file cannot be read or written.
pub fn add(path: &Path, row: Freeze, today: &str) -> Result<std::result::Result<(), Refused>> {
    let what = || format!("cannot write the ledger {}", path.display());
    // Behind a link it is the file that is replaced, not the link.
    let behind = path.is_symlink().then(|| path.canonicalize()).transpose().with_context(what)?;
    let path = behind.as_deref().unwrap_or(path);
    // The directory is locked, as the file itself is replaced; released when
    // it is closed.
    let lock = File::open(directory(path)).with_context(what)?;
    await_lock(&lock).with_context(what)?;
    let rows = if path.exists() { read(path)? } else { Ok(Vec::new()) };
    let mut rows = match rows {
        Ok(rows) => rows,
        Err(faults) => return Ok(Err(Refused::Faults(faults))),
    };
    if let Err(twin) = freeze::insert(&mut rows, row, today) {
        return Ok(Err(Refused::Twin(twin)));
    }
    replace(path, freeze::format(&rows).as_bytes()).with_context(what)?;
    Ok(Ok(()))
}

/// Locks it, when others have done.
fn await_lock(directory: &File) -> Result<()> {
    const AGAIN: Duration = Duration::from_millis(20);
    let end = Instant::now() + PATIENCE;
    while !try_lock(directory)? {
        ensure!(Instant::now() < end, "somebody holds a lock of its directory; try again");
        thread::sleep(AGAIN);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use effectgate_core::{freeze::Run, properties::PropertyResult};

    use super::*;

    const TODAY: &str = "2026-01-15";

    fn row(property: &str) -> Freeze {
        let run = |runner: &str, result, bundle: char| Run {
            runner: runner.to_owned(),
            result,
            bundle: bundle.to_string().repeat(64),
        };
        Freeze {
            property: property.to_owned(),
            first: run("left", PropertyResult::Pass, 'a'),
            second: run("right", PropertyResult::Fail, 'b'),
            policy: "c".repeat(64),
            owner: "A. Person".to_owned(),
            reason: "known".to_owned(),
            created: "2026-01-01".to_owned(),
            expires: "2026-01-31".to_owned(),
        }
    }

    /// Each writer sees the rows of those before it.
    #[test]
    fn many_writers_lose_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("freeze_ledger.tsv");
        thread::scope(|scope| {
            for number in 0..16 {
                let path = &path;
                scope.spawn(move || {
                    let row = row(&format!("p{number}"));
                    add(path, row, TODAY).expect("written").expect("added");
                });
            }
        });
        let rows = read(&path).expect("read").expect("it holds");
        assert_eq!(rows.len(), 16);
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn behind_a_link_the_ledger_itself_is_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let (link, real) = (dir.path().join("link"), dir.path().join("real.tsv"));
        std::os::unix::fs::symlink("real.tsv", &link).expect("a link");
        assert!(add(&link, row("p"), TODAY).is_err(), "it leads nowhere");
        add(&real, row("p"), TODAY).expect("written").expect("added");
        add(&link, row("q"), TODAY).expect("written").expect("added");
        assert!(link.is_symlink());
        assert_eq!(read(&real).expect("read").expect("it holds").len(), 2);
    }

    #[test]
    fn a_ledger_that_does_not_hold_stays_as_it_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("l.tsv");
        fs::write(&path, "by hand\n").expect("write");
        let refused = add(&path, row("p"), TODAY).expect("read");
        assert!(matches!(refused, Err(Refused::Faults(_))));
        assert_eq!(fs::read(&path).expect("read"), b"by hand\n");
        fs::remove_file(&path).expect("remove");
        add(&path, row("p"), TODAY).expect("written").expect("added");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).expect("chmod");
        assert!(matches!(add(&path, row("p"), TODAY).expect("read"), Err(Refused::Twin(_))));
        add(&path, row("q"), TODAY).expect("written").expect("added");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o664);
        assert!(add(&dir.path().join("no/l.tsv"), row("p"), TODAY).is_err());
    }
}
