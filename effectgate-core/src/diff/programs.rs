//! Programs: which may run, which shells are let through.

use super::{Change, Kind, uncovered};
use crate::policy::{Agent, Binary, Policy};

pub(super) fn grants(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    match (&old.binaries, &new.binaries) {
        // Everything ran before.
        (None, _) => return,
        (Some(_), None) => {
            let act = "run any program, since programs are not judged";
            found.push(Change::new(Kind::ProgramsUnjudged, "programs", None, act));
            return;
        }
        (Some(had), Some(list)) => {
            let covered = |binary: &Binary| {
                had.all(&binary.name)
                    .any(|old| old.value.sha256.is_none() || old.value.sha256 == binary.sha256)
            };
            for entry in uncovered(list, covered) {
                let before = had.find(&entry.value.name).map(|entry| &entry.value);
                found.push(binary(&entry.value, before, entry.line));
            }
        }
    }
    if let Some(agent) = new.agent.as_deref() {
        exceptions(old.agent.as_deref(), agent, found);
        if agent.dependency_change && !old.agent.as_ref().is_some_and(|old| old.dependency_change) {
            let act = "run its package managers: the change is declared to be about dependencies";
            let change = Change::new(Kind::DependencyChange, "dependency_change", None, act);
            found.push(change.between(Some("false".into()), Some("true".into())));
        }
    }
}

fn binary(new: &Binary, old: Option<&Binary>, line: u32) -> Change {
    let name = &new.name;
    let act = match (old, &new.sha256) {
        (None, None) => format!("run {name}"),
        (None, Some(digest)) => format!("run {name} with the digest {}", short(digest)),
        (Some(_), None) => format!("run {name} whatever its digest"),
        (Some(_), Some(digest)) => format!("run another {name}, with the digest {}", short(digest)),
    };
    let said = |binary: &Binary| binary.sha256.clone().unwrap_or_else(|| "any digest".into());
    Change::new(Kind::Binary, name, Some(line), act).between(old.map(said), Some(said(new)))
}

fn exceptions(old: Option<&Agent>, new: &Agent, found: &mut Vec<Change>) {
    for exception in &new.exceptions {
        let same = old.iter().flat_map(|old| &old.exceptions);
        let before =
            same.filter(|old| old.allows == exception.allows).map(|old| &old.expires).max();
        // Days in this form are ordered as their texts are.
        if before.is_some_and(|before| *before >= exception.expires) {
            continue;
        }
        let mut act = format!("use {} until {}", exception.allows, exception.expires);
        if before.is_none() {
            let reviewers = super::text::listed(&exception.reviewers);
            let reason = exception.reason.trim_end_matches('.');
            act.push_str(&format!(", by leave of {reviewers}, because: {reason}"));
        }
        let change = Change::new(Kind::Exception, &exception.allows, Some(exception.line), act)
            .between(before.cloned(), Some(exception.expires.clone()));
        found.push(match before {
            Some(before) => change.instead(format!("until {before}")),
            None => change,
        });
    }
}

/// The beginning of a digest; the whole one is for machines.
pub(super) fn short(digest: &str) -> String {
    let (head, rest) = digest.split_at_checked(12).unwrap_or((digest, ""));
    if rest.is_empty() { head.to_owned() } else { format!("{head}…") }
}
