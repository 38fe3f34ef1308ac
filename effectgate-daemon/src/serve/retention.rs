//! How long evidence is kept, and the record of what is not kept any more.

use std::{
    fmt::Display,
    fs::{self, File, OpenOptions},
    io::{BufReader, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use effectgate_core::{
    bundle::{DIGESTS, VERDICT},
    chain::Flaw,
    dropped::{Dropped, Drops, Why},
    replay::ReplayError,
};
use serde_json::Value;

use crate::{
    lock,
    log::{digest_of, small},
    sinks::metrics::Metrics,
};

/// The record of what was dropped, in the state directory.
pub const DROPPED: &str = "dropped.jsonl";
/// How often it is looked whether something is to go.
const INTERVAL: Duration = Duration::from_secs(300);
/// A directory that was written to so recently is in somebody's hands.
const GRACE: Duration = Duration::from_secs(60);
/// What a directory is called between the record that it is dropped and its
/// end. No job has such a name.
const GOING: &str = ".dropped-";
/// What it is called while it is tried whether it can be moved.
const TRIED: &str = ".tried-";
const DAY: u64 = 24 * 60 * 60;

/// What is kept.
#[derive(Clone, Debug)]
pub struct Retention {
    pub state_dir: PathBuf,
    pub days: Option<u64>,
    pub bytes: Option<u64>,
}

/// A job's evidence as it lies there.
struct Kept {
    job: String,
    path: PathBuf,
    ended: SystemTime,
    bytes: u64,
}

impl Retention {
    /// Drops what is to go, now and every few minutes.
    ///
    /// # Errors
    /// When looking panics.
    pub async fn serve(self, metrics: Arc<Metrics>) -> Result<()> {
        let retention = Arc::new(self);
        let mut interval = tokio::time::interval(INTERVAL);
        loop {
            interval.tick().await;
            let (retention, metrics) = (Arc::clone(&retention), Arc::clone(&metrics));
            let sweep = move || retention.sweep(SystemTime::now(), &mut |why| metrics.dropped(why));
            if let Err(error) = tokio::task::spawn_blocking(sweep).await? {
                tracing::error!("old evidence is kept: {error:#}");
            }
        }
    }

    /// Drops what is older than what is kept, then the oldest while all is
    /// larger than what is kept. What is being written to stays, and so does what
    /// cannot be read or removed: the others do not wait for it.
    ///
    /// # Errors
    /// When the record of what was dropped cannot be written or does not hold:
    /// then nothing is dropped.
    pub fn sweep(&self, now: SystemTime, dropped: &mut dyn FnMut(Why)) -> Result<()> {
        if self.days.is_none() && self.bytes.is_none() {
            return Ok(());
        }
        let mut kept = self.kept()?;
        kept.sort_by(|a, b| (a.ended, &a.job).cmp(&(b.ended, &b.job)));
        let mut total: u64 = kept.iter().map(|kept| kept.bytes).sum();
        let mut record = None;
        for kept in kept {
            // What ended in the future, by a clock that was wrong, is not old.
            let age = now.duration_since(kept.ended).unwrap_or_default();
            let ahead = kept.ended.duration_since(now).unwrap_or_default();
            let why = if self.days.is_some_and(|days| age.as_secs() >= days.saturating_mul(DAY)) {
                Why::Age
            } else if self.bytes.is_some_and(|bytes| total > bytes) {
                Why::Size
            } else {
                continue;
            };
            let stays = |error: &dyn Display, total: &mut u64| {
                tracing::error!("cannot drop {}: {error:#}", kept.path.display());
                // Nothing else has to make room for it.
                *total -= kept.bytes;
            };
            if age.max(ahead) < GRACE {
                continue;
            }
            let _lock = match lock::of_directory(&kept.path) {
                Ok(Some(lock)) => lock,
                Ok(None) => continue,
                Err(error) => {
                    stays(&error, &mut total);
                    continue;
                }
            };
            // What is written down must come true.
            if let Err(error) = can_move(&kept.path) {
                stays(&error, &mut total);
                continue;
            }
            let record = match &mut record {
                Some(record) => record,
                None => record.insert(Record::open(&self.state_dir.join(DROPPED))?),
            };
            record.write(now, &kept, why)?;
            if let Err(error) = remove(&kept.path) {
                stays(&error, &mut total);
                continue;
            }
            total -= kept.bytes;
            tracing::info!("dropped the evidence of {} ({})", kept.job, why.name());
            dropped(why);
        }
        Ok(())
    }

    /// What lies there, once what was going is gone.
    fn kept(&self) -> Result<Vec<Kept>> {
        let jobs = self.state_dir.join("jobs");
        let what = || format!("cannot read {}", jobs.display());
        let mut all = Vec::new();
        for entry in fs::read_dir(&jobs).with_context(what)? {
            let entry = entry.with_context(what)?;
            let path = entry.path();
            let Ok(job) = entry.file_name().into_string() else { continue };
            if !entry.file_type().with_context(what)?.is_dir() {
                continue;
            }
            if let Some(name) = job.strip_prefix(TRIED) {
                // Whoever moved it died before it was moved back.
                if let Err(error) = fs::rename(&path, jobs.join(name)) {
                    tracing::error!("cannot move {} back: {error}", path.display());
                }
                continue;
            }
            if job.starts_with(GOING) {
                if let Err(error) = fs::remove_dir_all(&path) {
                    tracing::error!("cannot remove {}: {error}", path.display());
                }
                continue;
            }
            match extent(&path) {
                Ok((ended, bytes)) => all.push(Kept { job, path, ended, bytes }),
                Err(error) => tracing::error!("{error:#}"),
            }
        }
        Ok(all)
    }
}

/// When a directory was last written to, and the size of its files.
fn extent(dir: &Path) -> Result<(SystemTime, u64)> {
    let what = || format!("cannot read {}", dir.display());
    let mut last = fs::metadata(dir).with_context(what)?.modified().with_context(what)?;
    let mut bytes = 0;
    for entry in fs::read_dir(dir).with_context(what)? {
        match entry.and_then(|entry| entry.metadata()) {
            Ok(meta) => {
                last = last.max(meta.modified().with_context(what)?);
                bytes += meta.len();
            }
            // It was replaced since.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(what),
        }
    }
    Ok((last, bytes))
}

/// Whether a directory can be moved: there, and back.
fn can_move(dir: &Path) -> std::io::Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let tried = dir.with_file_name(format!("{TRIED}{name}"));
    fs::rename(dir, &tried)?;
    fs::rename(&tried, dir)
}

/// Out of the way in one step, so that no half of it is taken for evidence.
fn remove(dir: &Path) -> std::io::Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let going = dir.with_file_name(format!("{GOING}{name}"));
    fs::rename(dir, &going)?;
    fs::remove_dir_all(&going)
}

