//! How far a trace used the manifest's limits.

use serde::Serialize;

use super::findings::Findings;
use crate::input::UnixNanos;
use crate::policy::{Limit, Policy};
use crate::trace::{Event, Kind};

pub const SCHEMA: &str = "effectgate.bounds/v1";
const SECOND: u64 = 1_000_000_000;

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
    pub events: u64,
    pub times: Option<(UnixNanos, UnixNanos)>,
    steps: u64,
    step: Option<u64>,
    calls: u64,
    most_calls: u64,
    /// Where a limit was first exceeded: events, steps, seconds, calls.
    exceeded: [Option<u64>; 4],
}

impl Counts {
    pub fn event(&mut self, line: u64, event: &Event<'_>, policy: &Policy) {
        self.events += 1;
        let first = self.times.map_or(event.ts, |(first, _)| first);
        self.times = Some((first, event.ts));
        // A step with a number is new when its number is: one that says that it
        // begins again does not win another round of calls.
        let new = match event.step {
            Some(_) => event.step > self.step || self.step.is_none(),
            None => event.kind == Kind::Step,
        };
        if new {
            self.step = event.step.or(self.step);
            self.steps += 1;
            self.calls = 0;
        }
        if event.kind == Kind::ToolCall {
            self.calls += 1;
            self.most_calls = self.most_calls.max(self.calls);
        }
        let Some([steps, seconds, calls]) = limits(policy) else { return };
        let used = [
            (self.events, steps),
            (self.steps, steps),
            ((event.ts - first).div_ceil(SECOND), seconds),
            (self.calls, calls),
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
        let seconds = self.times.map_or(0, |(first, last)| (last - first).div_ceil(SECOND));
        // A trace that knows no steps has one in each event.
        let (steps, by_steps, calls, by_calls) = if self.steps > 0 {
            (self.steps, by_steps, self.most_calls, by_calls)
        } else {
            (self.events, by_events, self.most_calls.min(1), None)
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
