//! Completes a bundle, and signs it.

use std::path::Path;

use anyhow::{Context, Result};
use effectgate_core::{
    bundle::{self, Digests},
    dsse::{Envelope, PAYLOAD_TYPE, Signature},
    pin,
    properties::Properties,
    statement,
};
use serde_json::Value;

use super::Bundle;
use crate::{sign::Signer, sinks::evidence::replace};

/// The statement about a bundle, from its files.
///
/// # Errors
/// When a file cannot be read, or the verdict is no JSON.
pub fn statement(bundle: &Bundle, digests: &Digests) -> Result<Value> {
    let verdict = bundle.read(bundle::VERDICT)?;
    let verdict = serde_json::from_slice(&verdict).context("the verdict is no JSON")?;
    Ok(statement::statement(digests, &verdict, bundle.log()?)?)
}

/// Signs the bundle in a directory; a signature that is there is replaced. That
/// the bundle holds is for the caller to know.
///
/// # Errors
/// When it cannot be read, signed or written.
pub fn seal(dir: &Path, signer: &Signer) -> Result<()> {
    let bundle = Bundle::open(dir, &mut Vec::new())?;
    let digests = bundle::parse_digests(&bundle.read(bundle::DIGESTS)?)?;
    let payload = statement::payload(&statement(&bundle, &digests)?);
    let mut envelope =
        Envelope { payload_type: PAYLOAD_TYPE.to_owned(), payload, signatures: Vec::new() };
    let sig = signer.sign(&envelope.signed())?.to_vec();
    envelope.signatures.push(Signature { keyid: signer.public().id().to_owned(), sig });
    replace(&dir.join(bundle::STATEMENT), envelope.format().as_bytes())
}

/// Adds a runner's properties to a bundle that holds, and to its list.
///
/// # Errors
/// When it cannot be read or written.
pub fn complete(bundle: &Bundle, properties: &Properties) -> Result<()> {
    let text = serde_json::to_string_pretty(properties)? + "\n";
    let mut digests = bundle::parse_digests(&bundle.read(bundle::DIGESTS)?)?;
    digests.insert(bundle::PROPERTIES.to_owned(), pin::digest(text.as_bytes()));
    replace(&bundle.dir.join(bundle::PROPERTIES), text.as_bytes())?;
    let list = bundle::format_digests(&digests);
    replace(&bundle.dir.join(bundle::DIGESTS), list.as_bytes())
}
