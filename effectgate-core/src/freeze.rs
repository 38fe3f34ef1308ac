//! The freeze ledger: properties on which two runners disagree, and who answers
//! for it until when. What an envelope covers cannot be frozen.

mod ledger;

use serde::Serialize;

pub use ledger::{HEADER, format, parse};

use crate::envelope;
use crate::fault::{Fault, Faults, quoted};
use crate::form::Key;
use crate::input::Class;
use crate::manifest::{self, is_bot, look_alike};
use crate::properties::{COMMAND, PropertyResult};
use crate::time;
use crate::tree::Pos;

/// A runner, how the property came out there, and the bundle of that run, by
/// the SHA-256 of its list of digests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Run {
    pub runner: String,
    pub result: PropertyResult,
    pub bundle: String,
}

/// A row of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Freeze {
    pub property: String,
    pub first: Run,
    pub second: Run,
    /// SHA-256 of the policy that both ran under.
    pub policy: String,
    pub owner: String,
    pub reason: String,
    /// `YYYY-MM-DD`, UTC.
    pub created: String,
    /// The last day on which it holds, `YYYY-MM-DD`, UTC.
    pub expires: String,
}

/// What a row is about: this property, these runners with these results, and
/// this policy. Of which bundles exactly is evidence, not a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subject<'a> {
    property: &'a str,
    policy: &'a str,
    runs: [(&'a str, PropertyResult); 2],
}

impl<'a> Subject<'a> {
    /// Which run is named first makes no difference.
    pub fn of(property: &'a str, policy: &'a str, one: &'a Run, other: &'a Run) -> Subject<'a> {
        let mut runs = [one, other].map(|run| (run.runner.as_str(), run.result));
        runs.sort_unstable();
        Subject { property, policy, runs }
    }
}

/// Whether a row holds on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Live,
    Expired,
    /// It was made on a day that has not come.
    Future,
}

impl Freeze {
    /// The day is `YYYY-MM-DD`, UTC.
    pub fn state(&self, today: &str) -> State {
        if self.created.as_str() > today {
            State::Future
        } else if self.expires.as_str() < today {
            State::Expired
        } else {
            State::Live
        }
    }

    pub fn subject(&self) -> Subject<'_> {
        Subject::of(&self.property, &self.policy, &self.first, &self.second)
    }

    /// What is wrong with it, as one row of a file: each fault in its column.
    pub(crate) fn check(&self, mut at: impl FnMut(Column) -> Pos, faults: &mut Faults) {
        let mut texts = vec![(Column::Owner, &self.owner), (Column::Reason, &self.reason)];
        texts.extend([
            (Column::Property, &self.property),
            (Column::FirstRunner, &self.first.runner),
            (Column::SecondRunner, &self.second.runner),
        ]);
        for (column, text) in texts {
            let wrong = if folded(text).trim().is_empty() {
                Some("is empty, or nothing in it is to be seen")
            } else if text.chars().any(char::is_control) {
                Some("holds a control character")
            } else {
                (text.trim() != text).then_some("has blanks around it")
            };
            if let Some(wrong) = wrong {
                let message = format!("{}: {} {wrong}", column.name(), quoted(text));
                faults.add(at(column), "ledger-value", message, "write a plain word or sentence");
            }
        }
        if is_bot(&self.owner) {
            let message = format!("owner: {} is a bot", quoted(&self.owner));
            faults.add(
                at(Column::Owner),
                "owner-bot",
                message,
                "name the person who answers for it",
            );
        }
        if let Some(covered) = covered(&self.property) {
            let message = format!("property: {} is {covered}", quoted(&self.property));
            let help = "mend what is outside the envelope, or have the envelope reviewed";
            faults.add(at(Column::Property), "freeze-scope", message, help);
        }
        for (column, digest) in [
            (Column::Policy, &self.policy),
            (Column::FirstBundle, &self.first.bundle),
            (Column::SecondBundle, &self.second.bundle),
        ] {
            let plain = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            if digest.len() != 64 || !digest.bytes().all(plain) {
                let message = format!("{}: {} is no SHA-256", column.name(), quoted(digest));
                faults.add(at(column), "ledger-value", message, "write its 64 hexadecimal digits");
            }
        }
        self.check_runs(&mut at, faults);
        self.check_days(&mut at, faults);
    }

    fn check_runs(&self, at: &mut impl FnMut(Column) -> Pos, faults: &mut Faults) {
        const RULE: &str = "ledger-runs";
        if same_runner(&self.first.runner, &self.second.runner) {
            let message = "both runs are one runner's: to run again is no second opinion";
            let help = "freeze only what two runners disagree on";
            faults.add(at(Column::SecondRunner), RULE, message, help);
        }
        if self.first.bundle == self.second.bundle {
            let message = "both runs have one bundle";
            let help = "name the bundle of each run";
            faults.add(at(Column::SecondBundle), RULE, message, help);
        }
        if self.first.result == self.second.result {
            let message = "both results are the same: there is nothing to freeze";
            let help = "take the row out, and mend what fails";
            faults.add(at(Column::SecondResult), RULE, message, help);
        }
    }

    fn check_days(&self, at: &mut impl FnMut(Column) -> Pos, faults: &mut Faults) {
        const RULE: &str = "ledger-dates";
        for (column, day) in [(Column::Created, &self.created), (Column::Expires, &self.expires)] {
            if !time::is_day(day) {
                let message = format!("{}: {} is no calendar day", column.name(), quoted(day));
                faults.add(at(column), RULE, message, "write it as YYYY-MM-DD; it is meant in UTC");
            }
        }
        if self.expires < self.created {
            let message = "it expires before it was created";
            faults.add(at(Column::Expires), RULE, message, "write a later day");
        }
    }
}

