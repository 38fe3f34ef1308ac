//! Everything that can be said of a bundle without anything but itself and a
//! public key.

mod log;
mod policy;
mod signature;

use std::io::{BufRead as _, ErrorKind, Read as _};

use anyhow::{Context, Result};
use effectgate_core::{
    bundle::{self, DIGESTS, Digests, HOST, PROPERTIES},
    packet::Problem,
    pin,
    properties::Properties,
    replay::{LONGEST, Replayed},
};
use serde_json::Value;

use super::Bundle;
use crate::sign::PublicKey;

/// What there is to say beside the problems.
#[derive(Debug, Default)]
pub struct Checked {
    /// What the log comes to when it is judged again.
    pub replayed: Option<Replayed>,
    /// SHA-256 of the list of digests, by which all files are known.
    pub manifest: Option<String>,
    /// The one of the keys that made the signature.
    pub signed_by: Option<String>,
    /// What the runner says of properties outside the envelope.
    pub properties: Option<Properties>,
    /// What nobody must take for proven.
    pub said: Vec<String>,
}

/// Checks a bundle, with the public keys of those who may have made it; with
/// none, that it was signed is not asked for.
///
/// # Errors
/// When a file cannot be read.
pub fn check(bundle: &Bundle, keys: &[PublicKey], problems: &mut Vec<Problem>) -> Result<Checked> {
    let mut checked = Checked::default();
    for name in bundle::NEEDED.into_iter().filter(|name| !bundle.has(name)) {
        let help = "without it nothing can be checked: take the bundle as it was written";
        problems.push(Problem::new("bundle-missing-file", name, "it is missing", help));
    }
    if bundle::NEEDED.iter().any(|name| !bundle.has(name)) {
        return Ok(checked);
    }
    for name in bundle.log()?.left_over() {
        let message = "it stands beside the segment of its number: which of them is the log?";
        let help = "take the bundle as it was written";
        problems.push(Problem::new("bundle-extra-file", name, message, help));
    }
    let listed = digests(bundle, &mut checked, problems)?;
    signature::signature(bundle, listed.as_ref(), keys, &mut checked, problems)?;
    let opening = opening(bundle)?;
    let policy = policy::policy(bundle, &opening, &mut checked, problems)?;
    host(bundle, &opening, &mut checked, problems)?;
    properties(bundle, &mut checked, problems)?;
    log::log(bundle, policy, &mut checked, problems)?;
    log::checkpoint(bundle, keys, &mut checked, problems)?;
    Ok(checked)
}

fn digests(
    bundle: &Bundle,
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<Option<Digests>> {
    let bytes = bundle.read(DIGESTS)?;
    checked.manifest = Some(pin::digest(&bytes));
    match bundle::parse_digests(&bytes) {
        Ok(listed) => {
            problems.extend(bundle::compare_digests(&listed, &bundle.digests()?));
            Ok(Some(listed))
        }
        Err(problem) => {
            problems.push(problem);
            Ok(None)
        }
    }
}

/// The log's first record; null where that cannot be read.
fn opening(bundle: &Bundle) -> Result<Value> {
    let mut line = Vec::new();
    let log = bundle.log()?;
    match log.take(LONGEST).read_until(b'\n', &mut line) {
        Err(error) if error.kind() != ErrorKind::InvalidData => {
            return Err(error).context("cannot read the log");
        }
        // What is damaged, the log's own check says.
        _ => {}
    }
    let record: Value = serde_json::from_slice(&line).unwrap_or_default();
    Ok(record["object"].clone())
}

fn host(
    bundle: &Bundle,
    opening: &Value,
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    if !bundle.has(HOST) {
        checked.said.push("it holds no facts of the host but those of the log".into());
        return Ok(());
    }
    let facts: Value = serde_json::from_slice(&bundle.read(HOST)?).unwrap_or_default();
    for (key, fact) in [
        ("host", &facts["host"]),
        ("kernel", &facts["kernel"]["release"]),
        ("programs", &facts["programs"]),
    ] {
        if *fact != opening[key] {
            let message = format!("its {key} is {fact}, but the log says {}", opening[key]);
            let help = "take the bundle as it was written";
            problems.push(Problem::new("bundle-host", HOST, message, help));
        }
    }
    Ok(())
}

fn properties(bundle: &Bundle, checked: &mut Checked, problems: &mut Vec<Problem>) -> Result<()> {
    if bundle.has(PROPERTIES) {
        match Properties::parse(&bundle.read(PROPERTIES)?) {
            Ok(properties) => checked.properties = Some(properties),
            Err(error) => problems.push(Problem::new(
                "bundle-properties",
                PROPERTIES,
                error.to_string(),
                "take the bundle as it was written",
            )),
        }
    }
    Ok(())
}
