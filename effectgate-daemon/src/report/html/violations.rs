//! Each violation with the rule and the line that decided, and who did it.

use effectgate_core::{Violation, report::Report};
use maud::{Markup, html};

use super::super::words::{Group, counted, duration, groups, number};
use crate::diagnose::visible;

/// Violations of a rule in the open; more are folded.
const OPEN: usize = 20;

pub fn list(report: &Report) -> Markup {
    let verdict = &report.verdict;
    html! {
        @for group in groups(verdict) { (rule(report, &group)) }
        @if verdict.violations_unlisted > 0 {
            p class="note warn" {
                "and " (counted(verdict.violations_unlisted, "more violation"))
                ", each time they happened. They are in the log."
            }
        }
    }
}

fn rule(report: &Report, group: &Group<'_>) -> Markup {
    let rule = group.rule;
    let line = rule.line.and_then(|line| report.lines.get(&line));
    let violations = &group.violations;
    let open = if violations.len() <= OPEN + 5 { violations.len() } else { OPEN };
    let (first, rest) = violations.split_at(open);
    html! {
        article class="rule" {
            h3 {
                code { (rule.name) }
                @if let (Some(file), Some(number)) = (&rule.file, rule.line) {
                    " " span class="where" { (visible(file)) ":" (number) }
                } @else {
                    " " span class="where" { "in every policy" }
                }
                " " span class="count" { (counted(violations.len() as u64, "violation")) }
            }
            @if let (Some(number), Some(line)) = (rule.line, line) {
                pre class="line" { span class="gutter" { (number) } code { (visible(line)) } }
            }
            (items(report, first))
            @if !rest.is_empty() {
                details {
                    summary { (counted(rest.len() as u64, "more violation")) }
                    (items(report, rest))
                }
            }
        }
    }
}

fn items(report: &Report, violations: &[&Violation]) -> Markup {
    html! {
        ul class="violations" {
            @for violation in violations { li { (item(report, violation)) } }
        }
    }
}

fn item(report: &Report, violation: &Violation) -> Markup {
    let after = report.times.get(&violation.seq);
    let after = after.map(|ts| duration(ts.saturating_sub(report.timeline.start)));
    html! {
        p class="what" {
            span class="when" {
                @if let Some(after) = after { "after " (after) ", " }
                "record " (number(violation.seq))
            }
            span class="action" { (violation.class.name()) " " (violation.action) }
            " " code class="object" { (visible(&violation.object)) }
            @if violation.count > 1 { " " span class="tag" { "×" (number(violation.count)) } }
            @if let Some(stopped) = violation.stopped() {
                " " span class="tag good" { (stopped) }
            }
        }
        @if let Some(process) = &violation.process {
            p class="who" {
                "by " code { (visible(violation.program.as_deref().unwrap_or("an unknown program"))) }
                span class="lineage" {
                    (process.pid) " " (visible(&process.comm))
                    @for ancestor in &process.ancestry {
                        span class="from" title="started by" { " ‹ " }
                        span title=(visible(ancestor.exe.as_deref().unwrap_or_default())) {
                            (ancestor.pid) " " (visible(&ancestor.comm))
                        }
                    }
                }
            }
        }
    }
}
