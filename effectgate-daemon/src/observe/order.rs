//! Two rings, one order: the records of a job by their numbers.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use effectgate_core::input::JobId;

use super::decode;

/// How long a record that follows a hole waits for what is missing: a program
/// that was interrupted between taking a number and sending its record.
const PATIENCE: Duration = Duration::from_millis(50);

/// Puts records in order.
#[derive(Debug, Default)]
pub struct Order {
    jobs: HashMap<JobId, Line>,
}

/// A job's records.
#[derive(Debug, Default)]
struct Line {
    /// The number of the next one.
    next: u64,
    /// Those behind a hole, and when they came.
    waiting: BTreeMap<u64, (Instant, Vec<u8>)>,
    /// Numbers that were passed over.
    missing: u64,
}

impl Order {
    /// Has a job's records be put in order.
    pub fn begin(&mut self, job: JobId) {
        self.jobs.insert(job, Line::default());
    }

    /// Takes a record; hands on what is in order now.
    pub fn take(&mut self, bytes: &[u8], now: Instant, give: &mut impl FnMut(&[u8])) {
        // What says nothing of itself is for the decoder to refuse.
        let Some((job, seq)) = decode::number(bytes) else { return give(bytes) };
        // What comes late of a job that is forgotten is of no order any more.
        let Some(line) = self.jobs.get_mut(&job) else { return give(bytes) };
        if seq > line.next {
            line.waiting.insert(seq, (now, bytes.to_vec()));
            return;
        }
        if seq < line.next {
            // It came after all.
            line.missing = line.missing.saturating_sub(1);
            return give(bytes);
        }
        line.next += 1;
        give(bytes);
        line.run(give);
    }

    /// Hands on what has waited long enough.
    pub fn overdue(&mut self, now: Instant, give: &mut impl FnMut(&[u8])) {
        for line in self.jobs.values_mut() {
            while let Some((seq, (since, _))) = line.waiting.first_key_value() {
                if now.duration_since(*since) < PATIENCE {
                    break;
                }
                let seq = *seq;
                line.pass_over(seq);
                line.run(give);
            }
        }
    }

    /// Hands on all that is left of a job: nothing more will come.
    pub fn flush(&mut self, job: JobId, give: &mut impl FnMut(&[u8])) {
        let Some(line) = self.jobs.get_mut(&job) else { return };
        while let Some(seq) = line.waiting.keys().next().copied() {
            line.pass_over(seq);
            line.run(give);
        }
    }

    /// Records of a job that have a number and did not come.
    #[must_use]
    pub fn missing(&self, job: JobId) -> u64 {
        self.jobs.get(&job).map_or(0, |line| line.missing)
    }

    /// Forgets a job.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}

impl Line {
    fn run(&mut self, give: &mut impl FnMut(&[u8])) {
        while let Some((_, bytes)) = self.waiting.remove(&self.next) {
            self.next += 1;
            give(&bytes);
        }
    }

    fn pass_over(&mut self, seq: u64) {
        self.missing += seq.saturating_sub(self.next);
        self.next = seq;
    }
}

#[cfg(test)]
mod tests {
    use effectgate_common::wire::Header;
    use proptest::prelude::*;
    use zerocopy::{FromBytes, IntoBytes};

    use super::*;

    fn is_idle(order: &Order) -> bool {
        order.jobs.values().all(|line| line.waiting.is_empty())
    }

    fn record(job: u64, seq: u64) -> Vec<u8> {
        Header { job, seq, ..Header::default() }.as_bytes().to_vec()
    }

    fn numbers(job: u64, given: &[Vec<u8>]) -> Vec<u64> {
        let headers = given.iter().map(|bytes| Header::read_from_bytes(bytes).expect("whole"));
        headers.filter(|header| header.job == job).map(|header| header.seq).collect()
    }

    proptest! {
        /// Whatever the order in which they come, they leave in order, and what
        /// is missing is counted.
        #[test]
        fn in_order_whatever_is_lost(
            seqs in Just((0..40u64).collect::<Vec<_>>()).prop_shuffle(),
            lost in prop::collection::hash_set(0..40u64, 0..10),
        ) {
            let (mut order, mut given, now) = (Order::default(), Vec::new(), Instant::now());
            let mut give = |bytes: &[u8]| given.push(bytes.to_vec());
            order.begin(7);
            for seq in seqs.iter().filter(|seq| !lost.contains(seq)) {
                order.take(&record(7, *seq), now, &mut give);
            }
            order.overdue(now + PATIENCE, &mut give);
            prop_assert!(is_idle(&order));
            let kept: Vec<u64> = (0..40).filter(|seq| !lost.contains(seq)).collect();
            let holes = kept.last().map_or(0, |last| last + 1 - kept.len() as u64);
            prop_assert_eq!(order.missing(7), holes);
            prop_assert_eq!(numbers(7, &given), kept);
        }
    }

    #[test]
    fn who_comes_late_is_not_missing_and_holds_up_nobody_else() {
        let (mut order, mut given, now) = (Order::default(), Vec::new(), Instant::now());
        let mut give = |bytes: &[u8]| given.push(bytes.to_vec());
        order.begin(1);
        order.begin(2);
        order.take(&record(1, 1), now, &mut give);
        order.take(&record(2, 0), now, &mut give);
        order.overdue(now, &mut give);
        assert!(!is_idle(&order));
        order.flush(1, &mut give);
        assert_eq!(order.missing(1), 1);
        order.take(&record(1, 0), now, &mut give);
        assert_eq!(order.missing(1), 0);
        order.take(b"short", now, &mut give);
        assert_eq!(given.pop().as_deref(), Some(&b"short"[..]));
        assert_eq!((numbers(2, &given), numbers(1, &given)), (vec![0], vec![1, 0]));
    }

    #[test]
    fn of_a_forgotten_job_nothing_is_kept() {
        let (mut order, mut given, now) = (Order::default(), Vec::new(), Instant::now());
        let mut give = |bytes: &[u8]| given.push(bytes.to_vec());
        order.begin(1);
        order.forget(1);
        order.take(&record(1, 5), now, &mut give);
        assert_eq!((numbers(1, &given), order.jobs.len()), (vec![5], 0));
    }
}
