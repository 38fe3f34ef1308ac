//! The daemon's record of the evidence that it dropped, verified.

use std::path::Path;

use anyhow::Context;
use effectgate_core::{dropped::Drops, replay::ReplayError};
use serde_json::json;

use super::proof::not;
use crate::{
    cli::Format,
    commands::{print, print_json},
    exit::{self, Code, Outcomes},
    log::Log,
    sign::PublicKey,
};

pub fn verify(path: &Path, log: Log, key: Option<&PublicKey>, format: Format) -> Outcomes {
    if key.is_some() {
        // A key that was given was meant to be asked.
        return not(format, "it is a record of dropped evidence, which no key signs");
    }
    let drops = match Drops::read(log) {
        Ok(drops) => drops,
        Err(error @ ReplayError::Io { .. }) => {
            return Err(error).with_context(|| path.display().to_string()).code(exit::USAGE);
        }
        Err(error) => return not(format, &error.to_string()),
    };
    let (records, head) = (drops.records(), drops.head());
    match format {
        Format::Json => print_json(&json!({ "holds": true, "dropped": records, "head": head }))?,
        Format::Text => print(&format!("head {head}\nholds: {records} jobs were dropped\n")),
    }
    Ok(exit::HOLDS)
}