/// The open record of what was dropped.
struct Record {
    path: PathBuf,
    file: File,
    drops: Drops,
}

impl Record {
    /// Goes on where it ended; half a line, of a crash, is taken off: what it
    /// was about to say was not done.
    fn open(path: &Path) -> Result<Record> {
        let what = || format!("the record of what was dropped, {}", path.display());
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = file.with_context(what)?;
        let read = || Drops::read(BufReader::new(File::open(path).map_err(io)?));
        let drops = match read() {
            Err(ReplayError::Flawed { byte, flaw: Flaw::Truncated, .. }) => {
                file.set_len(byte).with_context(what)?;
                read()
            }
            drops => drops,
        };
        Ok(Record { path: path.to_owned(), file, drops: drops.with_context(what)? })
    }

    fn write(&mut self, now: SystemTime, kept: &Kept, why: Why) -> Result<()> {
        // One that cannot be read is null, as one that is not there.
        let verdict = small(&kept.path.join(VERDICT)).ok().flatten();
        let verdict: Value =
            verdict.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let dropped = Dropped {
            job: kept.job.clone(),
            why,
            ended: nanos(kept.ended),
            bytes: kept.bytes,
            manifest: digest_of(&kept.path.join(DIGESTS)).ok().flatten(),
            verdict: text(&verdict["verdict"]),
            head: text(&verdict["log"]["head"]),
        };
        let Some(mut line) = self.drops.append(nanos(now), &dropped) else { return Ok(()) };
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_all());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn io(source: std::io::Error) -> ReplayError {
    ReplayError::Io { good: 0, source }
}

fn nanos(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

#[cfg(test)]
mod tests;
