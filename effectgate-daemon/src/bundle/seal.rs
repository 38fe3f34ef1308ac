//! Completes a bundle, and signs it.

use anyhow::{Context, Result, ensure};
use effectgate_core::{
    Verdict,
    bundle::{self, Digests},
    dsse::{Envelope, PAYLOAD_TYPE, Signature},
    pin, statement,
};
use serde_json::Value;

use super::{Bundle, page};
use crate::{diagnose::shell_path, sign::Signer, sinks::evidence::Written, whole::replace_all};

/// The statement about a bundle, from its files.
///
/// # Errors
/// When a file cannot be read, or the verdict is no JSON.
pub fn statement(bundle: &Bundle, digests: &Digests) -> Result<Value> {
    let verdict = bundle.read(bundle::VERDICT)?;
    ensure!(
        digests.get(bundle::VERDICT) == Some(&pin::digest(&verdict)),
        "{} is not the one that the list of digests names",
        bundle::VERDICT
    );
    let verdict = serde_json::from_slice(&verdict).context("the verdict is no JSON")?;
    Ok(statement::statement(digests, &verdict, bundle.log()?)?)
}

/// Adds files to a bundle that holds, and signs it; a signature that is there is
/// replaced. All of it is made before any of it is written.
///
/// # Errors
/// When it cannot be read, signed or written.
pub fn amend(bundle: &Bundle, added: &[Added], signer: Option<&Signer>) -> Result<()> {
    write(bundle, bundle::parse_digests(&bundle.read(bundle::DIGESTS)?)?, added, signer)
}

/// A file that is to be added: its name, and what is in it.
pub type Added = (&'static str, String);

/// Gives evidence that was just written its report, and signs it: by the digests
/// of what was written.
///
/// # Errors
/// When it cannot be read or signed.
pub fn finish(written: &Written, verdict: &Verdict, signer: Option<&Signer>) -> Result<()> {
    let bundle = Bundle::open(&written.dir().path(), &mut Vec::new())?;
    let unreported = |error: anyhow::Error| {
        tracing::warn!("the evidence is whole, but has no report: {error:#}");
    };
    let page = page::of_written(&bundle, written.dir().name(), verdict);
    let page: Vec<Added> = page
        .unwrap_or_else(|error| {
            unreported(error);
            None
        })
        .map(|page| (bundle::PAGE, page))
        .into_iter()
        .collect();
    let done = write(&bundle, written.files().clone(), &page, signer);
    match (done, signer) {
        (Err(error), None) => {
            unreported(error);
            Ok(())
        }
        (done, _) => done.with_context(|| {
            let name = written.dir().name();
            format!(
                "{verdict}, but the evidence in {} is not signed; sign it with `effectgate bundle {} --sign-key FILE`",
                name.display(),
                shell_path(name)
            )
        }),
    }
}

fn write(
    bundle: &Bundle,
    mut digests: Digests,
    added: &[Added],
    signer: Option<&Signer>,
) -> Result<()> {
    let add = |(name, text): &Added| ((*name).to_owned(), pin::digest(text.as_bytes()));
    digests.extend(added.iter().map(add));
    let list = bundle::format_digests(&digests);
    let signed = signer.map(|signer| sign(bundle, &digests, signer)).transpose()?;
    let mut files: Vec<(&str, &str)> =
        added.iter().map(|(name, text)| (*name, text.as_str())).collect();
    if !added.is_empty() {
        files.push((bundle::DIGESTS, &list));
    }
    files.extend(signed.as_deref().map(|signed| (bundle::STATEMENT, signed)));
    let files: Vec<_> =
        files.into_iter().map(|(name, text)| (bundle.dir().join(name), text.as_bytes())).collect();
    replace_all(&files).context("cannot write the bundle")
}

/// The statement in its envelope.
fn sign(bundle: &Bundle, digests: &Digests, signer: &Signer) -> Result<String> {
    let payload = statement::payload(&statement(bundle, digests)?);
    let mut envelope =
        Envelope { payload_type: PAYLOAD_TYPE.to_owned(), payload, signatures: Vec::new() };
    let sig = signer.sign(&envelope.signed())?.to_vec();
    envelope.signatures.push(Signature { keyid: signer.public().id().to_owned(), sig });
    Ok(envelope.format())
}
