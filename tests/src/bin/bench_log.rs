//! What a log costs: records a second through judging, canonicalising, hashing,
//! appending and syncing, beside plain appending and `sha256sum` over the same
//! bytes; and how fast a log is verified, whole, cut off and compressed.
//!
//! `bench_log [ROUNDS] [RECORDS]`; the files are made in the temporary
//! directory.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use effectgate_daemon::log::{Found, SEGMENT_BYTES};
use effectgate_daemon::sinks::evidence::{Evidence, Kept};
use effectgate_tests::made::{ENVELOPE, Job};

/// Records between two syncs: about what a busy second brings.
const UNSYNCED: u64 = 100_000;
/// A segment size that gives several of them.
const SMALL_SEGMENT: u64 = 16 << 20;

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let rounds = numbers.next().transpose()?.unwrap_or(5).max(1);
    let records = numbers.next().transpose()?.unwrap_or(300_000);
    let place = tempfile::TempDir::new()?;
    let lines = lines(records);
    let bytes: u64 = lines.iter().map(|line| line.len() as u64 + 1).sum();
    let count = lines.len() as u64;
    let log = place.path().join("log.jsonl");
    println!("{count} records, {:.0} MB, {rounds} rounds, medians", bytes as f64 / 1e6);
    println!("{:<44}{:>14}{:>10}{:>10}", "", "records/s", "MB/s", "ratio");
    let mut row = Row { count, bytes, base: None };

    row.print("append and sync, nothing else", median(rounds, || plain(&log, &lines))?);
    row.print("sha256sum over the same bytes", median(rounds, || sha256sum(&log))?);
    row.print("append to evidence, hash its file, sync", {
        median(rounds, || evidence(place.path(), SEGMENT_BYTES, &mut lines.iter().cloned()))?
    });
    row.print("the same in compressed segments", {
        median(rounds, || evidence(place.path(), SMALL_SEGMENT, &mut lines.iter().cloned()))?
    });
    row.print("judge, canonicalise, hash, chain", median(rounds, || judged(records))?);
    row.print(
        "all of it: judge, chain, append, sync",
        median(rounds, || whole(place.path(), records))?,
    );

    println!();
    row.print("verify a whole log", median(rounds, || verified(&log, true))?);
    let cut = place.path().join("cut.jsonl");
    fs::write(&cut, &fs::read(&log)?[..bytes as usize - 100])?;
    row.print("find the end of one that was cut off", median(rounds, || verified(&cut, false))?);
    evidence(place.path(), SMALL_SEGMENT, &mut lines.iter().cloned())?;
    let dir = place.path().join("evidence");
    row.print("verify one in compressed segments", median(rounds, || verified(&dir, true))?);
    println!(
        "{:<44}{:>24.1} % of its size",
        "compressed segments take",
        100.0 * size(&dir)? as f64 / bytes as f64
    );
    Ok(())
}

/// Prints what a time means, and its ratio to the first one.
struct Row {
    count: u64,
    bytes: u64,
    base: Option<f64>,
}

impl Row {
    fn print(&mut self, what: &str, time: Duration) {
        let seconds = time.as_secs_f64();
        let base = *self.base.get_or_insert(seconds);
        println!(
            "{what:<44}{:>14.0}{:>10.0}{:>10.2}",
            self.count as f64 / seconds,
            self.bytes as f64 / 1e6 / seconds,
            base / seconds
        );
    }
}

/// A log's lines, without newlines.
fn lines(records: u64) -> Vec<Vec<u8>> {
    let mut job = Job::begin();
    let mut lines = job.opened();
    for count in 0..records {
        lines.extend(job.write(count));
    }
    lines.extend(job.end().0);
    lines
}

fn plain(path: &Path, lines: &[Vec<u8>]) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
    for (count, line) in lines.iter().enumerate() {
        file.write_all(line)?;
        file.write_all(b"\n")?;
        if (count as u64 + 1).is_multiple_of(UNSYNCED) {
            file.flush()?;
            file.get_ref().sync_data()?;
        }
    }
    file.flush()?;
    Ok(file.get_ref().sync_data()?)
}

fn sha256sum(path: &Path) -> Result<()> {
    let status = Command::new("sha256sum").arg(path).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "sha256sum: {status}");
    Ok(())
}

fn evidence(
    place: &Path,
    segment_bytes: u64,
    lines: &mut dyn Iterator<Item = Vec<u8>>,
) -> Result<()> {
    let dir = place.join("evidence");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    let kept = Kept { policy: ENVELOPE, note: None, segment_bytes, signer: None };
    let mut evidence = Evidence::create(&dir, kept)?;
    for (count, line) in lines.enumerate() {
        evidence.append(&line)?;
        if (count as u64 + 1).is_multiple_of(UNSYNCED) {
            evidence.sync()?;
        }
    }
    evidence.sync()
}

fn judged(records: u64) -> Result<()> {
    let mut job = Job::begin();
    for count in 0..records {
        std::hint::black_box(job.write(count));
    }
    Ok(())
}

fn whole(place: &Path, records: u64) -> Result<()> {
    let mut job = Job::begin();
    let opened = job.opened();
    let mut lines = opened.into_iter().chain((0..records).flat_map(|count| job.write(count)));
    evidence(place, SEGMENT_BYTES, &mut lines)
}

fn verified(path: &Path, whole: bool) -> Result<()> {
    let found = Found::of(path, None)?;
    ensure!(found.holds == whole, "{:?}", found.flaw);
    Ok(())
}

fn size(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

fn median(rounds: u64, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}
