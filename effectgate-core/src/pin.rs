//! The pin: a policy's digest, written down beforehand, and the review note
//! that covers one drift from it.

use sha2::{Digest as _, Sha256};

use crate::fault::{Fault, Faults};
use crate::tree::Pos;

pub use crate::note::{ReviewNote, parse_note};

/// Why a policy must not run under a pin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinError {
    #[error(
        "the policy changed after it was pinned: its SHA-256 is {found}, the pin says {pinned}; \
         review the change, then pin it again or pass a review note from the pin's digest to this one"
    )]
    Drift { pinned: String, found: String },
    #[error(
        "the review note covers {note_old} -> {note_new}, but the drift is {pinned} -> {found}; \
         a note covers exactly one drift: have this change reviewed"
    )]
    OtherDrift { pinned: String, found: String, note_old: String, note_new: String },
    #[error("{text:?} is no SHA-256; write 64 hexadecimal digits")]
    NotADigest { text: String },
}

/// SHA-256, lower-case hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A digest as a person gives it; upper case is accepted and made lower.
///
/// # Errors
/// [`PinError::NotADigest`].
pub fn parse_digest(text: &str) -> Result<String, PinError> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(PinError::NotADigest { text: text.chars().take(80).collect() })
}

/// The digest in a file as `sha256sum` writes it. The file name after the
/// digest is not compared: pins move with their folders.
///
/// # Errors
/// A fault when the file is not exactly one digest line.
pub fn read_pin(file_name: &str, bytes: &[u8]) -> Result<String, Fault> {
    const HELP: &str = "write it with `sha256sum FILE > FILE.sha256`";
    let fault = |line, message: &str| {
        let mut faults = Faults::of(file_name);
        faults.add(Pos { line, ..Pos::START }, "pin", message, HELP);
        faults.into_vec().remove(0)
    };
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if body.is_empty() {
        return Err(fault(1, "the file holds no digest"));
    }
    if body.contains(&b'\n') {
        return Err(fault(2, "more than one line; a pin holds exactly one digest"));
    }
    // A leading backslash says that the name is escaped; the digest is the same.
    let line = body.strip_prefix(b"\\").unwrap_or(body);
    let parts = line.split_at_checked(64).and_then(|(hex, rest)| {
        let name = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"))?;
        Some((std::str::from_utf8(hex).ok()?, name))
    });
    match parts {
        Some((hex, name)) if !name.is_empty() => {
            parse_digest(hex).map_err(|_| fault(1, "the line does not begin with a SHA-256"))
        }
        _ => Err(fault(1, "the line is not `<64 hexadecimal digits>  <file name>`")),
    }
}

/// The line that `sha256sum` would write.
pub fn format_pin(sha256: &str, file_name: &str) -> String {
    let name = file_name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
    let mark = if name == file_name { "" } else { "\\" };
    format!("{mark}{sha256}  {name}\n")
}

/// Holds a policy's digest against its pin. A note that is given must cover
/// exactly the drift there is; without drift, no note is needed and none is judged.
///
/// # Errors
/// [`PinError::Drift`], [`PinError::OtherDrift`].
pub fn verify(found: &str, pinned: &str, note: Option<&ReviewNote>) -> Result<(), PinError> {
    let (found, pinned) = (found.to_ascii_lowercase(), pinned.to_ascii_lowercase());
    if found == pinned {
        return Ok(());
    }
    match note {
        None => Err(PinError::Drift { pinned, found }),
        Some(note) if note.old_digest == pinned && note.new_digest == found => Ok(()),
        Some(note) => Err(PinError::OtherDrift {
            pinned,
            found,
            note_old: note.old_digest.clone(),
            note_new: note.new_digest.clone(),
        }),
    }
}

/// A digest's bytes as text, lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn note(old: &str, new: &str) -> ReviewNote {
        ReviewNote {
            reviewer: "R".into(),
            date: "2025-01-31".into(),
            reason: "because".into(),
            old_digest: old.into(),
            new_digest: new.into(),
        }
    }

    #[test]
    fn both_marks_and_escaped_names() {
        for line in [
            format!("{A}  envelope.json\n"),
            format!("{A} *other name"),
            format!("\\{A}  a\\nb\n"),
            format!("{}  e\n", A.to_uppercase()),
        ] {
            assert_eq!(read_pin("p", line.as_bytes()).unwrap(), A, "{line}");
        }
        assert_eq!(read_pin("p", format_pin(A, "a\nb").as_bytes()).unwrap(), A);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            String::new(),
            "\n".into(),
            format!("{A}\n"),
            format!("{A}  \n"),
            format!("{A} e\n"),
            format!("{A}  e\n{A}  e\n"),
            format!("{A}  e\n\n"),
            format!("{}  e\n", &A[1..]),
            format!("g{}  e\n", &A[1..]),
            format!("SHA256 (e) = {A}\n"),
        ] {
            let fault = read_pin("e.sha256", text.as_bytes()).unwrap_err();
            assert!(fault.to_string().starts_with("e.sha256:"), "{fault}");
        }
    }

    #[test]
    fn a_note_covers_one_drift() {
        assert_eq!(verify(A, A, None), Ok(()));
        assert!(matches!(verify(B, A, None), Err(PinError::Drift { .. })));
        assert_eq!(verify(B, A, Some(&note(A, B))), Ok(()));
        assert!(matches!(verify(B, A, Some(&note(B, A))), Err(PinError::OtherDrift { .. })));
        assert!(matches!(verify(A, B, Some(&note(A, B))), Err(PinError::OtherDrift { .. })));
    }
}
