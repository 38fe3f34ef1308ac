//! One HTML file that needs nothing but a browser: no network, no script. The
//! policy in its head forbids both, whatever stands in it.

mod facts;
mod files;
mod processes;
mod timeline;
mod tree;
mod violations;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use effectgate_core::{Outcome, report::Report};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::words;
use crate::diagnose::visible;

const STYLE: &str = include_str!("html/style.css");

/// The whole file.
#[must_use]
pub fn page(report: &Report) -> String {
    let verdict = &report.verdict;
    let digest = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    let allowed = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(allowed);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="generator" content={ "EffectGate " (env!("CARGO_PKG_VERSION")) };
                title { (verdict.verdict.name()) ": " (visible(&verdict.job)) " · EffectGate" }
                style { (PreEscaped(STYLE)) }
            }
            body class=(verdict.verdict.name()) {
                a class="skip" href="#main" { "Skip to the findings" }
                (head(report))
                (contents(report))
                main id="main" {
                    (findings(report))
                    (timeline::section(report))
                    (files::section(report))
                    (processes::section(report))
                    (facts::section(report))
                }
                footer {
                    p {
                        "Made by EffectGate " (env!("CARGO_PKG_VERSION")) " from "
                        (words::number(verdict.log.records)) " records, whose last hash is "
                        code { (verdict.log.head) } ". This page shows; "
                        code { "effectgate verify" } " proves."
                    }
                }
            }
        }
    };
    page.into_string()
}

fn head(report: &Report) -> Markup {
    let verdict = &report.verdict;
    let word = verdict.verdict.name();
    html! {
        header {
            h1 {
                span class="stamp" { (word) }
                " "
                span class="headline" { (words::summary(verdict)) }
            }
            p class="meaning" { (words::meaning(verdict.verdict)) }
            @if !verdict.command.argv.is_empty() {
                p class="command" { code { (words::command(&verdict.command.argv)) } }
            }
            dl class="meta" {
                div { dt { "Job" } dd { (visible(&verdict.job)) } }
                div { dt { "Host" } dd { (visible(&report.facts.host)) } }
                div { dt { "Started" } dd {
                    time datetime=(verdict.started) { (words::second(&verdict.started)) }
                } }
                div { dt { "Watched for" } dd { (words::duration(words::length(report))) } }
                div { dt { "Command" } dd { (words::ending(verdict)) } }
                div { dt { "Policy" } dd { code { (visible(&report.facts.policy_file)) } } }
                div { dt { "Mode" } dd { (report.facts.mode) ", " (verdict.backend.name()) } }
            }
        }
    }
}

fn contents(report: &Report) -> Markup {
    let entry = |id: &str, name: &str, count: Option<u64>| {
        html! {
            li { a href={ "#" (id) } {
                (name)
                @if let Some(count) = count { " " span class="count" { (words::number(count)) } }
            } }
        }
    };
    html! {
        nav aria-label="Sections" {
            ul {
                (entry("findings", "Findings", Some(report.verdict.distinct_violations())))
                (entry("timeline", "Timeline", None))
                (entry("touched", "What was touched", None))
                (entry("processes", "Processes", Some(report.processes.all.len() as u64)))
                (entry("observation", "How it was watched", None))
            }
        }
    }
}

/// Why the verdict is what it is.
fn findings(report: &Report) -> Markup {
    let verdict = &report.verdict;
    html! {
        section id="findings" aria-labelledby="findings-title" {
            h2 id="findings-title" { "Findings" }
            @if let Some(at) = report.disagreement {
                p class="note warn" {
                    "Judged again, the log comes to another result than it says, first at record "
                    (words::number(at)) ". Another version of EffectGate may have written it."
                }
            }
            @if verdict.verdict == Outcome::Indeterminate {
                p { "The verdict is open because:" }
                ul class="reasons" {
                    @for reason in &verdict.reasons { li { (visible(reason)) } }
                }
            } @else if verdict.verdict == Outcome::Fail {
                // Beside the violations; those are below.
                @let doubts: Vec<_> = verdict.reasons.iter().filter(|reason| !words::counts_violations(reason)).collect();
                @if !doubts.is_empty() {
                    p { "Besides, not everything is known:" }
                    ul class="reasons" { @for reason in doubts { li { (visible(reason)) } } }
                }
            }
            @if verdict.violations.is_empty() {
                p class="none" { "No effect was found outside the policy." }
            }
            (violations::list(report))
        }
    }
}

/// A count with its label; nothing for none.
fn figure(count: u64, label: &str) -> Markup {
    html! {
        span class={ "figure " (label) } {
            @if count > 0 {
                b { (words::number(count)) } " "
                (if count == 1 { label.trim_end_matches('s') } else { label })
            }
        }
    }
}
