//! The log: its chain, its checkpoint, and the verdict that it comes to.

use std::io::ErrorKind;

use anyhow::{Context, Result};
use effectgate_core::{
    bundle::{CHECKPOINT, EVENTS, VERDICT},
    checkpoint::{Checkpoint, Note},
    packet::Problem,
    policy::Policy,
    replay::{self, ReplayError},
    statement,
};
use serde_json::Value;

use super::Checked;
use crate::{bundle::Bundle, sign::PublicKey};

/// The chain, and what the records come to: the verdict that is there.
pub fn log(
    bundle: &Bundle,
    policy: Option<Policy>,
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    let mut problem = |rule, name: &str, message: String, help| {
        problems.push(Problem::new(rule, name, message, help));
    };
    let mut log = bundle.log()?;
    let replayed = match policy {
        Some(policy) => replay::replay(&mut log, policy).map(Some),
        // Not judged again, then, but whole or not.
        None => replay::verify(&mut log).map(|_| None),
    };
    let replayed = match replayed {
        Ok(Some(replayed)) => replayed,
        Ok(None) => return Ok(()),
        Err(ReplayError::Io { source, .. }) if source.kind() != ErrorKind::InvalidData => {
            return Err(source).context("cannot read the log");
        }
        Err(error) => {
            let message = format!("{:#}", log.explain(error));
            problem("bundle-log", EVENTS, message, "take the bundle as it was written");
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

/// And of what it says of its log.
const LOG_MEMBERS: [&str; 2] = ["records", "head"];

/// Where a verdict that was written is not the one that was made. A version
/// before this one may not have known some of its members.
fn departs(written: &Value, made: &Value) -> Option<String> {
    if let Some(missing) = MEMBERS.into_iter().find(|key| written.get(key).is_none()) {
        return Some(missing.to_owned());
    }
    let (log, mut known) = (&written["log"], made.clone());
    if let Some(missing) = LOG_MEMBERS.into_iter().find(|key| log.get(key).is_none()) {
        return Some(format!("log/{missing}"));
    }
    for (members, of) in [("", written), ("/log", log)] {
        if let Some(members) = known.pointer_mut(members).and_then(Value::as_object_mut) {
            members.retain(|key, _| of.get(key).is_some());
        }
    }
    statement::difference(&known, written)
}

/// The checkpoint, where there is one, covers the whole log. That it was taken
/// into the list of digests is checked with the other files.
pub fn checkpoint(
    bundle: &Bundle,
    keys: &[PublicKey],
    checked: &mut Checked,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    let (true, Some(replayed)) = (bundle.has(CHECKPOINT), &checked.replayed) else {
        return Ok(());
    };
    let mut problem = |message: String| {
        let help = "take the bundle as it was written";
        problems.push(Problem::new("bundle-checkpoint", CHECKPOINT, message, help));
    };
    let bytes = bundle.read(CHECKPOINT)?;
    let note = match Note::parse(&String::from_utf8_lossy(&bytes)) {
        Ok(note) => note,
        Err(error) => {
            problem(format!("it is no checkpoint: {error}"));
            return Ok(());
        }
    };
    if note.checkpoint != Checkpoint::of(replayed.verdict.log.clone()) {
        problem("it is of another log, or not of the whole".to_owned());
    }
    let made = |key: &PublicKey| {
        let signature = note.signature_of(&key.bytes());
        signature.is_some_and(|signature| key.verifies(note.text.as_bytes(), signature))
    };
    if !keys.is_empty() && !keys.iter().any(made) {
        checked.said.push(
            "the log's checkpoint was signed by another key than the bundle: it proves nothing here"
                .to_owned(),
        );
    }
    Ok(())
}