/// A freeze that may stand in a ledger.
///
/// # Errors
/// With everything that is wrong with it; `file` is the ledger's name.
pub fn admit(freeze: Freeze, file: &str, today: &str) -> Result<Freeze, Vec<Fault>> {
    let mut faults = Faults::of(file);
    freeze.check(|_| Pos::START, &mut faults);
    if freeze.state(today) != State::Live {
        let message = format!("expires: {} is past", quoted(&freeze.expires));
        let help = format!("write a day from {today} on (UTC)");
        faults.add(Pos::START, "ledger-dates", message, help);
    }
    faults.none_or(freeze)
}

/// Puts a row into a ledger, in the place of one that said the same and holds
/// no more.
///
/// # Errors
/// With the row that says the same and still holds.
pub fn insert(rows: &mut Vec<Freeze>, row: Freeze, today: &str) -> Result<(), Box<Freeze>> {
    let says = |before: &Freeze| before.subject() == row.subject();
    if let Some(live) = rows.iter().find(|row| says(row) && row.state(today) == State::Live) {
        return Err(Box::new(live.clone()));
    }
    rows.retain(|before| !says(before));
    rows.push(row);
    Ok(())
}

/// Whether two names are one runner's, as far as spelling tells.
pub(crate) fn same_runner(one: &str, other: &str) -> bool {
    look_alike(one, other) || look_alike(&folded(one), &folded(other))
}

/// What of a property's name an envelope covers: such a thing is a violation or
/// none, and no two runners can disagree on it.
fn covered(property: &str) -> Option<&'static str> {
    /// Keys that say whose policy it is, not what it allows.
    const WHO: [&str; 3] = ["version", "agent_id", "owner"];
    const WORDS: [&str; 10] = [
        "effect",
        "effects",
        "violation",
        "violations",
        "verdict",
        "envelope",
        "manifest",
        "policy",
        "coverage",
        "evidence",
    ];
    let folded = folded(property);
    let shown = folded.trim_start_matches(|c: char| !c.is_alphanumeric());
    let first = shown.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if shown.trim_end_matches(|c: char| !c.is_alphanumeric()) == COMMAND {
        return Some("the command's exit code, which no envelope and no freeze excuses");
    }
    if Class::from_name(first).is_some() {
        return Some("a class of effects, which the envelope covers");
    }
    if WORDS.contains(&first) {
        return Some("what the envelope decides on");
    }
    let is_key = |key: &Key| {
        let rest = shown.strip_prefix(key.name).filter(|_| !WHO.contains(&key.name));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let mut keys = [&envelope::FORMAT, &manifest::FORMAT].into_iter().flat_map(|of| of.root.keys);
    keys.any(is_key).then_some("a key of a policy")
}

/// A name as a reader takes it: in lower case, without what is not seen (Unicode's
/// default ignorable code points), and with full-width letters as plain ones.
fn folded(name: &str) -> String {
    let seen = name.chars().filter(|c| {
        !matches!(
            u32::from(*c),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
                | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164
                | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfff8 | 0x1d173..=0x1d17a
                | 0xe0000..=0xe0fff
        )
    });
    let plain = seen.map(|c| match u32::from(c) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(c),
        _ => c,
    });
    plain.flat_map(char::to_lowercase).collect()
}

/// The ledger's columns, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Property,
    FirstRunner,
    FirstResult,
    SecondRunner,
    SecondResult,
    Policy,
    FirstBundle,
    SecondBundle,
    Owner,
    Reason,
    Created,
    Expires,
}

impl Column {
    fn name(self) -> &'static str {
        HEADER[self as usize]
    }
}

#[cfg(test)]
mod tests;
