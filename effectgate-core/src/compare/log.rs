//! EffectGate's own event log, judged again under the manifest.

use std::borrow::Cow;
use std::io::{self, BufRead};

use serde::Deserialize;

use super::bounds::Bounds;
use super::findings::Findings;
use super::{Against, Comparison, Form};
use crate::input::Class;
use crate::policy::Policy;
use crate::record;
use crate::replay::{ReplayError, Replayed, replay};
use crate::time;
use crate::verdict::{self, Outcome};

/// Whether a first line opens such a log.
pub fn is_log(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Opening<'a> {
        #[serde(borrow)]
        schema: Cow<'a, str>,
    }
    serde_json::from_slice::<Opening<'_>>(line).is_ok_and(|line| line.schema == record::SCHEMA)
}

pub(super) fn compare(log: impl BufRead, against: &Against<'_>) -> io::Result<Comparison> {
    let policy = against.policy;
    let mut findings = Findings::new(policy);
    let replayed = match replay(log, policy.clone()) {
        Ok(replayed) => replayed,
        Err(ReplayError::Io { source, .. }) => return Err(source),
        Err(error @ ReplayError::Flawed { line, .. }) => {
            findings.add("log-broken", (Some(line), None), None, || {
                (error.to_string(), "take the log as it was written; what is missing is missing")
            });
            let mut comparison =
                Comparison::unread(policy, against.workspace, against.today).with(findings);
            comparison.form = Form::EventLog;
            return Ok(comparison);
        }
    };
    let Replayed { verdict, .. } = &replayed;
    for violation in &verdict.violations {
        let decided = violation.rule.line.map(|line| (violation.rule.name, line));
        let key = decided.map(|(name, line)| crate::policy::Key { name, line });
        // Records are numbered from 0, lines from 1.
        let at = (Some(violation.seq + 1), Some(violation.class.name()));
        findings.add("log-violation", at, key, || {
            (violation.to_string(), "do without it, or have it reviewed and listed")
        });
    }
    if let Some(seq) = replayed.disagreement {
        findings.add("log-disagrees", (Some(seq + 1), None), None, || {
            let message = "judging the log again comes to another result than it says".to_owned();
            (message, "take the log as it was written")
        });
    }
    for reason in verdict.reasons.iter().filter(|_| verdict.violations.is_empty()) {
        findings.add("log-indeterminate", (None, None), None, || {
            (reason.clone(), "run it again where everything can be seen")
        });
    }
    let bounds = bounds(policy, verdict, &mut findings);
    let mut comparison =
        Comparison::unread(policy, against.workspace, against.today).with(findings);
    comparison.form = Form::EventLog;
    comparison.lines = verdict.log.records;
    comparison.events = verdict.log.records;
    comparison.first = Some(verdict.started.clone());
    comparison.last = Some(verdict.ended.clone());
    comparison.bounds = bounds;
    comparison.holds &= verdict.verdict == Outcome::Pass;
    Ok(comparison)
}

/// The kernel sees no steps and no tool calls, but the time that passed.
fn bounds(policy: &Policy, verdict: &verdict::Verdict, findings: &mut Findings) -> Bounds {
    let times = time::parse(&verdict.started).zip(time::parse(&verdict.ended));
    let seconds = times.map_or(0, |(start, end)| end.saturating_sub(start).div_ceil(time::SECOND));
    let stopped = verdict.violations.iter().any(|one| one.class == Class::Limit);
    let limit = policy.agent.as_ref().map(|agent| &agent.limits.max_wall_clock_sec);
    if let Some(limit) = limit.filter(|limit| !stopped && seconds > limit.value) {
        findings.add("max-wall-clock", (None, None), Some(limit.key), || {
            let message = format!("{seconds} seconds where {} are allowed", limit.value);
            (message, "stop at the limit; a higher one is a change to review")
        });
    }
    Bounds::of(policy, [0, seconds, 0])
}
