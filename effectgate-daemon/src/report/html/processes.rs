//! The process tree.

use effectgate_core::report::Report;
use maud::{Markup, html};

use super::super::forest::{Forest, ended};
use super::super::words::{duration, number};
use super::{figure, tree};
use crate::diagnose::visible;

pub fn section(report: &Report) -> Markup {
    let forest = Forest::new(&report.processes.all);
    let count = forest.all.len() as u64;
    let unlisted: u64 = report.processes.all.iter().map(|process| process.unlisted).sum();
    html! {
            section id="processes" aria-labelledby="processes-title" {
                h2 id="processes-title" { "Processes" }
                p class="lead" {
    (number(count)) (if count == 1 { " process" } else { " processes" })
                    ". Alike ones beside each other are one row. "
                    @if unlisted > 0 {
                        (number(unlisted)) " more are counted at those that started them."
                    }
                }
                @if forest.roots.is_empty() {
                    p class="none" { "None were seen." }
                } @else {
                    (tree::forest(&forest, &forest.roots))
                }
            }
        }
}

impl tree::Rows for Forest<'_> {
    fn row(&self, node: usize) -> Markup {
        let process = &self.all[node];
        let (effects, violations, processes) = self.sums[node];
        let argv = self.argv(node);
        html! {
            span class="name" {
                code { (visible(&process.comm)) }
                " "
                @if self.alike[node] > 1 {
                    span class="tag" { "×" (number(self.alike[node])) }
                } @else {
                    span class="muted" { (process.pid) }
                }
                " " span class="argv" title=(visible(&process.exe)) { (visible(&argv)) }
                @if let Some(how) = ended(process.status) { " " span class="tag warn" { (how) } }
            }
            span class="figures" {
                (figure(violations, "outside"))
                (figure(effects, "effects"))
                @if self.alike[node] == 1 && !self.below[node].is_empty() {
                    (figure(processes - 1, "below"))
                } @else { span class="figure below" {} }
                span class="figure time" {
                    @if self.alike[node] == 1 { (duration(process.last.saturating_sub(process.first))) }
                }
            }
        }
    }

    fn rest(&self, nodes: &[usize]) -> Markup {
        let processes: u64 = nodes.iter().map(|node| self.sums[*node].2).sum();
        let effects = nodes.iter().map(|node| self.sums[*node].0).sum();
        let outside = nodes.iter().map(|node| self.sums[*node].1).sum();
        html! {
            span class="name" { "and " (number(processes)) " more" }
            span class="figures" { (figure(outside, "outside")) (figure(effects, "effects")) }
        }
    }
}
