//! How far a trace used the manifest's limits.

use serde::Serialize;

use super::findings::Findings;
use crate::policy::{Limit, Policy};
use crate::time::SECOND;
use crate::trace::{Event, Extent};

pub const SCHEMA: &str = "effectgate.bounds/v1";

/// Each limit, and what was used of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    pub schema: &'static str,
    /// None was exceeded.
    pub holds: bool,
    pub limits: Vec<Used>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Used {
    pub limit: &'static str,
    /// In the unit of the limit, rounded up.
    pub used: u64,
    pub bound: u64,
    /// Of the manifest, from 1.
    pub line: u32,
}

impl Bounds {
    pub fn unused(policy: &Policy) -> Self {
        Bounds::of(policy, [0; 3])
    }

    /// Steps, seconds, tool calls in one step.
    pub(super) fn of(policy: &Policy, used: [u64; 3]) -> Self {
        let limits: Vec<Used> = limits(policy)
            .into_iter()
            .flatten()
            .zip(used)
            .map(|(limit, used)| Used {
                limit: limit.key.name,
                used,
                bound: limit.value,
                line: limit.key.line,
            })
            .collect();
        let holds = limits.iter().all(|used| used.used <= used.bound);
        Bounds { schema: SCHEMA, holds, limits }
    }
}

/// Counts while a trace is being read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub extent: Extent,
    /// Where a limit was first exceeded: events, steps, seconds, calls.
    exceeded: [Option<u64>; 4],
}

impl Counts {
    pub fn event(&mut self, line: u64, event: &Event<'_>, policy: &Policy) {
        self.extent.event(event);
        let extent = &self.extent;
        let Some([steps, seconds, calls]) = limits(policy) else { return };
        let used = [
            (extent.events, steps),
            (extent.steps, steps),
            (extent.nanos().div_ceil(SECOND), seconds),
            (extent.calls, calls),
        ];
        for (exceeded, (used, limit)) in self.exceeded.iter_mut().zip(used) {
            if used > limit.value {
                exceeded.get_or_insert(line);
            }
        }
    }

    /// The bounds, with a finding for each that was exceeded.
    pub fn end(&self, policy: &Policy, findings: &mut Findings) -> Bounds {
        let Some(limits) = limits(policy) else { return Bounds::unused(policy) };
        let [by_events, by_steps, by_time, by_calls] = self.exceeded;
        let extent = &self.extent;
        let seconds = extent.nanos().div_ceil(SECOND);
        // A trace that knows no steps has one in each event.
        let (steps, by_steps, calls, by_calls) = if extent.steps > 0 {
            (extent.steps, by_steps, extent.most_calls, by_calls)
        } else {
            (extent.events, by_events, extent.most_calls.min(1), None)
        };
        let used = [steps, seconds, calls];
        let rules = ["max-steps", "max-wall-clock", "max-tool-calls-per-step"];
        let what = ["steps", "seconds", "tool calls in one step"];
        for (at, exceeded) in [by_steps, by_time, by_calls].into_iter().enumerate() {
            let Some(line) = exceeded else { continue };
            let (used, limit) = (used[at], limits[at]);
            findings.add(rules[at], (Some(line), None), Some(limit.key), || {
                let message = format!("{used} {} where {} are allowed", what[at], limit.value);
                (message, "stop at the limit; a higher one is a change to review")
            });
        }
        Bounds::of(policy, used)
    }
}

fn limits(policy: &Policy) -> Option<[&Limit; 3]> {
    let limits = &policy.agent.as_ref()?.limits;
    Some([&limits.max_steps, &limits.max_wall_clock_sec, &limits.max_tool_calls_per_step])
}
