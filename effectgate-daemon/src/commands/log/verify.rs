//! `effectgate log verify`: how far a log is what was written.

use std::{fmt::Write as _, io::BufRead as _, path::Path};

use anyhow::Result;
use effectgate_core::{dropped, pin, proof::HEADER};
use serde_json::Value;

use super::proof;
use crate::{
    cli::{Format, LogVerify},
    commands::{print, print_json},
    diagnose::visible,
    exit::{self, Code, Outcomes},
    log::{Against, Flaw, Found, Log},
    sign::PublicKey,
};

pub fn verify(args: &LogVerify, format: Format) -> Outcomes {
    let key = args.key.as_deref().map(PublicKey::read).transpose().code(exit::USAGE)?;
    match kind(&args.path).code(exit::USAGE)? {
        Kind::Log => {}
        Kind::Proof => return proof::verify(&args.path, key.as_ref(), format),
        Kind::Dropped => return super::dropped::verify(&args.path, format),
    }
    let found = Found::of(&args.path, key.as_ref()).code(exit::USAGE)?;
    match format {
        Format::Json => print_json(&found)?,
        Format::Text => print(&text(&found)),
    }
    Ok(if found.holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

enum Kind {
    Log,
    Proof,
    Dropped,
}

/// By how it begins; what is neither of the others is meant to be a log.
fn kind(path: &Path) -> Result<Kind> {
    if path.is_dir() {
        return Ok(Kind::Log);
    }
    let mut log = Log::open(path)?;
    let begin = log.fill_buf().unwrap_or_default();
    let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let record = serde_json::from_slice::<Value>(line).unwrap_or_default();
    Ok(match record["schema"].as_str() {
        Some(dropped::SCHEMA) => Kind::Dropped,
        _ if line == HEADER.as_bytes() => Kind::Proof,
        _ => Kind::Log,
    })
}

fn text(found: &Found) -> String {
    let mut text = String::new();
    if let Some(Flaw { what, segment, line, byte, seq }) = &found.flaw {
        let _ = writeln!(
            text,
            "{}, line {line} (record {seq}, byte {byte}): {}",
            visible(segment),
            visible(what)
        );
    }
    for conflict in &found.conflicts {
        let _ = writeln!(text, "{}", visible(conflict));
    }
    for name in &found.left_over {
        let _ = writeln!(text, "left over from an interrupted compression: {}", visible(name));
    }
    if let Some(log) = &found.log {
        let _ = writeln!(text, "head {}\nroot {}", log.head, pin::hex(&log.root));
    }
    match &found.checkpoint {
        Some(Against { records, covers: true, signed: Some(true) }) => {
            let _ = writeln!(text, "checkpoint over {records} records, signed by the key");
        }
        Some(Against { records, covers: true, signed: None }) => {
            let _ = writeln!(
                text,
                "checkpoint over {records} records; give --key to check who signed it"
            );
        }
        _ => {}
    }
    let records = found.log.as_ref().map_or(0, |log| log.records);
    let job = found.job.as_deref().map(visible).unwrap_or_default();
    let _ = match (found.holds, &found.flaw, found.verdict) {
        (true, _, verdict) => {
            let count = found.segments.len();
            let s = if count == 1 { "" } else { "s" };
            let verdict = verdict.unwrap_or("none");
            writeln!(
                text,
                "holds: {records} records in {count} segment{s}, job {job}, verdict {verdict}"
            )
        }
        (false, Some(_), _) => {
            let until =
                found.ended.as_deref().map(|ts| format!(", up to {ts}")).unwrap_or_default();
            writeln!(
                text,
                "does not hold: good for its first {records} records ({} bytes){until}",
                found.bytes
            )
        }
        (false, None, _) => {
            writeln!(
                text,
                "does not hold: its {records} records are whole, but not what is beside them"
            )
        }
    };
    text
}
