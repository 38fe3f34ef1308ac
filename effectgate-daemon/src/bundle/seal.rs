//! Signs a bundle.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::{Context, Result};
use effectgate_core::{
    bundle::{self, Digests},
    dsse::{Envelope, PAYLOAD_TYPE, Signature},
    statement,
};
use serde_json::Value;

use super::Bundle;
use crate::sign::Signer;

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
    let what = || format!("cannot write {}", dir.join(bundle::STATEMENT).display());
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(dir)
        .with_context(what)?;
    file.write_all(envelope.format().as_bytes()).with_context(what)?;
    file.as_file().sync_all().with_context(what)?;
    file.persist(dir.join(bundle::STATEMENT)).with_context(what)?;
    Ok(())
}
