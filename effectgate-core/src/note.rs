//! The review note: who let a changed policy through, when and why.

use serde::Serialize;

use crate::fault::{Fault, quoted};
use crate::form::Form;
use crate::pin::parse_digest;

const KEYS: [&str; 5] = ["reviewer", "date", "reason", "old_digest", "new_digest"];

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
    let mut form = Form::open(file_name, bytes, &KEYS)?;
    let reviewer = form.text("reviewer").map(|(_, text)| text);
    let date = date(&mut form);
    let reason = form.text("reason").map(|(_, text)| text);
    let old = digest(&mut form, "old_digest");
    let new = digest(&mut form, "new_digest");
    match (reviewer, date, reason, old, new) {
        (Some(reviewer), Some(date), Some(reason), Some(old_digest), Some(new_digest))
            if form.faults.is_empty() =>
        {
            Ok(ReviewNote { reviewer, date, reason, old_digest, new_digest })
        }
        _ => Err(form.faults.into_vec()),
    }
}

fn date(form: &mut Form) -> Option<String> {
    let (at, text) = form.text("date")?;
    if crate::time::is_day(&text) {
        return Some(text);
    }
    let message = format!("date: {} is no calendar day", quoted(&text));
    form.faults.add(at, "date", message, "write it as YYYY-MM-DD");
    None
}

fn digest(form: &mut Form, key: &str) -> Option<String> {
    let (at, text) = form.text(key)?;
    if let Ok(digest) = parse_digest(&text) {
        return Some(digest);
    }
    let message = format!("{key}: {} is no SHA-256", quoted(&text));
    form.faults.add(at, "digest", message, "write the 64 hexadecimal digits of the policy file");
    None
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
    }
}
