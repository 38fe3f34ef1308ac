//! How long a run was, by its trace: events, steps, tool calls, time.

use super::{Event, Kind};
use crate::input::UnixNanos;

/// Counted while a trace is being read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    pub events: u64,
    pub steps: u64,
    /// Tool calls of the last step.
    pub calls: u64,
    /// Of the step that had most.
    pub most_calls: u64,
    /// Of the first event and of the last.
    pub times: Option<(UnixNanos, UnixNanos)>,
    /// The last step that had a number.
    step: Option<u64>,
}

impl Extent {
    pub fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        let first = self.times.map_or(event.ts, |(first, _)| first);
        self.times = Some((first, event.ts));
        // A step with a number is new when its number is: one that says that it
        // begins again does not win another round of calls.
        let new = match event.step {
            Some(_) => event.step > self.step,
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
    }

    /// From the first event to the last.
    pub fn nanos(&self) -> u64 {
        self.times.map_or(0, |(first, last)| last.saturating_sub(first))
    }
}
