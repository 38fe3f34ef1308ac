//! The entries of a policy's lists, as both formats write them.

use std::collections::HashMap;
use std::hash::Hash;

use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::host::{self, Host};
use crate::policy::{Entry, Key, List, Named};
use crate::tree::Pos;

/// What is wrong with an entry: rule, message, help.
pub(crate) type Bad = (&'static str, String, &'static str);

/// Reads every string of the list under this key.
pub(crate) fn read<T: Clone + Eq + Hash>(
    fields: Fields,
    key: &str,
    faults: &mut Faults,
    read: impl Fn(&str) -> Result<T, Bad>,
) -> Vec<Entry<T>> {
    let mut seen = Seen::default();
    let mut entries = Vec::new();
    for (at, text) in fields.texts(key).unwrap_or_default() {
        match read(text) {
            Err((rule, message, help)) => faults.add(at, rule, format!("{key}: {message}"), help),
            Ok(value) => {
                seen.once(&value, text, key, at, faults);
                entries.push(Entry { value, line: at.line, column: at.column });
            }
        }
    }
    entries
}

/// The entries as a table, under the key they stand in.
pub(crate) fn listed<T: Named>(
    fields: Fields,
    key: &'static str,
    entries: Vec<Entry<T>>,
) -> List<T> {
    List::new(Key { name: key, line: line(fields, key) }, entries)
}

/// The line of a key; 1 when it is left out.
pub(crate) fn line(fields: Fields, key: &str) -> u32 {
    fields.at(key).map_or(1, |at| at.line)
}

/// What was listed already.
pub(crate) struct Seen<T> {
    lines: HashMap<T, u32>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Seen { lines: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Seen<T> {
    pub fn once(&mut self, value: &T, text: &str, key: &str, at: Pos, faults: &mut Faults) {
        if let Some(line) = self.lines.get(value) {
            let message = format!("{key}: {} was already listed in line {line}", quoted(text));
            faults.add(at, "duplicate-entry", message, "remove one of the two");
        } else {
            self.lines.insert(value.clone(), at.line);
        }
    }
}

/// Whether a policy can list an environment key of this name.
pub(crate) fn is_env_name(text: &[u8]) -> bool {
    text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && text.first().is_some_and(|first| !first.is_ascii_digit())
}

pub(crate) fn env_name(text: &str) -> Result<String, Bad> {
    if !is_env_name(text.as_bytes()) {
        let message = format!("{} is no environment key", quoted(text));
        let help = "write the exact name: letters, digits, `_`, no digit first; no value, no `*`";
        return Err(("env-name", message, help));
    }
    Ok(text.to_owned())
}

pub(crate) fn host(text: &str) -> Result<Host, Bad> {
    host::parse(text).map_err(|bad| (bad.rule, bad.message, bad.help))
}

pub(crate) fn tool_name(text: &str) -> Result<String, Bad> {
    if text.is_empty() || text.trim() != text {
        let message = format!("{} is empty or has blanks at its ends", quoted(text));
        return Err(("tool-name", message, "write the tool's exact name"));
    }
    Ok(text.to_owned())
}
