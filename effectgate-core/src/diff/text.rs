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
        let (profiles, own): (Vec<_>, Vec<_>) =
            all.iter().partition(|change| change.kind == Kind::ProfileRead);
        // Before the first kind that comes after them.
        let behind = own.iter().position(|change| change.kind > Kind::ProfileRead);
        let (first, rest) = own.split_at(behind.unwrap_or(own.len()));
        for change in first {
            self.sentence(f, may, &change.act, change.line, file)?;
        }
        if let Some(first) = profiles.first() {
            let named: Vec<String> = profiles.iter().map(|change| change.what.clone()).collect();
            let act = format!("read what its profiles name: {}", some(&named));
            self.sentence(f, may, &act, first.line, file)?;
        }
        for change in rest {
            self.sentence(f, may, &change.act, change.line, file)?;
        }
        Ok(())
    }

    fn sentence(
        &self,
        f: &mut fmt::Formatter<'_>,
        may: &str,
        act: &str,
        line: Option<u32>,
        file: &str,
    ) -> fmt::Result {
        let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
        writeln!(f, "{} {may} {act} ({place}).", self.shown.id)
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
