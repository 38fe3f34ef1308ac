//! What is signed of a bundle: an in-toto Statement v1 with the predicate
//! runtime-trace v0.1, made from the bundle's files alone. Whoever verifies a
//! bundle makes it again.

mod trace;

use std::io::{self, BufRead};

use serde_json::{Value, json};

use crate::bundle::{self, Digests};
use crate::canonical::canonical;
use trace::Trace;

const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// in-toto/attestation, spec/predicates/runtime-trace.md
pub const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/runtime-trace/v0.1";

/// What kind of monitor this is, and so what its lists look like.
const MONITOR: &str = "effectgate:monitor/v1";
/// What was monitored.
const JOB: &str = "effectgate:job/v1";

/// Why no statement can be made.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("record {0} of the log is no record")]
    Record(u64),
}

/// The statement about a bundle. Its subjects are the bundle's files, the list
/// of their digests first: that is what the verdict can be checked from, and
/// all that the observer knows by content. Which outputs or which commit the
/// job was about it does not: it saw names and inodes, and says so below
/// `monitorLog`.
///
/// # Errors
/// When the log cannot be read.
pub fn statement(
    digests: &Digests,
    verdict: &Value,
    log: impl BufRead,
) -> Result<Value, StatementError> {
    let trace = Trace::of(log)?;
    let list = bundle::format_digests(digests);
    let list = (bundle::DIGESTS, crate::pin::digest(list.as_bytes()));
    let files = digests.iter().map(|(name, digest)| (name.as_str(), digest.clone()));
    let subject =
        |(name, digest): (&str, String)| json!({"name": name, "digest": {"sha256": digest}});
    let subjects: Vec<Value> = std::iter::once(list).chain(files).map(subject).collect();
    let opening = &trace.opening;
    let policy = &opening["policy"];
    Ok(json!({
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "monitor": {
                "type": MONITOR,
                "configSource": {"name": policy["file"], "digest": {"sha256": policy["sha256"]}},
                "tracePolicy": {
                    "policy": policy,
                    "backend": opening["backend"],
                    "mode": opening["mode"],
                    "coverage": opening["coverage"],
                    "min_coverage": opening["min_coverage"],
                    "programs": opening["programs"],
                },
            },
            "monitoredProcess": {
                "hostID": trace::uri("effectgate:host/", text(&opening["host"]).as_bytes()),
                "type": JOB,
                "event": verdict["job"],
                "effectgate_command": verdict["command"],
            },
            "monitorLog": {
                "process": trace.process,
                "network": trace.network,
                "fileAccess": trace.files,
                "effectgate_unlisted": trace.unlisted,
            },
            "metadata": {
                "buildStartedOn": verdict["started"],
                "buildFinishedOn": verdict["ended"],
            },
            "effectgate_verdict": {
                "verdict": verdict["verdict"],
                "reasons": verdict["reasons"],
                "counts": verdict["counts"],
                "lost": verdict["lost"],
                "log": verdict["log"],
            },
        },
    }))
}

/// The statement's bytes, of which there is one text (RFC 8785).
pub fn payload(statement: &Value) -> Vec<u8> {
    canonical(statement)
}

/// Where two statements differ first, as a path of keys.
pub fn difference(left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.filter_map(|key| {
                let null = &Value::Null;
                let (one, other) = (left.get(key), right.get(key));
                if one.is_some() != other.is_some() {
                    return Some(key.clone());
                }
                let below = difference(one.unwrap_or(null), other.unwrap_or(null))?;
                Some(join(key, &below))
            })
            .next()
        }
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).enumerate();
            let mut found = pairs.filter_map(|(n, (one, other))| {
                Some(join(&n.to_string(), &difference(one, other)?))
            });
            let longer =
                || (left.len() != right.len()).then(|| left.len().min(right.len()).to_string());
            found.next().or_else(longer)
        }
        _ => (left != right).then(String::new),
    }
}

fn join(key: &str, below: &str) -> String {
    if below.is_empty() { key.to_owned() } else { format!("{key}/{below}") }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
