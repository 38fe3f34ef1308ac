//! The evidence packet of a run that was recorded by a trace: a folder that is
//! complete, or the job fails. What follows from manifest and trace is written
//! into it and made again by whoever verifies it.

use serde::{Deserialize, Serialize};

use crate::compare::Comparison;
use crate::fault::Fault;
use crate::pin;
use crate::policy::Policy;
use crate::time;

pub const SCHEMA: &str = "effectgate.packet/v1";
const CHECK_SCHEMA: &str = "effectgate.check/v1";

pub const MANIFEST: &str = "agent-egress.yml";
pub const PIN: &str = "agent-egress.yml.sha256";
pub const TRACE: &str = "trace.jsonl";
const CHECK: &str = "check.json";
pub const COMPARE: &str = "compare.json";
const SECRETS: &str = "secrets.json";
const BOUNDS: &str = "bounds.json";
pub const DIGESTS: &str = "MANIFEST.sha256";

/// What somebody puts in.
const GIVEN: [&str; 3] = [MANIFEST, PIN, TRACE];
/// What follows from it.
pub const DERIVED: [&str; 4] = [CHECK, COMPARE, SECRETS, BOUNDS];

/// Every file of a packet.
pub fn files() -> impl Iterator<Item = &'static str> {
    GIVEN.into_iter().chain(DERIVED).chain([DIGESTS])
}

/// Why a packet does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}: {message} ({rule}); {help}")]
pub struct Problem {
    pub rule: &'static str,
    pub file: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

impl Problem {
    pub fn new(
        rule: &'static str,
        file: &str,
        message: impl Into<String>,
        help: &'static str,
    ) -> Self {
        Problem { rule, file: file.to_owned(), message: message.into(), help }
    }
}

/// What follows from a manifest and a trace: files by name, as they are written.
pub fn documents(
    manifest: Result<&Policy, &[Fault]>,
    comparison: Option<&Comparison>,
) -> Result<Vec<(&'static str, Vec<u8>)>, serde_json::Error> {
    let mut documents = vec![(CHECK, document(&Check::of(manifest))?)];
    if let Some(comparison) = comparison {
        documents.push((COMPARE, document(comparison)?));
        documents.push((SECRETS, document(&comparison.secrets)?));
        documents.push((BOUNDS, document(&comparison.bounds)?));
    }
    Ok(documents)
}

/// What of manifest and trace does not hold.
pub fn judge(manifest: Result<&Policy, &[Fault]>, comparison: Option<&Comparison>) -> Vec<Problem> {
    const RULE: &str = "packet-does-not-hold";
    let mut problems = Vec::new();
    if let Err(faults) = manifest {
        for fault in faults {
            problems.push(Problem::new(RULE, MANIFEST, fault.to_string(), "have it corrected"));
        }
    }
    let Some(comparison) = comparison else { return problems };
    for finding in &comparison.findings {
        let message = finding.to_string();
        problems.push(Problem::new(RULE, TRACE, message, "correct the run, not the trace"));
    }
    let listed = comparison.findings.len() as u64;
    if comparison.total() > listed || comparison.holds != (listed == 0) {
        let message = format!("{comparison}");
        problems.push(Problem::new(RULE, TRACE, message, "correct the run, not the trace"));
    }
    if !comparison.secrets.holds {
        let count: u64 = comparison.secrets.counts.values().sum();
        let unlisted = comparison.secrets.names.values().filter(|listed| !**listed).count();
        let message = format!("{count} secrets stand in the trace, {unlisted} keys are unlisted");
        let help = "change those secrets, and keep them out of arguments and outputs";
        problems.push(Problem::new(RULE, TRACE, message, help));
    }
    problems
}

/// The surroundings that a comparison was made in, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Recorded {
    pub day: String,
    pub workspace: String,
}

/// Reads them from the packet's own comparison.
///
/// # Errors
/// When they are not there, or cannot be: `today` is `YYYY-MM-DD`.
pub fn recorded(bytes: &[u8], today: &str) -> Result<Recorded, Problem> {
    let bad = |message: &str| {
        Problem::new("packet-differs", COMPARE, message, "assemble the packet again")
    };
    let recorded: Recorded =
        serde_json::from_slice(bytes).map_err(|_| bad("this is no comparison"))?;
    if !time::is_day(&recorded.day) || recorded.day.as_str() > today {
        return Err(bad("it was made on a day that is not there yet"));
    }
    // Below `/` lies everything, so that nothing would be outside.
    let mut parts = recorded.workspace.split('/').filter(|part| !part.is_empty());
    let somewhere = parts.clone().next().is_some() && !parts.any(|part| matches!(part, "." | ".."));
    if !recorded.workspace.starts_with('/') || !somewhere {
        return Err(bad("it names no workspace"));
    }
    Ok(recorded)
}

/// A comparison that was made before the run it is about proves nothing: an
/// exception could have held then that had expired when it was needed.
pub fn made_before_the_run(comparison: &Comparison) -> Option<Problem> {
    let last = comparison.last.as_deref()?.get(..10)?;
    (comparison.day.as_str() < last).then(|| {
        let message = format!("it was made on {}, and the run ended on {last}", comparison.day);
        Problem::new("packet-differs", COMPARE, message, "assemble the packet after the run")
    })
}

/// The list of digests, as `sha256sum` writes it; sorted by name.
pub fn format_digests(digests: &[(&str, String)]) -> String {
    let mut sorted: Vec<_> = digests.iter().collect();
    sorted.sort();
    sorted.into_iter().map(|(name, digest)| pin::format_pin(digest, name)).collect()
}

#[derive(Serialize)]
struct Check<'a> {
    schema: &'static str,
    holds: bool,
    id: Option<&'a str>,
    sha256: Option<&'a str>,
    faults: &'a [Fault],
}

impl<'a> Check<'a> {
    fn of(manifest: Result<&'a Policy, &'a [Fault]>) -> Self {
        let policy = manifest.ok();
        Check {
            schema: CHECK_SCHEMA,
            holds: policy.is_some(),
            id: policy.map(|policy| policy.id.as_str()),
            sha256: policy.map(|policy| policy.sha256.as_str()),
            faults: manifest.err().unwrap_or_default(),
        }
    }
}

/// Pretty, so that a person can read it, and always the same.
fn document(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}
