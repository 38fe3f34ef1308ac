//! What was touched: files as a tree, peers, environment keys.

use std::cmp::Reverse;

use effectgate_core::report::{Peer, Place, Report};
use maud::{Markup, html};

use super::super::files::Files;
use super::super::words::{counted, number, place, repeats};
use super::{figure, tree};
use crate::diagnose::visible;

pub fn section(report: &Report) -> Markup {
    let files = Files::new(report);
    let whole = &files.sums[0];
    html! {
        section id="touched" aria-labelledby="touched-title" {
            h2 id="touched-title" { "What was touched" }
            h3 { "Files" }
            p class="lead" {
                (counted(whole.reads, "read")) ", " (counted(whole.changes, "change")) ", "
                (counted(whole.runs, "run")) " at "
                (counted(report.places.all.len() as u64 - 1, "name")) ". "
                @if whole.violations > 0 {
                    strong class="bad" { (number(whole.violations)) " outside the policy." }
                }
                @if whole.unlisted > 0 {
                    " Names are kept up to a bound: " (counted(whole.unlisted, "effect"))
                    " on others are counted at their directories."
                }
            }
            @let repeated = repeats(&report.verdict);
            @if !repeated.is_empty() {
                p class="lead" {
                    "Not shown: what is inside the policy and had been seen before (" (repeated) ")."
                }
            }
            (tree::forest(&files, &files.tops()))
            h3 { "Hosts and sockets" }
            (peers(report))
            h3 { "Environment keys" }
            (keys(report))
        }
    }
}

impl tree::Rows for Files<'_> {
    fn row(&self, node: usize) -> Markup {
        let sums = &self.sums[node];
        html! {
            span class="name" {
                code { (visible(&self.name(node))) }
                @if let Some(root) = self.root(node) {
                    " " span class="tag" { "root: " (root.rights.join(", ")) }
                }
            }
            span class="figures" {
                (figure(sums.violations, "outside"))
                (figure(sums.changes, "changed"))
                (figure(sums.reads, "read"))
                (figure(sums.runs, "run"))
            }
        }
    }

    fn rest(&self, nodes: &[usize]) -> Markup {
        let of = |what: fn(&Place) -> u64| nodes.iter().map(|node| what(&self.sums[*node])).sum();
        html! {
            span class="name" { "and " (counted(nodes.len() as u64, "more name")) }
            span class="figures" {
                (figure(of(|sums| sums.violations), "outside"))
                (figure(of(|sums| sums.changes), "changed"))
                (figure(of(|sums| sums.reads), "read"))
                (figure(of(|sums| sums.runs), "run"))
            }
        }
    }
}

const MOST_PEERS: usize = 200;

fn peers(report: &Report) -> Markup {
    let mut peers: Vec<&Peer> = report.peers.listed.iter().collect();
    peers.sort_by_key(|peer| (Reverse(peer.violations), Reverse(peer.open)));
    let left = peers.len().saturating_sub(MOST_PEERS) as u64 + report.peers.unlisted;
    html! {
        @if peers.is_empty() {
            p class="none" { "The job spoke to nobody." }
        } @else {
            div class="scroll" { table {
                thead { tr {
                    th scope="col" { "Where" }
                    th scope="col" { "What" }
                    th scope="col" class="number" { "Times" }
                    th scope="col" { "By" }
                    th scope="col" { "Policy" }
                } }
                tbody {
                    @for peer in peers.iter().take(MOST_PEERS) {
                        tr class=[(peer.violations > 0).then_some("bad")] {
                            td { code { (visible(&place(peer))) }
                                @if let Some(name) = &peer.name { " " span class="muted" { (visible(name)) } }
                            }
                            td { (peer.op) " " (peer.protocol.as_deref().unwrap_or(&peer.family)) }
                            td class="number" { (number(peer.count)) }
                            td { @for (at, program) in peer.programs.iter().enumerate() {
                                @if at > 0 { ", " }
                                code { (visible(program)) }
                            } }
                            td {
                                @if peer.violations > 0 { strong class="bad" { "outside" } }
                                @else if peer.open > 0 { span class="warn" { "could not be told" } }
                                @else { "inside" }
                            }
                        }
                    }
                }
            } }
            @if left > 0 { p class="muted" { "and " (number(left)) " more" } }
        }
    }
}

const MOST_KEYS: usize = 500;

fn keys(report: &Report) -> Markup {
    let outside = report.keys.iter().filter(|(_, outside)| **outside);
    let inside = report.keys.iter().filter(|(_, outside)| !**outside);
    let left = report.keys.len().saturating_sub(MOST_KEYS) as u64 + report.keys_unlisted;
    html! {
        @if report.keys.is_empty() {
            p class="none" { "None were seen." }
        } @else {
            p class="lead" { "Names only: values are never recorded." }
            ul class="keys" {
                @for (name, outside) in outside.chain(inside).take(MOST_KEYS) {
                    li class=[outside.then_some("bad")] {
                        code { (visible(name)) }
                        @if *outside { " outside" }
                    }
                }
            }
            @if left > 0 { p class="muted" { "and " (number(left)) " more" } }
        }
    }
}
