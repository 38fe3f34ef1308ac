//! The report in a bundle, for whoever opens it.

use std::path::Path;

use anyhow::{Result, ensure};
use effectgate_core::{
    Verdict,
    bundle::{self, PAGE},
};

use super::Bundle;
use crate::{
    diagnose::shell_path,
    report::{self, html},
    sinks::evidence::{self, Written},
};

/// Records of the longest log that is judged again for its report while
/// somebody waits for the verdict; for others the report is made when it is
/// asked for.
const MOST: u64 = 500_000;

/// Adds the report to evidence that was just written, unless its log is very
/// long.
///
/// # Errors
/// When the evidence does not hold, or cannot be written.
pub fn add_page(written: &mut Written, verdict: &Verdict) -> Result<()> {
    let records = verdict.log.records;
    if records > MOST {
        tracing::info!(
            "no report is put in: the log has {records} records; \
             make one with `effectgate report {} --html`",
            shell_path(written.path())
        );
        return Ok(());
    }
    let report = report::of_bundle(&Bundle::open(&written.dir(), &mut Vec::new())?)?;
    ensure!(report.verdict.log == verdict.log, "the log is not the one that was written");
    written.put(PAGE, html::page(&report).as_bytes())
}

/// Writes the report of the bundle in a directory, and its digest into the list.
///
/// # Errors
/// When the bundle does not hold, or cannot be written.
pub fn put_page(dir: &Path) -> Result<()> {
    let bundle = Bundle::open(dir, &mut Vec::new())?;
    let mut digests = bundle::parse_digests(&bundle.read(bundle::DIGESTS)?)?;
    let page = html::page(&report::of_bundle(&bundle)?);
    evidence::add(dir, PAGE, page.as_bytes(), &mut digests)
}
