//! The daemon's record of the evidence that it dropped, verified.

use std::path::Path;

use anyhow::Context;
use effectgate_core::{dropped::Drops, replay::ReplayError};
use serde_json::json;

use crate::{
    cli::Format,
    commands::{print, print_json},
    exit::{self, Code, Outcomes},
    log::Log,
};

pub fn verify(path: &Path, format: Format) -> Outcomes {
    let read = Drops::read(Log::open(path).code(exit::USAGE)?);
    let drops = match read {
        Ok(drops) => drops,
        Err(error @ ReplayError::Io { .. }) => {
            return Err(error).with_context(|| path.display().to_string()).code(exit::USAGE);
        }
        Err(error) => {
            match format {
                Format::Json => print_json(&json!({ "holds": false, "why": error.to_string() }))?,
                Format::Text => print(&format!("{error}\ndoes not hold\n")),
            }
            return Ok(exit::DOES_NOT_HOLD);
        }
    };
    let (records, head) = (drops.records(), drops.head());
    match format {
        Format::Json => print_json(&json!({ "holds": true, "dropped": records, "head": head }))?,
        Format::Text => print(&format!("head {head}\nholds: {records} jobs were dropped\n")),
    }
    Ok(exit::HOLDS)
}
