//! Violations as findings at the lines of the policy.

use std::path::Path;

use effectgate_core::{Violation, report::Report};
use serde_json::Value;

use super::words;
use crate::diagnose::{Finding, Level, Place, sarif};

/// A SARIF log. What keeps the verdict open is told as what could not be looked
/// at; relative places start from `base`.
#[must_use]
pub fn log(report: &Report, base: &Path) -> Value {
    let verdict = &report.verdict;
    let finding = |violation: &Violation| finding(report, violation);
    let findings: Vec<Finding> = verdict.violations.iter().map(finding).collect();
    let mut unread: Vec<String> = verdict
        .reasons
        .iter()
        .filter(|reason| !words::counts_violations(reason))
        .cloned()
        .collect();
    if verdict.violations_unlisted > 0 {
        unread.push(format!("{} further violations are not listed", verdict.violations_unlisted));
    }
    sarif::log(&findings, base, &unread)
}

fn finding(report: &Report, violation: &Violation) -> Finding {
    let process = violation.process.as_ref().map(words::lineage);
    let process = process.map(|lineage| format!("; process {lineage}")).unwrap_or_default();
    let rule = &violation.rule;
    Finding {
        level: Level::Error,
        rule: rule.name,
        file: rule.file.clone().unwrap_or_else(|| report.facts.policy_file.clone()),
        place: rule.line.map(|line| Place { line: line.into(), mark: None }),
        message: format!("{violation}{process}"),
        why: "A job did what its policy does not allow.",
        help: String::new(),
        decided: None,
    }
}
