//! The review note: who let a changed policy through, when and why.

use serde::Serialize;

use crate::fault::{Fault, Faults, quoted};
use crate::form::{self, Fields, Format, Key, Object, Shape, Syntax};
use crate::manifest::is_bot;
use crate::pin::parse_digest;

pub(crate) const FORMAT: Format = Format {
    name: "a review note",
    syntax: Syntax::Json,
    root: Object { keys: KEYS, one_of: &[] },
};

const KEYS: &[Key] = &[
    key("reviewer", Shape::Text, "who reviewed the change", "\"A. Person\""),
    key("date", Shape::Word(DAY), "the day of the review, YYYY-MM-DD", "\"2026-01-31\""),
    key("reason", Shape::Text, "why the change is right", "\"the job builds the docs now\""),
    key("old_digest", Shape::Word(SHA256), "SHA-256 of the policy as it was pinned", DIGEST),
    key("new_digest", Shape::Word(SHA256), "SHA-256 of the policy as it is now", DIGEST),
];

pub(crate) const DAY: &str = r"^\d{4}-\d{2}-\d{2}$";
const SHA256: &str = "^[0-9a-fA-F]{64}$";
const DIGEST: &str = "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"";

const fn key(name: &'static str, shape: Shape, doc: &'static str, example: &'static str) -> Key {
    Key { name, since: 1, required: true, shape, doc, example }
}

/// A review note. It covers the drift from `old_digest` to `new_digest` and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReviewNote {
    pub reviewer: String,
    /// A calendar day, `YYYY-MM-DD`.
    pub date: String,
    pub reason: String,
    /// SHA-256, lower-case hexadecimal.
    pub old_digest: String,
    /// SHA-256, lower-case hexadecimal.
    pub new_digest: String,
}

/// Reads a review note: one JSON object with exactly the five keys.
///
/// # Errors
/// Every fault of the file, in its order.
pub fn parse_note(file_name: &str, bytes: &[u8]) -> Result<ReviewNote, Vec<Fault>> {
    let (root, mut faults) = form::open(file_name, bytes, &FORMAT)?;
    let fields = Fields::of(&root);
    let text = |key| fields.text(key).map(|(_, text)| text.to_owned()).unwrap_or_default();
    check_reviewer(fields, &mut faults);
    check_date(fields, &mut faults);
    let note = ReviewNote {
        reviewer: text("reviewer"),
        date: text("date"),
        reason: text("reason"),
        old_digest: digest(fields, "old_digest", &mut faults),
        new_digest: digest(fields, "new_digest", &mut faults),
    };
    faults.none_or(note)
}

fn check_reviewer(fields: Fields, faults: &mut Faults) {
    let Some((at, name)) = fields.text("reviewer") else { return };
    if name.split([',', ' ', ';']).any(is_bot) {
        let message = format!("reviewer: {} is a bot", quoted(name));
        faults.add(at, "owner-bot", message, "name the person who reviewed the change");
    }
}

fn check_date(fields: Fields, faults: &mut Faults) {
    let Some((at, text)) = fields.text("date") else { return };
    if !crate::time::is_day(text) {
        let message = format!("date: {} is no calendar day", quoted(text));
        faults.add(at, "date", message, "write it as YYYY-MM-DD");
    }
}

fn digest(fields: Fields, key: &str, faults: &mut Faults) -> String {
    let Some((at, text)) = fields.text(key) else { return String::new() };
    parse_digest(text).unwrap_or_else(|_| {
        let message = format!("{key}: {} is no SHA-256", quoted(text));
        faults.add(at, "digest", message, "write the 64 hexadecimal digits of the policy file");
        String::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(date: &str, old: &str) -> String {
        let new = "b".repeat(64);
        format!(
            r#"{{"reviewer": "R", "date": "{date}", "reason": "x", "old_digest": "{old}", "new_digest": "{new}"}}"#
        )
    }

    #[test]
    fn a_note() {
        let note = parse_note("n", text("2024-02-29", &"A".repeat(64)).as_bytes()).unwrap();
        assert_eq!(note.old_digest, "a".repeat(64));
        assert_eq!(note.date, "2024-02-29");
    }

    #[test]
    fn every_fault_at_once() {
        let faults = parse_note("n.json", text("2023-02-29", "aa").as_bytes()).unwrap_err();
        assert_eq!(faults.iter().map(|f| f.rule).collect::<Vec<_>>(), ["date", "digest"]);
        let faults = parse_note("n.json", b"{\"reviewer\": \" \", \"by\": 1}").unwrap_err();
        assert_eq!(faults.len(), 6, "{faults:?}");
        for bot in ["renovate[bot]", "review-bot", "Ann, docs-bot"] {
            let text = text("2024-02-29", &"a".repeat(64)).replace("\"R\"", &format!("{bot:?}"));
            assert_eq!(parse_note("n", text.as_bytes()).unwrap_err()[0].rule, "owner-bot");
        }
    }
}
