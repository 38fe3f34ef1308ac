//! A report as test results: a suite for the job, a case for each class of
//! effects, and one for the observation. Cases have the same names in every
//! run, so that those who keep a history see one change.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};
use effectgate_core::{
    Outcome, Violation,
    input::{Class, Coverage},
    report::Report,
};
use quick_junit::{
    NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite, XmlString,
};

use super::words;
use crate::diagnose::visible;

/// Violations told in one case; more are counted.
const MOST: usize = 100;

/// The document.
///
/// # Errors
/// When it cannot be written as XML.
pub fn document(report: &Report) -> Result<String> {
    let verdict = &report.verdict;
    let group = format!("effectgate.{}", visible(&verdict.policy.id));
    let mut suite = TestSuite::new(XmlString::new(visible(&verdict.job)));
    suite.set_time(Duration::from_nanos(words::length(report)));
    for class in Class::ALL {
        suite.add_test_case(case(report, *class, &group));
    }
    suite.add_test_case(observation(report, &group));
    let mut document = Document::new("EffectGate");
    document.add_test_suite(suite);
    document.to_string().context("cannot write JUnit XML")
}

fn case(report: &Report, class: Class, group: &str) -> TestCase {
    let verdict = &report.verdict;
    let violations: Vec<&Violation> =
        verdict.violations.iter().filter(|violation| violation.class == class).collect();
    let coverage = verdict.coverage.each().find(|(known, _)| *known == class);
    let mut status = TestCaseStatus::success();
    if !violations.is_empty() {
        let count = words::counted(violations.len() as u64, "violation");
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(format!("{count} of the policy"));
        status.set_type("violation");
        status.set_description(told(report, &violations));
    } else if coverage.is_some_and(|(_, coverage)| coverage == Coverage::None) {
        status = TestCaseStatus::skipped();
        status.set_message("effects of this class are not watched");
    }
    named(class.name(), group, status)
}

/// Whether everything was seen.
fn observation(report: &Report, group: &str) -> TestCase {
    let verdict = &report.verdict;
    let doubts: Vec<String> = verdict
        .reasons
        .iter()
        .filter(|reason| !words::counts_violations(reason))
        .map(|reason| visible(reason))
        .collect();
    let is_open = verdict.verdict == Outcome::Indeterminate || !doubts.is_empty();
    let mut status = TestCaseStatus::success();
    if is_open {
        status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message("not everything that the job did is known");
        status.set_type("indeterminate");
        status.set_description(doubts.join("\n"));
    }
    named("observation", group, status)
}

fn named(name: &str, group: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(group);
    case.set_time(Duration::ZERO);
    case
}

fn told(report: &Report, violations: &[&Violation]) -> String {
    let mut text = String::new();
    for violation in violations.iter().take(MOST) {
        let _ = writeln!(text, "{}", visible(&violation.to_string()));
        if let Some(line) = violation.rule.line.and_then(|number| report.lines.get(&number)) {
            let _ = writeln!(text, "  policy: {}", visible(line.trim()));
        }
        if let Some(process) = &violation.process {
            let _ = writeln!(text, "  process {}", words::lineage(process));
        }
    }
    if violations.len() > MOST {
        let _ = writeln!(text, "and {} more", violations.len() - MOST);
    }
    text
}
