//! A report as test results: a suite for the job, a case for each class of
//! effects, and one for the observation. Cases have the same names in every
//! run, so that those who keep a history see one change.

use std::fmt::Write as _;
use std::io;

use effectgate_core::input::{Class, Coverage};
use effectgate_core::{Outcome, Violation, report::Report, time};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::words;
use crate::diagnose::visible;

/// Violations told in one case; more are counted.
const MOST: usize = 100;

struct Case {
    name: &'static str,
    result: Ending,
}

/// How a case ended, in the words of the format.
enum Ending {
    Passed,
    Skipped { message: &'static str },
    Failure { message: String, text: String },
    Error { message: &'static str, text: String },
}

/// The document.
///
/// # Errors
/// When it cannot be written as XML.
pub fn document(report: &Report) -> io::Result<Vec<u8>> {
    let verdict = &report.verdict;
    let mut cases: Vec<Case> = Class::ALL.iter().map(|class| case(report, *class)).collect();
    cases.push(observation(report));
    let count = |wanted: fn(&Ending) -> bool| {
        cases.iter().filter(|case| wanted(&case.result)).count().to_string()
    };
    let tests = cases.len().to_string();
    let failures = count(|result| matches!(result, Ending::Failure { .. }));
    let errors = count(|result| matches!(result, Ending::Error { .. }));
    let skipped = count(|result| matches!(result, Ending::Skipped { .. }));
    let length = seconds(words::length(report));
    let job = visible(&verdict.job);
    let group = format!("effectgate.{}", visible(&verdict.policy.id));
    // Without the fraction, which some readers do not take.
    let started = verdict.started.get(..19).unwrap_or_default();
    let host = visible(&report.facts.host);

    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites")
        .with_attribute(("name", "EffectGate"))
        .with_attribute(("tests", tests.as_str()))
        .with_attribute(("failures", failures.as_str()))
        .with_attribute(("errors", errors.as_str()))
        .write_inner_content(|xml| {
            xml.create_element("testsuite")
                .with_attribute(("name", job.as_str()))
                .with_attribute(("tests", tests.as_str()))
                .with_attribute(("failures", failures.as_str()))
                .with_attribute(("errors", errors.as_str()))
                .with_attribute(("skipped", skipped.as_str()))
                .with_attribute(("time", length.as_str()))
                .with_attribute(("timestamp", started))
                .with_attribute(("hostname", host.as_str()))
                .write_inner_content(|xml| {
                    cases.iter().try_for_each(|case| write(xml, case, &group))
                })?;
            Ok(())
        })?;
    let mut document = xml.into_inner();
    document.push(b'\n');
    Ok(document)
}

fn write(xml: &mut Writer<Vec<u8>>, case: &Case, group: &str) -> io::Result<()> {
    let element = xml
        .create_element("testcase")
        .with_attribute(("name", case.name))
        .with_attribute(("classname", group))
        .with_attribute(("time", "0"));
    let with = |xml: &mut Writer<Vec<u8>>, name: &str, kind: &str, message: &str, text: &str| {
        xml.create_element(name)
            .with_attribute(("type", kind))
            .with_attribute(("message", message))
            .write_text_content(BytesText::new(text))
            .map(|_| ())
    };
    match &case.result {
        Ending::Passed => element.write_empty()?,
        Ending::Skipped { message } => element.write_inner_content(|xml| {
            xml.create_element("skipped").with_attribute(("message", *message)).write_empty()?;
            Ok(())
        })?,
        Ending::Failure { message, text } => {
            element.write_inner_content(|xml| with(xml, "failure", "violation", message, text))?
        }
        Ending::Error { message, text } => {
            element.write_inner_content(|xml| with(xml, "error", "indeterminate", message, text))?
        }
    };
    Ok(())
}

fn case(report: &Report, class: Class) -> Case {
    let verdict = &report.verdict;
    let violations: Vec<&Violation> =
        verdict.violations.iter().filter(|violation| violation.class == class).collect();
    let coverage = verdict.coverage.each().find(|(known, _)| *known == class);
    let unlisted = verdict.unlisted_by_class.get(&class).copied().unwrap_or_default();
    let result = if !violations.is_empty() || unlisted > 0 {
        let count = words::counted(violations.len() as u64, "violation");
        let message = match unlisted {
            0 => format!("{count} of the policy"),
            more => format!("{count} of the policy, and {more} more that are not listed"),
        };
        Ending::Failure { message, text: told(report, &violations) }
    } else if coverage.is_some_and(|(_, coverage)| coverage == Coverage::None) {
        Ending::Skipped { message: "effects of this class are not watched" }
    } else {
        Ending::Passed
    };
    Case { name: class.name(), result }
}

/// Whether everything was seen.
fn observation(report: &Report) -> Case {
    let verdict = &report.verdict;
    let doubts = verdict.reasons.iter().filter(|reason| !words::counts_violations(reason));
    let text = doubts.map(|reason| visible(reason)).collect::<Vec<_>>().join("\n");
    let result = match verdict.verdict {
        Outcome::Pass | Outcome::Fail if text.is_empty() => Ending::Passed,
        _ => Ending::Error { message: "not everything that the job did is known", text },
    };
    Case { name: "observation", result }
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

/// `31.149`; from nanoseconds.
fn seconds(nanos: u64) -> String {
    format!("{}.{:03}", nanos / time::SECOND, nanos / 1_000_000 % 1000)
}
