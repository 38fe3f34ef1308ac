//! `effectgate pin`

use std::fs;

use anyhow::Context;
use effectgate_core::pin;
use serde_json::json;

use super::{policy, print, print_json};
use crate::{
    cli::{Format, Pin},
    diagnose::visible,
    exit::{self, Code, Outcomes},
};

pub fn pin(args: &Pin, format: Format) -> Outcomes {
    let path = policy::pin_path(&args.file);
    let (parsed, _) = policy::read(&args.file).code(exit::USAGE)?;
    if args.verify {
        let pinned = policy::read_pin(&path).code(exit::USAGE)?;
        let note = args.review_note.as_deref().map(policy::read_note).transpose();
        let note = note.code(exit::USAGE)?;
        pin::verify(&parsed.sha256, &pinned, note.as_ref().map(|(note, _)| note))
            .code(exit::DOES_NOT_HOLD)?;
    } else {
        if let Ok(before) = policy::read_pin(&path)
            && before != parsed.sha256
        {
            tracing::info!("it was pinned before, with {before}");
        }
        let name = args.file.file_name().unwrap_or_default().to_string_lossy();
        fs::write(&path, pin::format_pin(&parsed.sha256, &name))
            .with_context(|| format!("cannot write the pin {}", path.display()))
            .code(exit::USAGE)?;
    }
    match format {
        Format::Json => print_json(&json!({
            "file": args.file.to_string_lossy(),
            "pin": path.to_string_lossy(),
            "sha256": parsed.sha256,
        }))?,
        Format::Text => {
            print(&format!("{}  {}\n", parsed.sha256, visible(&args.file.to_string_lossy())))
        }
    }
    Ok(exit::HOLDS)
}
