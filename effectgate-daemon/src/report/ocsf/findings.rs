//! What somebody has to look at.

use effectgate_core::{Outcome, Violation, report::Report, time};
use serde_json::{Value, json};

use super::super::words;
use super::{FINDING, base, millis, process};
use crate::diagnose::visible;

/// A finding for each violation, and for each reason why the verdict is open.
pub fn findings(report: &Report) -> impl Iterator<Item = Value> {
    let verdict = &report.verdict;
    let is_open = verdict.verdict != Outcome::Pass;
    let doubts =
        verdict.reasons.iter().filter(move |reason| is_open && !words::counts_violations(reason));
    let violations = verdict.violations.iter().enumerate();
    violations
        .map(|(nth, violation)| of_violation(report, nth, violation))
        .chain(doubts.enumerate().map(|(nth, reason)| of_doubt(report, nth, reason)))
}

fn of_violation(report: &Report, nth: usize, violation: &Violation) -> Value {
    let (high, rule) = (4, &violation.rule);
    let ended = time::parse(&report.verdict.ended).unwrap_or_default();
    let seen = report.times.get(&violation.seq).copied().unwrap_or(ended);
    let title = format!("{} {} outside the policy", violation.class.name(), violation.action);
    let mut finding = finding(report, high, &format!("violation-{nth}"), seen);
    finding["message"] = visible(&violation.to_string()).into();
    finding["count"] = violation.count.into();
    finding["finding_info"]["title"] = title.into();
    finding["finding_info"]["desc"] = visible(&violation.to_string()).into();
    finding["finding_info"]["types"] = json!([rule.name]);
    finding["finding_info"]["first_seen_time"] = millis(seen);
    let (denied, observed) = (2, 3);
    let (blocked, detected) = (2, 15);
    let (action, disposition) = match violation.decision.name() {
        "denied" => (denied, blocked),
        _ => (observed, detected),
    };
    finding["action_id"] = action.into();
    finding["disposition_id"] = disposition.into();
    let mut evidence = json!({ "data": {
        "class": violation.class.name(),
        "action": violation.action,
        "object": violation.object,
        "record": violation.seq,
        "decision": violation.decision.name(),
        "rule": rule,
        "line": rule.line.and_then(|line| report.lines.get(&line)),
    } });
    let actor = serde_json::to_value(&violation.process).ok();
    if let Some(process) = actor.and_then(|actor| process(report, &actor)) {
        evidence["actor"] = json!({ "process": process });
    }
    finding["evidences"] = json!([evidence]);
    finding
}

fn of_doubt(report: &Report, nth: usize, reason: &str) -> Value {
    let medium = 3;
    let ended = time::parse(&report.verdict.ended).unwrap_or_default();
    let mut finding = finding(report, medium, &format!("doubt-{nth}"), ended);
    finding["message"] = visible(reason).into();
    finding["finding_info"]["title"] = "Not everything that the job did is known".into();
    finding["finding_info"]["desc"] = visible(reason).into();
    finding["finding_info"]["types"] = json!(["observation"]);
    finding["evidences"] = json!([{ "data": { "reason": reason } }]);
    finding
}

fn finding(report: &Report, severity: u64, name: &str, ts: u64) -> Value {
    let (create, new) = (1, 1);
    let mut finding = base(report, FINDING, create);
    // The same log gives the same findings.
    let uid = format!("{}/{name}", report.verdict.log.head);
    finding["time"] = millis(ts);
    finding["severity_id"] = severity.into();
    finding["status_id"] = new.into();
    finding["is_alert"] = true.into();
    finding["metadata"]["uid"] = uid.clone().into();
    finding["finding_info"] = json!({ "uid": uid, "created_time": millis(ts) });
    finding
}
