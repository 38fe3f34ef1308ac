//! The delta in sentences that a reviewer can approve.

use std::fmt;

use super::{Change, Delta, Kind};

/// Roots of profiles that are named; more would hide the rest.
const NAMED: usize = 3;

impl fmt::Display for Delta {
    /// One sentence a line: what is new, what is gone, what else is to be
    /// known; the last line says what it comes to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.shown;
        self.write(f, &self.more, "may newly", &shown.new_file)?;
        self.write(f, &self.less, "may no longer", &shown.old_file)?;
        for sentence in &self.said {
            writeln!(f, "{sentence}")?;
        }
        let (more, less) = (self.more.len(), self.less.len());
        match (more, less) {
            (0, 0) => write!(f, "delta: nothing more and nothing less is permitted"),
            (0, less) => write!(f, "delta: nothing more is permitted ({less} less)"),
            (more, less) => write!(f, "delta: {more} more, {less} less"),
        }
    }
}

impl Delta {
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        all: &[Change],
        may: &str,
        file: &str,
    ) -> fmt::Result {
        let id = &self.shown.id;
        for alike in all.chunk_by(alike) {
            let Some(change) = alike.first() else { continue };
            let place = match change.line {
                Some(line) => format!("{file}:{line}"),
                None => file.to_owned(),
            };
            match (change.kind, &change.old) {
                (Kind::Service, Some(old)) => {
                    writeln!(
                        f,
                        "{id} is a new service: before, its agent_id was {old} ({place})."
                    )?;
                }
                _ => writeln!(f, "{id} {may} {} ({place}).", act(change, alike))?,
            }
        }
        Ok(())
    }
}

/// Whether two changes that follow each other go into one sentence.
fn alike(one: &Change, next: &Change) -> bool {
    let same = (one.kind, one.line, &one.new) == (next.kind, next.line, &next.new);
    same && match one.kind {
        Kind::ProfileRead | Kind::Env => true,
        Kind::Binary => one.old.is_none() && next.old.is_none(),
        _ => false,
    }
}

fn act(first: &Change, alike: &[Change]) -> String {
    let names: Vec<String> = alike.iter().map(|change| change.what.clone()).collect();
    match (first.kind, &first.new) {
        (Kind::ProfileRead, Some(profile)) => {
            format!("read what the profile {profile} names: {}", some(&names))
        }
        (Kind::Binary, _) if names.len() > 1 => format!("run {}", listed(&names)),
        (Kind::Env, _) if names.len() > 1 => {
            format!("hold the environment keys {}", listed(&names))
        }
        _ => first.act.clone(),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// The first few, and how many more.
fn some(names: &[String]) -> String {
    match names.len().saturating_sub(NAMED) {
        0 | 1 => listed(names),
        more => format!("{} and {more} more places", names[..NAMED].join(", ")),
    }
}
