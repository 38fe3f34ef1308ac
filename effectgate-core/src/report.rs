//! What a log says, put together for people and for other tools: one model,
//! from which every report is made. Records come one by one. What is kept is
//! bounded, however long the job ran; what was left out is counted.

mod facts;
mod moments;
mod peers;
mod places;
mod processes;
mod timeline;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::BufRead;

use serde::{Serialize, Serializer};
use serde_json::Value;

pub use facts::{Facts, GrantedRoot};
pub use moments::{Kind, Moment, Moments};
pub use peers::{Peer, Peers};
pub use places::{Place, Places};
pub use processes::{Process, Processes};
pub use timeline::{Bar, Timeline};

use crate::input::{Class, UnixNanos};
use crate::policy::Policy;
use crate::record::{Action, GuardAction, ProcessAction, read_number};
use crate::replay::{self, ReplayError, Replayed};
use crate::time;
use crate::verdict::{Verdict, Violation};

pub const SCHEMA: &str = "effectgate.report/v1";

/// Environment keys that are listed.
const MOST_KEYS: usize = 4096;
/// Violations whose time is kept: as many as a verdict lists.
const MOST_TIMES: usize = 1000;

/// A job, as its log tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub schema: &'static str,
    /// What judging the log again came to.
    pub verdict: Verdict,
    /// The first record that came out otherwise than it stands in the log.
    pub disagreement: Option<u64>,
    pub facts: Facts,
    /// The lines of the policy that decided about violations, by number.
    pub lines: BTreeMap<u32, String>,
    /// When the listed violations were first seen, by their record's number.
    #[serde(serialize_with = "moments_of_records")]
    pub times: BTreeMap<u64, UnixNanos>,
    pub timeline: Timeline,
    pub moments: Moments,
    pub processes: Processes,
    pub places: Places,
    pub peers: Peers,
    /// Environment keys that the job held, and whether outside the policy.
    pub keys: BTreeMap<String, bool>,
    pub keys_unlisted: u64,
}

/// Reads a log and judges it again by the policy that it was written under.
///
/// # Errors
/// [`ReplayError`] when the log cannot be read or does not hold.
pub fn of_log(log: impl BufRead, policy: Policy, text: &[u8]) -> Result<Report, ReplayError> {
    let mut builder = Builder::default();
    let replayed = replay::each(log, policy, |record, violations| {
        builder.take(record, violations);
    })?;
    Ok(builder.finish(replayed, text))
}

/// A report in the making.
#[derive(Debug, Default)]
struct Builder {
    facts: Facts,
    times: BTreeMap<u64, UnixNanos>,
    seen: HashSet<(Class, &'static str, String, Option<String>)>,
    timeline: timeline::Recorder,
    moments: moments::Recorder,
    processes: processes::Recorder,
    places: places::Recorder,
    peers: peers::Recorder,
    keys: BTreeMap<String, bool>,
    keys_unlisted: u64,
}

impl Builder {
    /// The log's next record, with the violations that it speaks of. Its
    /// reader has proven its form.
    fn take(&mut self, record: &Value, violations: &[Violation]) {
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        let class = Class::from_name(text("class"));
        let action = class.and_then(|class| Action::from_names(class, text("action")));
        let (Some(class), Some(action)) = (class, action) else { return };
        let ts = time::parse(text("ts")).unwrap_or_default();
        let seq = read_number(&record["seq"]).unwrap_or_default();
        let object = &record["object"];
        let outside = !violations.is_empty();
        if action == Action::Guard(GuardAction::Start) {
            self.facts = Facts::of(object);
            self.processes.there_before(&object["processes"]);
        }
        for violation in violations {
            self.first_seen(violation, seq, ts);
        }
        self.timeline.take(ts, class, outside);
        self.moments.take(seq, ts, action, record, violations);
        self.processes.take(ts, action, record, outside);
        match action {
            Action::File(op) => {
                self.places.take(op, object, outside);
                self.places.take_other(op, &object["other"], outside);
            }
            Action::Process(ProcessAction::Exec) if ran(record) => self.places.run(object, outside),
            Action::Net(op) => {
                self.peers.take(op, object, &record["process"], record["within"] == true, outside);
            }
            Action::Env(_) => self.held(object),
            Action::Process(_) | Action::Limit(_) | Action::Guard(_) => {}
        }
    }

    fn first_seen(&mut self, violation: &Violation, seq: u64, ts: UnixNanos) {
        if self.seen.len() >= MOST_TIMES {
            return;
        }
        let Violation { class, action, object, program, .. } = violation;
        let key = (*class, *action, object.clone(), program.clone());
        if self.seen.insert(key) {
            self.times.insert(seq, ts);
        }
    }

    fn held(&mut self, object: &Value) {
        let names =
            |key: &str| object[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in names("names") {
            if self.keys.len() < MOST_KEYS {
                self.keys.entry(name.to_owned()).or_default();
            } else if !self.keys.contains_key(name) {
                self.keys_unlisted += 1;
            }
        }
        for name in names("outside") {
            if let Some(outside) = self.keys.get_mut(name) {
                *outside = true;
            }
        }
    }

    fn finish(self, replayed: Replayed, policy: &[u8]) -> Report {
        let Replayed { verdict, disagreement, .. } = replayed;
        Report {
            schema: SCHEMA,
            lines: cited(&verdict, policy),
            verdict,
            disagreement,
            facts: self.facts,
            times: self.times,
            timeline: self.timeline.finish(),
            moments: self.moments.finish(),
            processes: self.processes.finish(),
            places: self.places.finish(),
            peers: self.peers.finish(),
            keys: self.keys,
            keys_unlisted: self.keys_unlisted,
        }
    }
}

/// A time as in records: not every JSON reader holds such numbers exactly.
/// Whether the program of an exec's record came to run.
fn ran(record: &Value) -> bool {
    record["decision"] != "denied"
}

fn moment<S: Serializer>(ts: &UnixNanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time::format(*ts))
}

fn moments_of_records<S: Serializer>(
    times: &BTreeMap<u64, UnixNanos>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(times.iter().map(|(seq, ts)| (seq, time::format(*ts))))
}

/// The lines of the policy that violations name.
fn cited(verdict: &Verdict, policy: &[u8]) -> BTreeMap<u32, String> {
    let wanted: BTreeSet<u32> =
        verdict.violations.iter().filter_map(|violation| violation.rule.line).collect();
    let numbered = (1_u32..).zip(policy.split(|byte| *byte == b'\n'));
    numbered
        .filter(|(number, _)| wanted.contains(number))
        .map(|(number, line)| (number, String::from_utf8_lossy(line).trim_end().to_owned()))
        .collect()
}
