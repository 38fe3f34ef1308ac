//! The policy, its pin and its review note.

use anyhow::Result;
use effectgate_core::{
    bundle::{NOTE, PIN, POLICY},
    packet::Problem,
    pin,
    policy::{self, Policy},
    replay,
};
use serde_json::Value;

use super::Checked;
use crate::bundle::Bundle;

/// The policy, its pin and its review note, against each other and the log.
/// `None` when it is not the one that the log was written under.
pub fn policy(
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
