//! How it was watched: what the verdict rests on.

use effectgate_core::{input::Class, judge::Decision, report::Report};
use maud::{Markup, html};

use super::super::words::number;
use crate::diagnose::visible;

pub fn section(report: &Report) -> Markup {
    let (verdict, facts) = (&report.verdict, &report.facts);
    let policy = &verdict.policy;
    html! {
        section id="observation" aria-labelledby="observation-title" {
            h2 id="observation-title" { "How it was watched" }
            (classes(report))
            dl class="facts" {
                dt { "Policy" }
                dd { code { (visible(&policy.id)) } ", SHA-256 " code { (policy.sha256) } }
                @if let Some(note) = &policy.note {
                    dt { "Review note" }
                    dd { (visible(&note.reviewer)) ", " (visible(&note.date)) ": " (visible(&note.reason)) }
                }
                @if let Some(workspace) = &facts.workspace {
                    dt { "Workspace" } dd { code { (visible(workspace)) } }
                }
                dt { "Roots" }
                dd { ul class="plain" {
                    @for root in &facts.roots {
                        li { code { (visible(&root.path)) } " " (root.rights.join(", ")) }
                    }
                } }
                dt { "Kernel" } dd { (visible(&facts.kernel)) }
                dt { "Backend" } dd { (verdict.backend.name()) ", coverage at least " (facts.min_coverage) }
                dt { "Cgroup" } dd { code { (visible(&facts.cgroup)) } }
                dt { "Kernel programs" } dd { "SHA-256 " code { (facts.programs) } }
                dt { "Kernel and user space" }
                dd { (disagreements(verdict.disagreements)) }
                dt { "Log" }
                dd { (number(verdict.log.records)) " records, head " code { (verdict.log.head) } }
            }
        }
    }
}

fn disagreements(count: Option<u64>) -> String {
    match count {
        None => "were not compared".to_owned(),
        Some(0) => "judged every effect alike".to_owned(),
        Some(count) => format!("judged {} effects differently", number(count)),
    }
}

/// What was asked of each class, and what was seen.
fn classes(report: &Report) -> Markup {
    let verdict = &report.verdict;
    let coverage = |class: Class| {
        let found = verdict.coverage.each().find(|(known, _)| *known == class);
        found.map_or("", |(_, coverage)| coverage.name())
    };
    let of = |class: &Class, decision: &Decision| {
        verdict
            .counts
            .get(class)
            .and_then(|counts| counts.get(decision))
            .copied()
            .unwrap_or_default()
    };
    let lost = |class: &Class| verdict.lost.get(class).copied().unwrap_or_default();
    html! {
        div class="scroll" { table {
            caption { "Records by class. Coverage says how well effects are known: as the kernel's objects, or by the arguments of system calls." }
            thead { tr {
                th scope="col" { "Class" }
                th scope="col" { "Coverage" }
                @for decision in Decision::ALL { th scope="col" class="number" { (decision.name()) } }
                th scope="col" class="number" { "repeated" }
                th scope="col" class="number" { "lost" }
            } }
            tbody {
                @for class in Class::ALL {
                    tr {
                        th scope="row" { (class.name()) }
                        td { (match coverage(*class) { "none" => "not asked", word => word }) }
                        @for decision in Decision::ALL {
                            (cell(of(class, decision)))
                        }
                        (cell(verdict.repeated.get(class).copied().unwrap_or_default()))
                        td class={ "number" (if lost(class) > 0 { " warn" } else { "" }) } { (number(lost(class))) }
                    }
                }
            }
        } }
    }
}

/// A count in a table; nothing is not to catch the eye.
fn cell(count: u64) -> Markup {
    html! { td class={ "number" (if count == 0 { " muted" } else { "" }) } { (number(count)) } }
}
