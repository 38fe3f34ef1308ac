//! A report as Markdown, for the summary of a step in a pipeline. GitHub takes
//! 1 MiB of it (<https://docs.github.com/actions/using-workflows/workflow-commands-for-github-actions>),
//! other systems less.

use std::fmt::Write as _;

use effectgate_core::{Outcome, Violation, report::Report};

use super::files::Files;
use super::tree::Tree;
use super::words::{self, counted, duration, number};
use crate::diagnose::visible;

/// Bytes of a report, but for its end.
const MOST: usize = 256 << 10;
const MOST_OF_A_RULE: usize = 50;
const MOST_PLACES: usize = 40;
/// Characters of one text.
const LONGEST: usize = 500;

/// The report. What a job chose stands in code spans alone.
#[must_use]
pub fn page(report: &Report) -> String {
    let verdict = &report.verdict;
    let mark = match verdict.verdict {
        Outcome::Pass => "✅",
        Outcome::Fail => "❌",
        Outcome::Indeterminate => "⚠️",
    };
    let mut text = String::new();
    let _ = writeln!(text, "## {mark} {}: {}\n", verdict.verdict.name(), words::summary(verdict));
    let _ = writeln!(text, "{}\n", words::meaning(verdict.verdict));
    facts(&mut text, report);
    if let Some(at) = report.disagreement {
        let _ = writeln!(
            text,
            "> Judged again, the log comes to another result than it says, first at record {at}.\n"
        );
    }
    violations(&mut text, report);
    let doubts: Vec<_> =
        verdict.reasons.iter().filter(|reason| !words::counts_violations(reason)).collect();
    if !doubts.is_empty() {
        text += "### Not known\n\n";
        for reason in doubts {
            let _ = writeln!(text, "- {}", code(reason));
        }
        text.push('\n');
    }
    touched(&mut text, report);
    let _ =
        writeln!(text, "{} records, head {}", number(verdict.log.records), code(&verdict.log.head));
    text
}

fn facts(text: &mut String, report: &Report) {
    let (verdict, facts) = (&report.verdict, &report.facts);
    let mut fact = |name: &str, value: String| {
        let _ = writeln!(text, "- {name}: {value}");
    };
    if !verdict.command.argv.is_empty() {
        let command = words::command(&verdict.command.argv);
        fact("Command", format!("{} ({})", code(&command), words::ending(verdict)));
    }
    fact("Job", format!("{} on {}", code(&verdict.job), code(&facts.host)));
    let length = duration(words::length(report));
    fact("Started", format!("{}, watched for {length}", words::second(&verdict.started)));
    fact("Policy", format!("{} ({})", code(&facts.policy_file), code(&verdict.policy.id)));
    fact("Watched by", format!("{}, mode {}", verdict.backend.name(), facts.mode));
    text.push('\n');
}

fn violations(text: &mut String, report: &Report) {
    let mut left = report.verdict.violations_unlisted;
    for group in words::groups(&report.verdict) {
        let rule = group.rule;
        if text.len() > MOST {
            left += group.violations.len() as u64;
            continue;
        }
        let place = match (&rule.file, rule.line) {
            (Some(file), Some(line)) => code(&format!("{file}:{line}")),
            _ => "in every policy".to_owned(),
        };
        let count = counted(group.violations.len() as u64, "violation");
        let _ = writeln!(text, "### {} ({place}): {count}\n", code(rule.name));
        if let Some(line) = rule.line.and_then(|number| report.lines.get(&number)) {
            let _ = writeln!(text, "{}\n", code(line.trim()));
        }
        let mut shown = 0;
        for violation in group.violations.iter().take(MOST_OF_A_RULE) {
            if text.len() > MOST {
                break;
            }
            shown += 1;
            item(text, report, violation);
        }
        left += (group.violations.len() - shown) as u64;
        text.push('\n');
    }
    if left > 0 {
        let _ = writeln!(
            text,
            "**{} of {} are not shown here**, to keep this summary short; the evidence has them all.\n",
            counted(left, "violation"),
            number(report.verdict.distinct_violations())
        );
    }
}

fn item(text: &mut String, report: &Report, violation: &Violation) {
    let (class, action) = (violation.class.name(), violation.action);
    let times = if violation.count > 1 {
        format!(", {} times", number(violation.count))
    } else {
        String::new()
    };
    let stopped = violation.stopped().map(|how| format!(", {how}")).unwrap_or_default();
    let (action, object) = (code(action), code(&violation.object));
    let _ = write!(text, "- {class} {action} {object}{times}{stopped}");
    if let Some(process) = &violation.process {
        let program = violation.program.as_deref().unwrap_or("?");
        let _ =
            write!(text, "<br>by {}, process {}", code(program), code(&words::lineage(process)));
    }
    let after = report.times.get(&violation.seq);
    let after = after.map(|ts| duration(ts.saturating_sub(report.timeline.start)));
    let after = after.map(|after| format!("after {after}, ")).unwrap_or_default();
    let _ = writeln!(text, "<br>{after}record {}", violation.seq);
}

fn touched(text: &mut String, report: &Report) {
    let files = Files::new(report);
    let whole = &files.sums[0];
    let _ = writeln!(
        text,
        "<details><summary>What was touched: {}, {}, {}; {}</summary>\n",
        counted(whole.reads, "read"),
        counted(whole.changes, "change"),
        counted(whole.runs, "run"),
        counted(report.peers.listed.len() as u64 + report.peers.unlisted, "peer"),
    );
    let mut shown = Vec::new();
    for top in files.tops() {
        let top = files.shown(top);
        shown.push((0, top));
        shown.extend(files.children(top).into_iter().map(|child| (1, files.shown(child))));
    }
    for (depth, node) in shown.iter().take(MOST_PLACES) {
        let sums = &files.sums[*node];
        let parts = [
            (sums.violations, "outside"),
            (sums.changes, "changed"),
            (sums.reads, "read"),
            (sums.runs, "run"),
        ];
        let figures: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", number(count)))
            .collect();
        let indent = "  ".repeat(*depth);
        let _ = writeln!(text, "{indent}- {}: {}", code(&files.name(*node)), figures.join(", "));
    }
    if shown.len() > MOST_PLACES {
        let _ = writeln!(text, "- and {} more", number((shown.len() - MOST_PLACES) as u64));
    }
    for peer in report.peers.listed.iter().take(MOST_PLACES) {
        let kind = peer.protocol.as_deref().unwrap_or(&peer.family);
        let outside = if peer.violations > 0 { ", outside" } else { "" };
        let place = code(&words::place(peer));
        let _ = writeln!(
            text,
            "- {} {} {place}, {}{outside}",
            peer.op,
            code(kind),
            counted(peer.count, "time")
        );
    }
    text.push_str("\n</details>\n\n");
}

/// A code span, in which nothing is markup, a link or a mention (CommonMark
/// 0.31, 6.1): its fence is longer than any run of backticks inside.
fn code(text: &str) -> String {
    let mut shown = visible(text);
    if let Some((at, _)) = shown.char_indices().nth(LONGEST) {
        shown.truncate(at);
        shown.push('…');
    }
    if shown.trim().is_empty() {
        shown = format!("\"{shown}\"");
    }
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // Blanks at both ends are taken off again.
    let edge = |c: Option<char>| c.is_some_and(|c| c == '`' || c == ' ');
    match edge(shown.chars().next()) || edge(shown.chars().next_back()) {
        true => format!("{fence} {shown} {fence}"),
        false => format!("{fence}{shown}{fence}"),
    }
}
