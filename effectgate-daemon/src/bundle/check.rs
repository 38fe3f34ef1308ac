//! Everything that can be said of a bundle without anything but itself and a
//! public key.

use std::io::{BufRead as _, Read as _};

use anyhow::{Context, Result};
use effectgate_core::{
    bundle::{
        self, DIGESTS, Digests, EVENTS, HOST, NOTE, PIN, POLICY, PROPERTIES, STATEMENT, VERDICT,
    },
    dsse::{Envelope, PAYLOAD_TYPE},
    packet::Problem,
    pin,
    policy::{self, Policy},
    properties::Properties,
    replay::{self, ReplayError, Replayed},
    statement,
};
use serde_json::Value;

use super::{Bundle, seal};
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

const NOT_SIGNED: &str = "it is not signed: nothing proves who made it, and whoever changed one \
    file could have changed them all; that it holds says only that its files fit together";

const NO_KEY: &str = "it is signed, but no key was given: nothing proves who made it; that it holds \
    says only that its files fit together";

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
    let listed = digests(bundle, &mut checked, problems)?;
    signature(bundle, listed.as_ref(), keys, &mut checked, problems)?;
    let opening = opening(bundle)?;
    let policy = policy(bundle, &opening, &mut checked, problems)?;
    host(bundle, &opening, &mut checked, problems)?;
    properties(bundle, &mut checked, problems)?;
    log(bundle, policy, &mut checked, problems)?;
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

