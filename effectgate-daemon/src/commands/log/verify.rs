//! `effectgate log verify`: how far a log is what was written.

use std::{fmt::Write as _, io::BufRead as _, path::Path};

use anyhow::{Result, anyhow};
use effectgate_core::{bundle::EVENTS, pin, proof::HEADER};

use super::proof;
use crate::{
    bundle::{Bundle, is_tar},
    cli::{Format, LogVerify},
    commands::{print, print_json},
    diagnose::visible,
    exit::{self, Code, Failure, Outcomes},
    log::{Against, Flaw, Found, Log},
    sign::PublicKey,
};

pub fn verify(args: &LogVerify, format: Format) -> Outcomes {
    let key = args.key.as_deref().map(PublicKey::read).transpose().code(exit::USAGE)?;
    // By its name, whatever is in it.
    let is_log = args.path.is_dir() || args.path.file_name().is_some_and(|name| name == EVENTS);
    if is_log {
        return show(&Found::of(&args.path, key.as_ref()).code(exit::USAGE)?, format);
    }
    let mut log = Log::open(&args.path).code(exit::USAGE)?;
    let found = match kind(&mut log) {
        Kind::Log => Found::of_log(&args.path, log, key.as_ref()).code(exit::USAGE)?,
        Kind::Archive => in_archive(&args.path, key.as_ref())?,
        Kind::Proof => return proof::verify(&args.path, log, key.as_ref(), format),
        Kind::Dropped => return super::dropped::verify(&args.path, log, key.as_ref(), format),
    };
    show(&found, format)
}

fn show(found: &Found, format: Format) -> Outcomes {
    match format {
        Format::Json => print_json(found)?,
        Format::Text => print(&text(found)),
    }
    Ok(if found.holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

enum Kind {
    Log,
    Archive,
    Proof,
    Dropped,
}

/// By how it begins; what is none of the others is meant to be a log. Nothing
/// is taken of it: a pipe is read only once.
fn kind(log: &mut Log) -> Kind {
    let begin = log.fill_buf().unwrap_or_default();
    if begin.starts_with(HEADER.as_bytes()) {
        Kind::Proof
    } else if begin.starts_with(br#"{"dropped":"#) {
        Kind::Dropped
    } else if is_tar(begin) {
        Kind::Archive
    } else {
        Kind::Log
    }
}

/// The log of a bundle that was packed.
fn in_archive(path: &Path, key: Option<&PublicKey>) -> Result<Found, Failure> {
    let mut problems = Vec::new();
    let bundle = Bundle::open(path, &mut problems).code(exit::USAGE)?;
    if let Some(problem) = problems.first() {
        return Err(anyhow!("{}", visible(&problem.to_string()))).code(exit::DOES_NOT_HOLD);
    }
    Found::of(bundle.dir(), key).code(exit::USAGE)
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
