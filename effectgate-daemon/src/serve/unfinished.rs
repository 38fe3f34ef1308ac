//! What a daemon that did not end well left behind.

use std::{fs, path::Path};

use anyhow::Result;
use effectgate_core::bundle::DIGESTS;

use crate::{
    lock,
    log::{Flaw, Found},
};

/// Says of each log without an end how far it is good. Nobody knows what the
/// job did after that, so nothing is added to it: it has no verdict.
pub fn report(jobs: &Path) {
    let Ok(entries) = fs::read_dir(jobs) else { return };
    for dir in entries.flatten().map(|entry| entry.path()) {
        let hidden = dir.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden || !dir.is_dir() || dir.join(DIGESTS).exists() {
            continue;
        }
        match found(&dir) {
            Ok(None) => {}
            Ok(Some(said)) => tracing::warn!("{} has no verdict: {said}", dir.display()),
            Err(error) => tracing::warn!("{} has no verdict: {error:#}", dir.display()),
        }
    }
}

/// `None` where somebody is writing.
fn found(dir: &Path) -> Result<Option<String>> {
    let Some(_lock) = lock::of_directory(dir)? else { return Ok(None) };
    let found = Found::of(dir, None)?;
    let records = found.log.as_ref().map_or(0, |log| log.records);
    let until = found.ended.map(|ts| format!(", up to {ts}")).unwrap_or_default();
    let why = match found.flaw {
        Some(Flaw { what, segment, line, .. }) => format!("{segment}, line {line}: {what}"),
        None => "the log is whole, and what belongs beside it is missing".to_owned(),
    };
    Ok(Some(format!("{why}; good for its first {records} records{until}")))
}
