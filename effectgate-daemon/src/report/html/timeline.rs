//! When it happened: a chart of all records, and the moments that stand out.

use std::fmt::Write as _;

use effectgate_core::input::Class;
use effectgate_core::report::{Bar, Moment, Report, Timeline};
use maud::{Markup, html};

use super::super::words::{counted, duration, number};
use crate::diagnose::visible;

/// Units of the chart: a bar's width, the gap behind it, the whole height, and
/// the strip for violations above.
const STEP: usize = 6;
const BAR: usize = 5;
const HEIGHT: f64 = 100.0;
const STRIP: f64 = 10.0;

/// Moments in the open; more are folded.
const OPEN: usize = 20;

pub fn section(report: &Report) -> Markup {
    let Timeline { start, end, width, bars } = &report.timeline;
    let most = bars.iter().map(Bar::total).max().unwrap_or_default();
    let violations: u64 = bars.iter().map(|bar| bar.violations).sum();
    let shown = classes(bars);
    let label = format!(
        "{} over {}; at most {} in {}; {} outside the policy",
        counted(bars.iter().map(Bar::total).sum(), "record"),
        duration(end - start),
        number(most),
        duration(*width),
        number(violations),
    );
    let wide = bars.len().max(1) * STEP;
    html! {
            section id="timeline" aria-labelledby="timeline-title" {
                h2 id="timeline-title" { "Timeline" }
                figure {
                    svg role="img" aria-label=(label) viewBox={ "0 0 " (wide) " " (HEIGHT + STRIP) }
                        preserveAspectRatio="none" {
                        @for (class, index) in &shown {
                            path class={ "fill-" (class.name()) } d=(stack(bars, &shown, *index, most)) {}
                        }
                        path class="fill-outside" d=(marks(bars)) {}
                    }
                    div class="axis" aria-hidden="true" {
                        span { "0" } span { (duration((end - start) / 2)) } span { (duration(end - start)) }
                    }
                    figcaption {
                        @for (class, _) in &shown {
                            span class="key" { span class={ "dot bg-" (class.name()) } {} (class.name()) }
                        }
    @if violations > 0 {
                            span class="key" { span class="dot bg-outside" {} "outside the policy" }
                        }
                        span class="muted" {
                            "One bar is " (duration(*width)) ", at most " (counted(most, "record"))
                            ". Heights grow with the square root."
                        }
                    }
                }
                (moments(report))
            }
        }
}

/// The classes that occur, with their index.
fn classes(bars: &[Bar]) -> Vec<(Class, usize)> {
    let occurs = |index: usize| bars.iter().any(|bar| bar.records[index] > 0);
    Class::ALL
        .iter()
        .enumerate()
        .filter(|(index, _)| occurs(*index))
        .map(|(i, c)| (*c, i))
        .collect()
}

/// The part of each bar that is of one class, above those before it.
fn stack(bars: &[Bar], shown: &[(Class, usize)], class: usize, most: u64) -> String {
    let mut path = String::new();
    for (at, bar) in bars.iter().enumerate().filter(|(_, bar)| bar.records[class] > 0) {
        let total = bar.total() as f64;
        let whole = HEIGHT * (total / most.max(1) as f64).sqrt();
        let before = shown.iter().take_while(|(_, index)| *index != class);
        let before: u64 = before.map(|(_, index)| bar.records[*index]).sum();
        let bottom = STRIP + HEIGHT - whole * before as f64 / total;
        let height = whole * bar.records[class] as f64 / total;
        let _ = write!(path, "M{} {bottom:.1}h{BAR}v-{height:.1}h-{BAR}z", at * STEP);
    }
    path
}

fn marks(bars: &[Bar]) -> String {
    let marked = bars.iter().enumerate().filter(|(_, bar)| bar.violations > 0);
    marked.map(|(at, _)| format!("M{} 0h{BAR}v6h-{BAR}z", at * STEP)).collect()
}

fn moments(report: &Report) -> Markup {
    let moments = &report.moments.listed;
    let open = moments.len().min(OPEN);
    let (first, rest) =
        moments.split_at(if moments.len() <= OPEN + 5 { moments.len() } else { open });
    html! {
        h3 { "Moments" }
        p class="lead" {
            "What the observer said, the first run of each program, the first of each violation."
            @if report.moments.unlisted > 0 {
                " " (number(report.moments.unlisted)) " more are in the log."
            }
        }
        (table(report, first))
        @if !rest.is_empty() {
            details {
                summary { (counted(rest.len() as u64, "more moment")) }
                (table(report, rest))
            }
        }
    }
}

fn table(report: &Report, moments: &[Moment]) -> Markup {
    html! {
        div class="scroll" { table class="moments" {
            thead { tr {
                th scope="col" class="number" { "After" }
                th scope="col" { "Kind" }
                th scope="col" { "What" }
                th scope="col" class="number" { "Record" }
            } }
            tbody {
                @for moment in moments {
                    tr class=(moment.kind.name()) {
                        td class="number" { (duration(moment.ts.saturating_sub(report.timeline.start))) }
                        td { (moment.kind.name()) }
                        td { span class="text" { (visible(&moment.text)) }
                            @if let Some(pid) = moment.pid { " " span class="muted" { "pid " (pid) } }
                        }
                        td class="number" { (number(moment.seq)) }
                    }
                }
            }
        } }
    }
}