/// Who says so, and whether it is this bundle that is spoken of.
fn signature(
    bundle: &Bundle,
    listed: Option<&Digests>,
    keys: &[PublicKey],
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    let mut problem = |rule, message: String, help| {
        problems.push(Problem::new(rule, STATEMENT, message, help));
    };
    if !bundle.has(STATEMENT) {
        if keys.is_empty() {
            checked.said.push(NOT_SIGNED.to_owned());
        } else {
            let message = "it is missing: the bundle is not signed".to_owned();
            problem("bundle-signature", message, "sign it where it was made");
        }
        return Ok(());
    }
    let bytes = bundle.read(STATEMENT)?;
    let envelope = match Envelope::parse(&bytes) {
        Ok(envelope) => envelope,
        Err(error) => {
            problem("bundle-signature", error.to_string(), "take the bundle as it was signed");
            return Ok(());
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
    let Some(listed) = listed else { return Ok(()) };
    // Where a file is broken, its own check says so.
    let Ok(made) = seal::statement(bundle, listed) else { return Ok(()) };
    if statement::payload(&made) != envelope.payload {
        let said: Value = serde_json::from_slice(&envelope.payload).unwrap_or_default();
        let at = statement::difference(&made, &said).unwrap_or_default();
        let message = format!("the statement is not about these files, first at `{at}`");
        problem("bundle-statement", message, "take the bundle as it was signed");
    }
    Ok(())
}

/// The log's first record; null where that cannot be read.
fn opening(bundle: &Bundle) -> Result<Value> {
    let mut line = Vec::new();
    let log = bundle.log()?;
    log.take(64 << 20).read_until(b'\n', &mut line).context("cannot read the log")?;
    let record: Value = serde_json::from_slice(&line).unwrap_or_default();
    Ok(record["object"].clone())
}

/// The policy, its pin and its review note, against each other and the log.
/// `None` when it is not the one that the log was written under.
fn policy(
    bundle: &Bundle,
    opening: &Value,
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<Option<Policy>> {
    let mut problem = |rule, name: &str, message: String, help| {
        problems.push(Problem::new(rule, name, message, help));
    };
    let bytes = bundle.read(POLICY)?;
    let found = pin::digest(&bytes);
    let logged = opening["policy"]["sha256"].as_str().unwrap_or_default();
    if found != logged {
        let message = format!("its SHA-256 is {found}, but the log was written under {logged}");
        problem("bundle-policy", POLICY, message, "put the policy of this run in");
    }
    let note = match bundle.has(NOTE).then(|| bundle.read(NOTE)).transpose()? {
        None => None,
        Some(bytes) => match pin::parse_note(NOTE, &bytes) {
            Ok(note) => Some(note),
            Err(faults) => {
                let message = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                problem("bundle-note", NOTE, message, "take the bundle as it was written");
                None
            }
        },
    };
    if serde_json::to_value(&note).unwrap_or_default() != opening["note"] {
        let message = "it is not the review note that the log speaks of".to_owned();
        problem("bundle-note", NOTE, message, "take the bundle as it was written");
    }
    if bundle.has(PIN) {
        match pin::read_pin(PIN, &bundle.read(PIN)?) {
            Err(fault) => {
                problem("bundle-pin", PIN, fault.message, "take the bundle as it was written");
            }
            Ok(pinned) => {
                if let Err(error) = pin::verify(&found, &pinned, note.as_ref()) {
                    problem("bundle-pin", PIN, error.to_string(), "such a run is refused");
                }
            }
        }
    } else {
        checked.said.push("it holds no pin: nothing says which policy was reviewed".into());
    }
    let day = replay::day(bundle.log()?).unwrap_or_else(crate::clock::today);
    let file = opening["policy"]["file"].as_str().unwrap_or(POLICY);
    match policy::parse(file, &bytes, &day) {
        Ok(policy) => Ok(Some(policy).filter(|_| found == logged)),
        Err(faults) => {
            for fault in &faults {
                problem(
                    "bundle-policy",
                    POLICY,
                    fault.to_string(),
                    "put the policy of this run in",
                );
            }
            Ok(None)
        }
    }
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

/// The chain, and what the records come to: the verdict that is there.
fn log(
    bundle: &Bundle,
    policy: Option<Policy>,
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    let mut problem = |rule, name: &str, message: String, help| {
        problems.push(Problem::new(rule, name, message, help));
    };
    let replayed = match policy {
        Some(policy) => replay::replay(bundle.log()?, policy).map(Some),
        // Not judged again, then, but whole or not.
        None => replay::verify(bundle.log()?).map(|_| None),
    };
    let replayed = match replayed {
        Ok(Some(replayed)) => replayed,
        Ok(None) => return Ok(()),
        Err(error @ ReplayError::Io { .. }) => return Err(error).context("cannot read the log"),
        Err(error) => {
            problem("bundle-log", EVENTS, error.to_string(), "take the bundle as it was written");
            return Ok(());
        }
    };
    if let Some(seq) = replayed.disagreement {
        let message = format!("judging its record {seq} again comes to another one");
        problem("bundle-log", EVENTS, message, "another version wrote it, or somebody made it up");
    }
    let made = serde_json::to_value(&replayed.verdict).context("cannot write the verdict")?;
    match serde_json::from_slice::<Value>(&bundle.read(VERDICT)?) {
        Err(error) => {
            problem(
                "bundle-verdict",
                VERDICT,
                format!("it is no verdict: {error}"),
                "take the bundle as it was written",
            );
        }
        Ok(written) => {
            if let Some(at) = departs(&written, &made) {
                let message = format!("it is not what the log comes to, first at `{at}`");
                problem("bundle-verdict", VERDICT, message, "believe the log, not the verdict");
            }
        }
    }
    checked.replayed = Some(replayed);
    Ok(())
}

/// The members that every version of a verdict has.
const MEMBERS: [&str; 16] = [
    "schema",
    "job",
    "verdict",
    "reasons",
    "policy",
    "backend",
    "coverage",
    "command",
    "started",
    "ended",
    "counts",
    "lost",
    "violations",
    "violations_unlisted",
    "disagreements",
    "log",
];

/// Where a verdict that was written is not the one that was made. A version
/// before this one may not have known some of its members.
fn departs(written: &Value, made: &Value) -> Option<String> {
    if let Some(missing) = MEMBERS.into_iter().find(|key| written.get(key).is_none()) {
        return Some(missing.to_owned());
    }
    let mut known = made.clone();
    if let Some(members) = known.as_object_mut() {
        members.retain(|key, _| written.get(key).is_some());
    }
    statement::difference(&known, written)
}
