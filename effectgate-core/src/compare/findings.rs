//! What does not hold, bounded: the first of each rule, and a count of all.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::fault::quoted;
use crate::policy::{Key, Policy};
use crate::redact;
use crate::rules;
use crate::trace::Flaw;

/// Findings of one rule that are listed.
const LISTED: u64 = 20;

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable identifier, for machines.
    pub rule: &'static str,
    /// Of the trace, from 1; none when the whole trace is meant.
    pub line: Option<u64>,
    /// Of the event: `cwd`, `argv[2]`.
    pub field: Option<String>,
    /// What does not hold. No secret stands in it.
    pub message: String,
    /// Why the rule is there.
    pub why: &'static str,
    /// What to do.
    pub help: String,
    /// The line of the manifest that decided; none where the trace itself is at fault.
    pub decided: Option<Cited>,
}

/// A line of the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cited {
    pub key: &'static str,
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// Findings while a trace is being read.
#[derive(Debug)]
pub(super) struct Findings {
    file: String,
    listed: Vec<Finding>,
    counts: BTreeMap<&'static str, u64>,
}

impl Findings {
    pub fn new(policy: &Policy) -> Self {
        Findings { file: policy.file.clone(), listed: Vec::new(), counts: BTreeMap::new() }
    }

    /// Adds a finding about a line and one of its fields; `said` gives what
    /// does not hold and what to do, and is asked only when it will be listed.
    pub fn add<S: Into<String>>(
        &mut self,
        rule: &'static str,
        (line, field): (Option<u64>, Option<&str>),
        decided: Option<Key>,
        said: impl FnOnce() -> (String, S),
    ) {
        debug_assert!(!rules::why(rule).is_empty(), "{rule} is not in the table of rules");
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count > LISTED {
            return;
        }
        let (message, help) = said();
        self.listed.push(Finding {
            rule,
            line,
            field: field.map(str::to_owned),
            message,
            why: rules::why(rule),
            help: help.into(),
            decided: decided.map(|key| Cited {
                key: key.name,
                file: self.file.clone(),
                line: key.line,
            }),
        });
    }

    pub fn flaw(&mut self, line: u64, flaw: Flaw) {
        let Flaw { rule, field, message, help } = flaw;
        self.add(rule, (Some(line), field.as_deref()), None, || (message, help));
    }

    pub fn into_parts(self) -> (Vec<Finding>, BTreeMap<&'static str, u64>) {
        (self.listed, self.counts)
    }
}

/// A text of the trace inside a message: without secrets, quoted, cut.
pub(super) fn shown(text: &str) -> String {
    quoted(&String::from_utf8_lossy(&redact::text(text.as_bytes())))
}

/// `line 3: cwd: "/etc" lies outside (cwd-outside)`, and what decided.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        write!(f, "{} ({})", self.message, self.rule)?;
        match &self.decided {
            Some(Cited { key, file, line }) => write!(f, ", by {key} ({file}:{line})"),
            None => Ok(()),
        }
    }
}
