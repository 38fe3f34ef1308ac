//! The signed statement.

use anyhow::Result;
use effectgate_core::{
    bundle::{Digests, STATEMENT},
    dsse::{Envelope, PAYLOAD_TYPE},
    packet::Problem,
    statement,
};
use serde_json::Value;

use super::Checked;
use crate::{
    bundle::{Bundle, seal},
    sign::PublicKey,
};

const NOT_SIGNED: &str = "it is not signed: nothing proves who made it, and whoever changed one \
    file could have changed them all; that it holds says only that its files fit together";

const NO_KEY: &str = "it is signed, but no key was given: nothing proves who made it; that it holds \
    says only that its files fit together";

/// By how much a statement may be longer than the one that was expected, and is
/// still told where it differs, bytes.
const LEEWAY: usize = 1 << 20;

/// Who says so, and whether it is this bundle that is spoken of.
pub fn signature(
    bundle: &Bundle,
    listed: Option<&Digests>,
    keys: &[PublicKey],
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    if !bundle.has(STATEMENT) {
        if keys.is_empty() {
            checked.said.push(NOT_SIGNED.to_owned());
        } else {
            let message = "it is missing: the bundle is not signed";
            let help = "sign it where it was made";
            problems.push(Problem::new("bundle-signature", STATEMENT, message, help));
        }
        return Ok(());
    }
    let Some(envelope) = signed(&bundle.read(STATEMENT)?, keys, checked, problems) else {
        return Ok(());
    };
    let Some(listed) = listed else { return Ok(()) };
    // Where a file is broken, its own check says so.
    let Ok(made) = seal::statement(bundle, listed) else { return Ok(()) };
    let payload = statement::payload(&made);
    if payload != envelope.payload {
        // What is nothing like it is not taken apart: that costs memory.
        let like = envelope.payload.len() <= 2 * payload.len() + LEEWAY;
        let said = like.then_some(&envelope.payload[..]);
        let said: Value = said.and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
        let at = statement::difference(&made, &said).unwrap_or_default();
        let message = format!("the statement is not about these files, first at `{at}`");
        problems.push(Problem::new(
            "bundle-statement",
            STATEMENT,
            message,
            "take the bundle as it was signed",
        ));
    }
    Ok(())
}

/// What was signed, and by which of the keys; what its own bytes say.
fn signed(
    bytes: &[u8],
    keys: &[PublicKey],
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Option<Envelope> {
    let mut problem = |rule, message: String, help| {
        problems.push(Problem::new(rule, STATEMENT, message, help));
    };
    let envelope = match Envelope::parse(bytes) {
        Ok(envelope) => envelope,
        Err(error) => {
            problem("bundle-signature", error.to_string(), "take the bundle as it was signed");
            return None;
        }
    };
    // No byte of it may change, not even one that is passed over.
    if envelope.format().as_bytes() != bytes {
        let message = "it is not written as it was signed".to_owned();
        problem("bundle-statement", message, "take the bundle as it was signed");
    }
    let signed = envelope.signed();
    let made = |key: &&PublicKey| {
        let mut signatures = envelope.signatures.iter();
        signatures.any(|one| one.keyid == key.id() && key.verifies(&signed, &one.sig))
    };
    checked.signed_by = keys.iter().find(made).map(|key| key.id().to_owned());
    if keys.is_empty() {
        checked.said.push(NO_KEY.to_owned());
    } else if checked.signed_by.is_none() {
        let ids: Vec<_> = keys.iter().map(PublicKey::id).collect();
        let count = envelope.signatures.len();
        let message = format!("none of its {count} signatures is of the key {}", ids.join(" or "));
        let help = "it was changed, or somebody else signed it: ask whoever made it for their key";
        problem("bundle-signature", message, help);
    }
    if envelope.payload_type != PAYLOAD_TYPE {
        let message = format!("its payload is {:?}, not {PAYLOAD_TYPE}", envelope.payload_type);
        problem("bundle-statement", message, "take the bundle as it was signed");
    }
    Some(envelope)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer as _, SigningKey};
    use effectgate_core::dsse::Signature;

    use super::*;

    fn holds(bytes: &[u8], key: &PublicKey) -> bool {
        let mut problems = Vec::new();
        let read = signed(bytes, std::slice::from_ref(key), &mut Checked::default(), &mut problems);
        problems.is_empty() && read.is_some()
    }

    /// Of a statement as long as a small job's.
    #[test]
    fn no_byte_of_a_statement_changes_unseen() {
        let secret = SigningKey::from_bytes(&[7; 32]);
        let key = PublicKey::of(secret.verifying_key()).expect("a key");
        let payload = format!("{{\"subject\":\"{}\"}}", "0123456789abcdef".repeat(400));
        let mut envelope = Envelope {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: payload.into_bytes(),
            signatures: Vec::new(),
        };
        let sig = secret.sign(&envelope.signed()).to_bytes().to_vec();
        envelope.signatures.push(Signature { keyid: key.id().to_owned(), sig });
        let whole = envelope.format().into_bytes();
        assert!(holds(&whole, &key));
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(!holds(&changed, &key), "byte {at}");
            assert!(!holds(&whole[..at], &key), "cut at {at}");
            let more = [&whole[..at], b" ", &whole[at..]].concat();
            assert!(!holds(&more, &key), "a blank at {at}");
        }
        for more in ["x", "\n", " ", "{}"] {
            assert!(!holds(&[&whole[..], more.as_bytes()].concat(), &key), "{more:?}");
        }
    }
}
