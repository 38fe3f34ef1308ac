//! What reports cost, side by side with judging the log again, which each of
//! them begins with: seconds, and bytes for each 1,000 effects.
//!
//! `bench_report [ROUNDS]`, with `EFFECTGATE_BIN` set.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use effectgate_tests::made::{ENVELOPE, Job};
use effectgate_tests::measure::{measure, median};

const SIZES: [u32; 3] = [1_000, 10_000, 100_000];
const FORMS: [&str; 7] = ["html", "markdown", "sarif", "junit", "ocsf", "otlp", "annotations"];
/// Effects of a child, and of how many one is outside.
const OF_A_CHILD: u32 = 20;
const OUTSIDE: u32 = 1_000;

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map(|arg| arg.parse()).transpose()?.unwrap_or(3).max(1);
    let program = std::env::var_os("EFFECTGATE_BIN").context("EFFECTGATE_BIN is not set")?;
    let program = PathBuf::from(program);
    println!("reports, {rounds} rounds, medians: seconds, and bytes for each 1,000 effects");
    print!("{:<10}{:>9}", "effects", "replay");
    FORMS.iter().for_each(|form| print!("{form:>20}"));
    println!();
    for size in SIZES {
        let dir = tempfile::tempdir()?;
        bundle(dir.path(), size)?;
        // There are violations, so it does not hold, and says so.
        let script = "\"$0\" replay \"$1/events.jsonl\" --envelope \"$1/policy\"; [ $? = 1 ]";
        let mut replay = Command::new("sh");
        replay.args(["-c", script]).arg(&program).arg(dir.path());
        print!("{size:<10}{:>9.2}", time(rounds, &mut replay)?.as_secs_f64());
        for form in FORMS {
            let out = dir.path().join("out");
            let mut report = Command::new(&program);
            report.arg("report").arg(dir.path()).arg(format!("--{form}"));
            let took = time(rounds, report.arg("--output").arg(&out))?;
            let bytes = fs::metadata(&out)?.len() * 1_000 / u64::from(size);
            fs::remove_file(&out)?;
            print!("{:>20}", format!("{:.2} s {bytes} B", took.as_secs_f64()));
        }
        println!();
    }
    Ok(())
}

fn time(rounds: usize, command: &mut Command) -> Result<Duration> {
    let took = (0..rounds).map(|_| measure(command)).collect::<Result<Vec<_>>>()?;
    Ok(median(took.into_iter().map(|measured| measured.wall)))
}

/// A job that builds something.
fn bundle(dir: &Path, effects: u32) -> Result<()> {
    fs::write(dir.join("policy"), ENVELOPE)?;
    let mut log = BufWriter::new(File::create(dir.join("events.jsonl"))?);
    let mut put = |lines: Vec<Vec<u8>>| -> Result<()> {
        for line in lines {
            log.write_all(&line)?;
            log.write_all(b"\n")?;
        }
        Ok(())
    };
    let mut job = Job::begin();
    put(job.opened())?;
    for n in 0..effects {
        if n % OF_A_CHILD == 0 {
            put(job.child(1_000 + n / OF_A_CHILD))?;
        }
        let is_outside = n % OUTSIDE == OUTSIDE - 1;
        put(if is_outside { job.stray(n.into()) } else { job.write(n.into()) })?;
    }
    put(job.end().0)?;
    log.flush()?;
    Ok(())
}
