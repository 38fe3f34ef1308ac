//! Completes a bundle, and signs it.

use std::path::Path;

use anyhow::{Context, Result};
use effectgate_core::{
    Verdict,
    bundle::{self, Digests},
    dsse::{Envelope, PAYLOAD_TYPE, Signature},
    properties::Properties,
    statement,
    verdict::Log,
};
use serde_json::Value;

use super::{Bundle, add_page};
use crate::{
    diagnose::shell_path,
    sign::Signer,
    sinks::evidence::{self, Written},
    whole::replace,
};

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
    sign(&bundle, &digests, signer)
}

/// Gives evidence that was just written its report, and signs it. What is
/// signed is what was written, not what is found in the directory by now.
///
/// # Errors
/// When it cannot be read, signed or written.
pub fn finish(mut written: Written, verdict: &Verdict, signer: Option<&Signer>) -> Result<()> {
    if let Err(error) = add_page(&mut written, verdict) {
        tracing::warn!("the evidence is whole, but has no report: {error:#}");
    }
    let Some(signer) = signer else { return Ok(()) };
    let signed = Bundle::open(&written.dir(), &mut Vec::new())
        .and_then(|bundle| sign(&bundle, written.files(), signer));
    signed.with_context(|| {
        format!(
            "{verdict}, but the evidence in {} is not signed; sign it with `effectgate bundle {} --sign-key FILE`",
            written.path().display(),
            shell_path(written.path())
        )
    })
}

fn sign(bundle: &Bundle, digests: &Digests, signer: &Signer) -> Result<()> {
    let payload = statement::payload(&statement(bundle, digests)?);
    let mut envelope =
        Envelope { payload_type: PAYLOAD_TYPE.to_owned(), payload, signatures: Vec::new() };
    let sig = signer.sign(&envelope.signed())?.to_vec();
    envelope.signatures.push(Signature { keyid: signer.public().id().to_owned(), sig });
    replace(&bundle.dir().join(bundle::STATEMENT), envelope.format().as_bytes())
}

/// Adds a checkpoint over the whole log to a bundle that holds, and to its list.
///
/// # Errors
/// When it cannot be read, signed or written.
pub fn put_checkpoint(bundle: &Bundle, signer: &Signer, log: Log) -> Result<()> {
    let note = evidence::note(signer, log)?;
    let mut digests = bundle::parse_digests(&bundle.read(bundle::DIGESTS)?)?;
    evidence::add(&bundle.dir, bundle::CHECKPOINT, note.as_bytes(), &mut digests)
}

/// Adds a runner's properties to a bundle that holds, and to its list.
///
/// # Errors
/// When it cannot be read or written.
pub fn complete(bundle: &Bundle, properties: &Properties) -> Result<()> {
    let text = serde_json::to_string_pretty(properties)? + "\n";
    let mut digests = bundle::parse_digests(&bundle.read(bundle::DIGESTS)?)?;
    evidence::add(&bundle.dir, bundle::PROPERTIES, text.as_bytes(), &mut digests)
}
