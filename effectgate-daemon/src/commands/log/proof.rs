//! A proof of one record, checked: from the file and the public key alone.

use std::{io::Read as _, path::Path};

use anyhow::{Context, Result, ensure};
use effectgate_core::proof::{BadProof, Proof};
use serde_json::{Value, json};

use crate::{
    cli::Format,
    commands::{print, print_json},
    diagnose::visible,
    exit::{self, Code, Outcomes},
    log::{Log, SMALL, is_signed},
    sign::PublicKey,
};

pub fn verify(path: &Path, log: Log, key: Option<&PublicKey>, format: Format) -> Outcomes {
    let name = path.display();
    let proof = match read(path, log).code(exit::USAGE)? {
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

fn read(path: &Path, log: Log) -> Result<Result<Proof, BadProof>> {
    let what = || format!("cannot read the proof {}", path.display());
    let mut bytes = Vec::new();
    log.take(SMALL + 1).read_to_end(&mut bytes).with_context(what)?;
    ensure!(bytes.len() as u64 <= SMALL, "{}: it is larger than any proof", what());
    Ok(Proof::parse(&String::from_utf8_lossy(&bytes)))
}

/// Says why something does not hold.
pub fn not(format: Format, why: &str) -> Outcomes {
    match format {
        Format::Json => print_json(&json!({ "holds": false, "why": why }))?,
        Format::Text => print(&format!("{}\ndoes not hold\n", visible(why))),
    }
    Ok(exit::DOES_NOT_HOLD)
}
