//! Writes a job's evidence as fast as it can, and says on standard output what
//! is durable, until it has its verdict or is killed:
//! `log_writer DIR RECORDS SEGMENT_BYTES`.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use effectgate_daemon::sinks::evidence::{Evidence, Kept};
use effectgate_tests::made;

/// Records between two syncs: a crash may lose as many.
const UNSYNCED: u64 = 20;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().context("DIR RECORDS SEGMENT_BYTES");
    let (dir, records, segment_bytes) = (next()?, next()?.parse()?, next()?.parse()?);
    let kept = Kept { policy: made::ENVELOPE, note: None, segment_bytes, signer: None };
    let mut evidence = Evidence::create(Path::new(&dir), kept)?;
    let mut job = made::Job::begin();
    let mut out = std::io::stdout();
    for line in job.opened() {
        evidence.append(&line)?;
    }
    for count in 0..records {
        for line in job.write(count) {
            evidence.append(&line)?;
        }
        if count % UNSYNCED == 0 {
            evidence.sync()?;
            writeln!(out, "synced {}", evidence.synced())?;
        }
    }
    let (lines, verdict) = job.end();
    for line in lines {
        evidence.append(&line)?;
    }
    evidence.close(&verdict)?;
    writeln!(out, "verdict {}", verdict.log.records)?;
    Ok(())
}
