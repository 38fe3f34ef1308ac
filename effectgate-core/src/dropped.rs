//! What was removed from a store of evidence, and when: a chained log of its
//! own, so that a gap among the jobs is explained, or found to be unexplained.
//!
//! Its lines are chained as a job's records are. It has no closing record: it
//! ends where it was last written to.

use std::io::BufRead;

use serde_json::{Value, json};

use crate::canonical::canonical;
use crate::chain::Chain;
use crate::input::UnixNanos;
use crate::pin::digest;
use crate::record::number;
use crate::replay::{Lines, ReplayError};
use crate::time;

pub const SCHEMA: &str = "effectgate.dropped/v1";

/// A job whose evidence is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub job: String,
    pub why: Why,
    /// When its evidence was last written to.
    pub ended: UnixNanos,
    /// Size of its evidence.
    pub bytes: u64,
    /// SHA-256 of its `MANIFEST.sha256`, by which a copy of the evidence is
    /// known again; `None` where it never was whole.
    pub manifest: Option<String>,
    /// The verdict's word, and the head of its log; likewise.
    pub verdict: Option<String>,
    pub head: Option<String>,
}

/// Why evidence is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is older than evidence is kept.
    Age,
    /// All evidence together is larger than what is kept.
    Size,
}

/// Such a log, at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drops {
    chain: Chain,
    /// What the last record says was removed.
    last: Option<Value>,
}

impl Default for Drops {
    fn default() -> Self {
        let genesis = digest(&canonical(&json!({ "schema": SCHEMA })));
        Drops { chain: Chain::new(genesis), last: None }
    }
}

impl Drops {
    /// Reads what was written so far.
    ///
    /// # Errors
    /// [`ReplayError`], which says how far the log is good.
    pub fn read(log: impl BufRead) -> Result<Drops, ReplayError> {
        let Drops { chain, mut last } = Drops::default();
        let mut lines = Lines::of(log, chain);
        while let Some((_, mut line)) = lines.any()? {
            last = Some(line.value["dropped"].take());
        }
        Ok(Drops { chain: lines.into_chain(), last })
    }

    /// The next line, without newline; `None` where the last one says the same:
    /// the job was not removed then, and is now.
    pub fn append(&mut self, ts: UnixNanos, dropped: &Dropped) -> Option<Vec<u8>> {
        let Dropped { job, why, ended, bytes, manifest, verdict, head } = dropped;
        let what = json!({
            "job": job, "ended": time::format(*ended), "bytes": number(*bytes),
            "manifest": manifest, "verdict": verdict, "head": head,
        });
        if self.last.as_ref() == Some(&what) {
            return None;
        }
        let record = json!({
            "schema": SCHEMA, "ts": time::format(ts), "why": why.name(), "dropped": &what,
        });
        self.last = Some(what);
        let Value::Object(members) = record else { return None };
        Some(self.chain.append_object(members))
    }

    /// Count of records.
    pub fn records(&self) -> u64 {
        self.chain.next
    }

    /// The last record's hash.
    pub fn head(&self) -> &str {
        &self.chain.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str) -> Dropped {
        Dropped {
            job: name.into(),
            why: Why::Age,
            ended: 1_700_000_000_000_000_000,
            bytes: 5,
            manifest: Some("00".into()),
            verdict: Some("pass".into()),
            head: None,
        }
    }

    fn written(jobs: &[&str]) -> Vec<u8> {
        let mut drops = Drops::default();
        let lines = jobs.iter().filter_map(|name| drops.append(1, &job(name)));
        lines.flat_map(|line| [&line[..], b"\n"].concat()).collect()
    }

    #[test]
    fn it_goes_on_where_it_ended() {
        let mut drops = Drops::read(&written(&["a", "b"])[..]).expect("it holds");
        assert_eq!(drops.records(), 2);
        let third = drops.append(1, &job("c")).expect("another job");
        let whole = [&written(&["a", "b"])[..], &third, b"\n"].concat();
        assert_eq!(whole, written(&["a", "b", "c"]));
        assert_eq!(Drops::read(&whole[..]).expect("it holds"), drops);
        assert_eq!(Drops::read(&b""[..]).expect("nothing was dropped"), Drops::default());
    }

    #[test]
    fn what_was_written_down_and_not_done_is_written_down_once() {
        let mut drops = Drops::read(&written(&["a", "b"])[..]).expect("it holds");
        assert_eq!(drops.append(9, &job("b")), None);
        assert!(drops.append(9, &job("a")).is_some(), "a second job of the name");
    }

    #[test]
    fn any_change_but_a_missing_end_is_found() {
        let whole = written(&["a", "b", "c"]);
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(Drops::read(&changed[..]).is_err(), "byte {at}");
            let ends = at == 0 || whole[at - 1] == b'\n';
            assert_eq!(Drops::read(&whole[..at]).is_ok(), ends, "{at} bytes");
        }
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        for order in [&[1, 2][..], &[0, 2], &[0, 2, 1], &[0, 0, 1]] {
            let log: Vec<u8> = order.iter().flat_map(|n| lines[*n].to_vec()).collect();
            assert!(Drops::read(&log[..]).is_err(), "{order:?}");
        }
    }
}
