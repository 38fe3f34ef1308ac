//! What came of a job, for people and for other tools: a verdict as `run`
//! prints it, and reports of a bundle, all from one model
//! ([`effectgate_core::report`]).

pub mod annotations;
mod files;
mod forest;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod ocsf;
pub mod otlp;
pub mod sarif;
pub mod terminal;
mod tree;
mod words;

use std::fmt::Write;

use anyhow::{Context, Result};
use effectgate_core::{
    Outcome, Verdict, bundle, policy as core_policy, replay,
    report::{self, Report},
};

use crate::{bundle::Bundle, clock, commands::policy, diagnose::visible};

/// Each violation on a line with its process and ancestry below, why the
/// verdict is indeterminate, and the verdict last. Nothing in it can steer a
/// terminal.
#[must_use]
pub fn text(verdict: &Verdict) -> String {
    let mut text = String::new();
    for violation in &verdict.violations {
        let _ = writeln!(text, "{}", visible(&violation.to_string()));
        if let Some(process) = &violation.process {
            let _ = writeln!(text, "  process {}", words::lineage(process));
        }
    }
    if verdict.violations_unlisted > 0 {
        let _ = writeln!(text, "and {} more violations", verdict.violations_unlisted);
    }
    if verdict.verdict == Outcome::Indeterminate {
        for reason in &verdict.reasons {
            let _ = writeln!(text, "indeterminate: {}", visible(reason));
        }
    }
    let _ = writeln!(text, "{verdict}");
    text
}

/// What a bundle tells: its log, judged again by its policy.
///
/// # Errors
/// When a file cannot be read, or the log does not hold.
pub fn of_bundle(bundle: &Bundle) -> Result<Report> {
    let bytes = bundle.read(bundle::POLICY)?;
    let mut log = bundle.log()?;
    let day = replay::day(bundle.log()?).unwrap_or_else(clock::today);
    let parsed = core_policy::parse(bundle::POLICY, &bytes, &day)
        .map_err(|faults| policy::all(faults, &bytes))?;
    report::of_log(&mut log, parsed, &bytes)
        .map_err(|error| log.explain(error))
        .context("the log does not hold")
}
