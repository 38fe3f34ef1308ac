//! How much happened when: bars of one width, which grows with the job.

use serde::Serialize;

use crate::input::{Class, UnixNanos};

/// Bars are merged in pairs beyond this.
const MOST: usize = 200;
/// Of the first bars, nanoseconds.
const NARROWEST: u64 = 1_000_000;
const CLASSES: usize = Class::ALL.len();

/// Records over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// Of the opening record.
    #[serde(serialize_with = "super::moment")]
    pub start: UnixNanos,
    /// Of the latest record.
    #[serde(serialize_with = "super::moment")]
    pub end: UnixNanos,
    /// Nanoseconds that a bar stands for.
    pub width: u64,
    /// From the start on, without holes.
    pub bars: Vec<Bar>,
}

/// The records of one stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// By class, in [`Class::ALL`]'s order.
    pub records: [u64; CLASSES],
    /// Records that speak of a violation.
    pub violations: u64,
}

impl Bar {
    /// All records.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.records.iter().sum()
    }

    fn add(&mut self, other: &Bar) {
        for (sum, count) in self.records.iter_mut().zip(other.records) {
            *sum += count;
        }
        self.violations += other.violations;
    }
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    start: Option<UnixNanos>,
    end: UnixNanos,
    width: u64,
    bars: Vec<Bar>,
}

impl Recorder {
    pub fn take(&mut self, ts: UnixNanos, class: Class, outside: bool) {
        let start = *self.start.get_or_insert(ts);
        self.width = self.width.max(NARROWEST);
        self.end = self.end.max(ts);
        // A clock that went backwards counts as no time passed.
        let since = ts.saturating_sub(start);
        while since / self.width >= MOST as u64 {
            self.widen();
        }
        let at = (since / self.width) as usize;
        if at >= self.bars.len() {
            self.bars.resize(at + 1, Bar::default());
        }
        let bar = &mut self.bars[at];
        let index = Class::ALL.iter().position(|known| *known == class).unwrap_or_default();
        bar.records[index] += 1;
        bar.violations += u64::from(outside);
    }

    fn widen(&mut self) {
        let merged = self.bars.chunks(2).map(|pair| {
            let mut sum = Bar::default();
            pair.iter().for_each(|bar| sum.add(bar));
            sum
        });
        self.bars = merged.collect();
        self.width = self.width.saturating_mul(2);
    }

    pub fn finish(self) -> Timeline {
        let start = self.start.unwrap_or_default();
        Timeline { start, end: self.end.max(start), width: self.width, bars: self.bars }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_record_is_left_out(times: Vec<u64>) {
            let mut recorder = Recorder::default();
            for (index, ts) in times.iter().enumerate() {
                recorder.take(*ts, Class::ALL[index % CLASSES], index % 3 == 0);
            }
            let timeline = recorder.finish();
            prop_assert!(timeline.bars.len() <= MOST);
            let total: u64 = timeline.bars.iter().map(Bar::total).sum();
            prop_assert_eq!(total, times.len() as u64);
            let outside: u64 = timeline.bars.iter().map(|bar| bar.violations).sum();
            prop_assert_eq!(outside, times.len().div_ceil(3) as u64);
        }
    }
}
