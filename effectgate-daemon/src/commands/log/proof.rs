//! A proof of one record, checked: from the file and the public key alone.

use std::path::Path;

use anyhow::{Context, Result};
use effectgate_core::proof::{BadProof, Proof};
use serde_json::{Value, json};

use crate::{
    cli::Format,
    commands::{print, print_json},
    diagnose::visible,
    exit::{self, Code, Outcomes},
    log::{is_signed, small},
    sign::PublicKey,
};

pub fn verify(path: &Path, key: Option<&PublicKey>, format: Format) -> Outcomes {
    let name = path.display();
    let proof = match read(path).code(exit::USAGE)? {
        Ok(proof) => proof,
        Err(why) => return not(format, &format!("{name} is no proof: {why}")),
    };
    if let Err(why) = proof.check() {
        return not(format, &format!("{name} proves nothing: {why}"));
    }
    let tree = &proof.note.checkpoint;
    let by = match key.map(|key| is_signed(&proof.note, key)) {
        Some(false) => return not(format, "the checkpoint is not signed by the key"),
        Some(true) => "signed by the key",
        // Anybody could have written it; so much has to be said.
        None => "give --key to check who signed it",
    };
    let record = String::from_utf8_lossy(&proof.record);
    match format {
        Format::Json => {
            let record: Value = serde_json::from_str(&record).code(exit::OBSERVER)?;
            print_json(&json!({
                "holds": true, "seq": proof.index, "record": record, "origin": tree.origin,
                "records": tree.size, "signed": key.map(|_| true),
            }))?;
        }
        Format::Text => print(&format!(
            "{}\nholds: record {} of {} in {}; the checkpoint: {by}\n",
            visible(&record),
            proof.index,
            tree.size,
            visible(&tree.origin)
        )),
    }
    Ok(exit::HOLDS)
}

fn read(path: &Path) -> Result<Result<Proof, BadProof>> {
    let bytes = small(path)?.with_context(|| format!("{} is gone", path.display()))?;
    Ok(Proof::parse(&String::from_utf8_lossy(&bytes)))
}

fn not(format: Format, why: &str) -> Outcomes {
    match format {
        Format::Json => print_json(&json!({ "holds": false, "why": why }))?,
        Format::Text => print(&format!("{}\ndoes not hold\n", visible(why))),
    }
    Ok(exit::DOES_NOT_HOLD)
}
