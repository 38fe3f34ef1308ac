//! A fault in a file that a person wrote: where it is, what it is, what to do.

use serde::Serialize;

use crate::rules;
use crate::tree::Pos;

/// One fault. Parsers report every fault they find, not only the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}; {help}")]
pub struct Fault {
    /// The file's name as it was given.
    pub file: String,
    /// A stable identifier of the rule that was broken, for machines.
    pub rule: &'static str,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// How many characters of the line are meant, at least 1.
    pub width: u32,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Fault {
    /// Why the rule matters, in a sentence or two.
    pub fn why(&self) -> &'static str {
        rules::why(self.rule)
    }
}

/// So many faults of one file are told; whoever has more mends these first.
const MOST: usize = 1000;

/// Faults of one file, while it is being read.
#[derive(Debug)]
pub(crate) struct Faults {
    file: String,
    found: Vec<Fault>,
}

impl Faults {
    pub fn of(file: &str) -> Self {
        Faults { file: file.to_owned(), found: Vec::new() }
    }

    pub fn add(
        &mut self,
        at: Pos,
        rule: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.found.len() >= MOST {
            return;
        }
        debug_assert!(!rules::why(rule).is_empty(), "{rule} is not in the table of rules");
        self.found.push(Fault {
            file: self.file.clone(),
            rule,
            line: at.line,
            column: at.column,
            width: at.width,
            message: message.into(),
            help: help.into(),
        });
    }

    /// Those of a file that this one builds on.
    pub fn extend(&mut self, faults: Vec<Fault>) {
        self.found.extend(faults);
    }

    /// What was read, if nothing was wrong with it.
    pub fn none_or<T>(self, read: T) -> Result<T, Vec<Fault>> {
        if self.found.is_empty() { Ok(read) } else { Err(self.into_vec()) }
    }

    /// In the order of the file.
    pub fn into_vec(mut self) -> Vec<Fault> {
        self.found.sort_by_key(|fault| (fault.line, fault.column));
        self.found
    }
}

/// Text from a file inside a message: quoted, control characters escaped, cut.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}
