//! Workflow commands, which GitHub shows at the lines of the policy
//! (<https://docs.github.com/actions/using-workflows/workflow-commands-for-github-actions>).

use effectgate_core::{Outcome, report::Report};

use super::words;
use crate::diagnose::visible;

/// More of a step are not shown there.
const MOST: usize = 10;

/// A command a line: the verdict, then violations.
#[must_use]
pub fn commands(report: &Report) -> String {
    let verdict = &report.verdict;
    let level = if verdict.verdict == Outcome::Pass { "notice" } else { "error" };
    let mut message = format!("{verdict}");
    if verdict.verdict == Outcome::Indeterminate {
        message += &format!(": {}", verdict.reasons.join("; "));
    }
    let mut lines = vec![format!("::{level} title=EffectGate::{}", data(&message))];
    for violation in verdict.violations.iter().take(MOST - 1) {
        let process = violation.process.as_ref().map(words::lineage);
        let process = process.map(|lineage| format!("; process {lineage}")).unwrap_or_default();
        let rule = &violation.rule;
        let place = match (&rule.file, rule.line) {
            (Some(file), Some(line)) => format!("file={},line={line},", property(file)),
            _ => String::new(),
        };
        let title = property(&format!("EffectGate: {} {}", violation.class.name(), rule.name));
        let text = data(&format!("{violation}{process}"));
        lines.push(format!("::error {place}title={title}::{text}"));
    }
    lines.join("\n") + "\n"
}

/// A message: what would end it, or begin another command, is escaped.
fn data(text: &str) -> String {
    visible(text).replace('%', "%25")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
