//! What stands out in a job: what the observer said, the first run of each
//! program, and violations.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::input::UnixNanos;
use crate::record::{Action, GuardAction, ProcessAction};
use crate::verdict::Violation;

/// Moments listed of each kind.
const MOST: usize = 300;

/// Moments in the order in which they were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moments {
    pub listed: Vec<Moment>,
    pub unlisted: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The record's number.
    pub seq: u64,
    #[serde(serialize_with = "super::moment")]
    pub ts: UnixNanos,
    pub kind: Kind,
    /// What happened, in words.
    pub text: String,
    /// Who did it; `None` for the observer.
    pub pid: Option<u64>,
}

/// Whose moment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Said by the observer; nothing is wrong.
    Observer,
    /// Something may have gone unseen, or was stopped.
    Doubt,
    /// A program ran for the first time.
    Program,
    Violation,
}

impl Kind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Observer => "observer",
            Kind::Doubt => "doubt",
            Kind::Program => "program",
            Kind::Violation => "violation",
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    listed: Vec<Moment>,
    counts: [usize; 4],
    unlisted: u64,
    programs: HashSet<String>,
    violations: HashSet<String>,
}

impl Recorder {
    pub fn take(
        &mut self,
        seq: u64,
        ts: UnixNanos,
        action: Action,
        record: &Value,
        violations: &[Violation],
    ) {
        let pid = record["process"]["pid"].as_u64();
        let object = &record["object"];
        for violation in violations {
            let text = violation.to_string();
            if self.violations.len() < MOST && self.violations.insert(text.clone()) {
                self.add(Moment { seq, ts, kind: Kind::Violation, text, pid });
            }
        }
        match action {
            Action::Process(ProcessAction::Exec) if super::ran(record) => {
                let path = object["path"].as_str().unwrap_or_default();
                if self.programs.len() < MOST && self.programs.insert(path.to_owned()) {
                    self.add(Moment { seq, ts, kind: Kind::Program, text: path.to_owned(), pid });
                }
            }
            Action::Guard(action) if violations.is_empty() => {
                if let Some(kind) = kind(action, object) {
                    self.add(Moment { seq, ts, kind, text: said(action, object), pid });
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, moment: Moment) {
        let index = moment.kind as usize;
        // What ends the log is never left out.
        if self.counts[index] >= MOST && moment.kind != Kind::Observer {
            self.unlisted += 1;
            return;
        }
        self.counts[index] += 1;
        self.listed.push(moment);
    }

    pub fn finish(self) -> Moments {
        Moments { listed: self.listed, unlisted: self.unlisted }
    }
}

/// `None` for what a job does all the time, and what is judged elsewhere.
fn kind(action: GuardAction, object: &Value) -> Option<Kind> {
    match action {
        GuardAction::Start | GuardAction::Launch | GuardAction::Verdict => Some(Kind::Observer),
        GuardAction::Canary => {
            let missed = object["missing"].as_array().is_some_and(|list| !list.is_empty());
            Some(if missed { Kind::Doubt } else { Kind::Observer })
        }
        GuardAction::Gap
        | GuardAction::Stopped
        | GuardAction::Killed
        | GuardAction::CanaryFailed
        | GuardAction::Leftovers
        | GuardAction::IoUring
        | GuardAction::CompatSyscall
        | GuardAction::Unknown => Some(Kind::Doubt),
        GuardAction::Socket
        | GuardAction::Entered
        | GuardAction::Escaped
        | GuardAction::Reached
        | GuardAction::Repeated => None,
    }
}

fn said(action: GuardAction, object: &Value) -> String {
    let what = object["what"].as_str().unwrap_or_default().to_owned();
    let detail = match action {
        GuardAction::Stopped | GuardAction::CanaryFailed => {
            object["why"].as_str().map(str::to_owned)
        }
        GuardAction::Gap => Some(pairs(&object["lost"])),
        GuardAction::Leftovers => Some(object["killed"].to_string()),
        GuardAction::Killed => Some(format!("record {}", object["violation"])),
        GuardAction::Canary => {
            let seen = object["seen"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = object["missing"].as_array().into_iter().flatten();
            let missing: Vec<&str> = missing.filter_map(Value::as_str).collect();
            let seen = seen.collect::<Vec<_>>().join(", ");
            Some(match missing.is_empty() {
                true => format!("seen: {seen}"),
                false => format!("seen: {seen}; missed: {}", missing.join(", ")),
            })
        }
        GuardAction::Verdict => object["verdict"].as_str().map(str::to_owned),
        _ => None,
    };
    match detail.filter(|detail| !detail.is_empty()) {
        Some(detail) => format!("{what}: {detail}"),
        None => what,
    }
}

/// `file 12, net 1`
fn pairs(counts: &Value) -> String {
    let counts = counts.as_object().into_iter().flatten();
    counts.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}
