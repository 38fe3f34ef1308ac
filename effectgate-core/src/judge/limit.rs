//! Bounds of a run.

use crate::input::Limited;
use crate::judge::{Doubt, Finding, Judgement, Rule, Tables};

/// Judges that a job was stopped at a bound, having come to `value`.
pub fn limit(tables: &Tables, limit: Limited, value: u64) -> Judgement {
    let bound = tables.started.policy.limit(limit);
    match bound.filter(|bound| value >= bound.value) {
        Some(bound) => Judgement::violates(Rule::written(&tables.started, bound.key)),
        // Under another policy: what it would still have done is not known.
        None => Judgement {
            rule: Rule::of_every_policy("observer"),
            finding: Finding::RecordedWithDoubt(Doubt::Stopped(format!(
                "it had come to {value} of {}",
                limit.name()
            ))),
        },
    }
}
