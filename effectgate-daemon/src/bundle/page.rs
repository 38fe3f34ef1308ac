//! The report in a bundle, for whoever opens it.

use std::path::Path;

use anyhow::{Result, ensure};
use effectgate_core::Verdict;

use super::Bundle;
use crate::{
    diagnose::shell_path,
    report::{self, html},
};

/// Records of the longest log that is judged again for its report while
/// somebody waits for the verdict; for others the report is made when it is
/// asked for.
const MOST: u64 = 500_000;

/// The report of evidence that was just written under this name; `None` where its
/// log is very long.
///
/// # Errors
/// When the evidence does not hold.
pub fn of_written(bundle: &Bundle, name: &Path, verdict: &Verdict) -> Result<Option<String>> {
    let records = verdict.log.records;
    if records > MOST {
        tracing::info!(
            "no report is put in: the log has {records} records; \
             make one with `effectgate report {} --html`",
            shell_path(name)
        );
        return Ok(None);
    }
    let report = report::of_bundle(bundle)?;
    ensure!(report.verdict.log == verdict.log, "the log is not the one that was written");
    Ok(Some(html::page(&report)))
}

/// The report of a bundle.
///
/// # Errors
/// When the bundle does not hold.
pub fn page(bundle: &Bundle) -> Result<String> {
    Ok(html::page(&report::of_bundle(bundle)?))
}
