//! A verdict as people read it.

use std::fmt::Write;

use effectgate_core::{Outcome, Verdict, process::Process};

use crate::diagnose::visible;

/// Each violation on a line with its process and ancestry below, why the
/// verdict is indeterminate, and the verdict last. Nothing in it can steer a
/// terminal.
#[must_use]
pub fn text(verdict: &Verdict) -> String {
    let mut text = String::new();
    for violation in &verdict.violations {
        let _ = writeln!(text, "{violation}");
        if let Some(process) = &violation.process {
            let _ = writeln!(text, "  {}", lineage(process));
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

/// `process 12 cc < 11 sh < 10 make`
fn lineage(process: &Process) -> String {
    let mut text = format!("process {} {}", process.pid, process.comm);
    for ancestor in &process.ancestry {
        let _ = write!(text, " < {} {}", ancestor.pid, ancestor.comm);
    }
    visible(&text)
}
