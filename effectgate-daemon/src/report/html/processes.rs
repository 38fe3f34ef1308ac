//! The process tree.

use std::cmp::Reverse;
use std::collections::HashMap;

use effectgate_core::report::{Process, Report};
use maud::{Markup, html};

use super::super::words::{command, counted, duration, number};
use super::{figure, tree};
use crate::diagnose::visible;

pub fn section(report: &Report) -> Markup {
    let forest = Forest::new(&report.processes.all);
    let unlisted: u64 = report.processes.all.iter().map(|process| process.unlisted).sum();
    html! {
        section id="processes" aria-labelledby="processes-title" {
            h2 id="processes-title" { "Processes" }
            p class="lead" {
                (counted(report.processes.all.len() as u64, "process").replace("processs", "processes"))
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

/// Rows: a process, or several alike.
struct Forest<'a> {
    all: &'a [Process],
    /// Of each process, the first of each kind that it started.
    below: Vec<Vec<usize>>,
    roots: Vec<usize>,
    /// How many are in the row of this one.
    alike: Vec<u64>,
    /// With everything below: effects, violations, processes.
    sums: Vec<(u64, u64, u64)>,
}

impl<'a> Forest<'a> {
    fn new(all: &'a [Process]) -> Forest<'a> {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
        let mut roots = Vec::new();
        let mut sums: Vec<_> =
            all.iter().map(|process| (process.effects, process.violations, 1 + process.unlisted)).collect();
        // Each stands behind the one that started it.
        for at in (0..all.len()).rev() {
            if let Some(parent) = all[at].parent.filter(|parent| *parent < at) {
                let (effects, violations, processes) = sums[at];
                sums[parent].0 += effects;
                sums[parent].1 += violations;
                sums[parent].2 += processes;
            }
        }
        for (at, process) in all.iter().enumerate() {
            match process.parent.filter(|parent| *parent < at) {
                Some(parent) => below[parent].push(at),
                None => roots.push(at),
            }
        }
        let mut alike = vec![1; all.len()];
        let childless: Vec<bool> = below.iter().map(Vec::is_empty).collect();
        for siblings in &mut below {
            let mut first: HashMap<(&str, Option<u64>), usize> = HashMap::new();
            siblings.retain(|at| {
                let process = &all[*at];
                if !childless[*at] || process.violations > 0 {
                    return true;
                }
                match first.get(&(process.exe.as_str(), process.status)) {
                    Some(same) => {
                        alike[*same] += 1;
                        sums[*same].0 += process.effects;
                        sums[*same].2 += 1 + process.unlisted;
                        false
                    }
                    None => {
                        first.insert((&process.exe, process.status), *at);
                        true
                    }
                }
            });
            siblings.sort_by_key(|at| Reverse(sums[*at].1));
        }
        Forest { all, below, roots, alike, sums }
    }
}

impl tree::Tree for Forest<'_> {
    fn children(&self, node: usize) -> Vec<usize> {
        self.below[node].clone()
    }

    fn shown(&self, node: usize) -> usize {
        node
    }

    fn is_marked(&self, node: usize) -> bool {
        self.sums[node].1 > 0
    }

    fn row(&self, node: usize) -> Markup {
        let process = &self.all[node];
        let (effects, violations, processes) = self.sums[node];
        let argv = match process.argv.is_empty() {
            true => process.exe.clone(),
            false => command(&process.argv) + if process.argv_cut { " …" } else { "" },
        };
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

/// How a process ended, where that is worth a word: as `wait(2)` gives it.
fn ended(status: Option<u64>) -> Option<String> {
    let status = status?;
    match (status & 0x7f, status >> 8 & 0xff) {
        (0, 0) => None,
        (0, code) => Some(format!("exit {code}")),
        (signal, _) => Some(format!("signal {signal}")),
    }
}
