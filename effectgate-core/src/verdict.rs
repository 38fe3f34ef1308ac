//! The verdict `effectgate.verdict/v1`.

mod tally;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

pub(crate) use tally::Tally;

use crate::input::{Backend, Class, Coverage, Coverages};
use crate::judge::{Decision, Rule};
use crate::merkle::Hash;
use crate::pin::ReviewNote;
use crate::policy::Kind;
use crate::process::Process;

pub const SCHEMA: &str = "effectgate.verdict/v1";

/// What came out of a job. `fail` when there is a violation; `indeterminate`
/// when there is none but effects may have gone unseen; `pass` otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub schema: &'static str,
    pub job: String,
    pub verdict: Outcome,
    /// Why it is not `pass`; empty when it is.
    pub reasons: Vec<String>,
    pub policy: PolicyRef,
    pub backend: Backend,
    /// What was asked: about a class with coverage `none`, nothing.
    pub coverage: Coverages,
    pub command: Command,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC.
    pub ended: String,
    /// Records by class and decision, the first and the last included.
    pub counts: BTreeMap<Class, BTreeMap<Decision, u64>>,
    /// Effects inside the policy that were seen before, and are in no record,
    /// by class.
    pub repeated: BTreeMap<Class, u64>,
    /// Records known to be lost, by class.
    pub lost: BTreeMap<Class, u64>,
    /// Distinct violations in the order of their first appearance.
    pub violations: Vec<Violation>,
    /// Violations beyond those listed, each time they happened.
    pub violations_unlisted: u64,
    /// The same by class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unlisted_by_class: BTreeMap<Class, u64>,
    /// Effects that the kernel judged otherwise than user space; null when the
    /// two were not compared.
    pub disagreements: Option<u64>,
    pub log: Log,
}

/// Which of the three it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Pass,
    Fail,
    Indeterminate,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyRef {
    pub kind: Kind,
    pub id: String,
    pub sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<ReviewNote>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Redacted and escaped, as in the log.
    pub argv: Vec<String>,
    /// `{"code": n}` or `{"signal": n}`; null when it is not known.
    pub exit: Option<crate::input::Exit>,
}

/// The log that the verdict rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Log {
    /// Its name in checkpoints: [`crate::chain::ORIGIN`] and its first record's
    /// hash, which no other log has.
    pub origin: String,
    pub records: u64,
    /// The closing record's hash.
    pub head: String,
    /// The root of the Merkle tree over the records (RFC 9162).
    #[serde(serialize_with = "as_hex")]
    pub root: Hash,
}

fn as_hex<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&crate::pin::hex(hash))
}

/// An effect outside the policy. One entry stands for all that differ in
/// nothing but time and process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub class: Class,
    pub action: &'static str,
    /// A path, an address, keys: what was touched.
    pub object: String,
    /// The program's file, where it is known.
    pub program: Option<String>,
    pub rule: Rule,
    pub decision: Decision,
    pub coverage: Option<Coverage>,
    /// The number of the first record of it.
    pub seq: u64,
    pub count: u64,
    /// The first process that did it, with its ancestry.
    pub process: Option<Process>,
}

impl Verdict {
    pub fn distinct_violations(&self) -> u64 {
        self.violations.len() as u64 + self.violations_unlisted
    }

    pub fn lost_total(&self) -> u64 {
        self.lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// `verdict: fail (2 violations, 0 lost)`
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.distinct_violations();
        let s = if count == 1 { "" } else { "s" };
        let (word, lost) = (self.verdict.name(), self.lost_total());
        write!(f, "verdict: {word} ({count} violation{s}, {lost} lost)")
    }
}

/// Class, action, object, program, rule, on one line whatever their bytes.
impl Violation {
    /// `denied` or `killed`, where it went no further.
    pub fn stopped(&self) -> Option<&'static str> {
        match self.decision {
            Decision::Denied | Decision::Killed => Some(self.decision.name()),
            Decision::Allowed | Decision::Recorded => None,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What the observer itself found out was done by no process.
        let by = self.process.as_ref().map(|_| self.program.as_deref().unwrap_or("?"));
        let by = by.map(|program| format!(" by {program}")).unwrap_or_default();
        let times = if self.count > 1 { format!(" ({}x)", self.count) } else { String::new() };
        let stopped = self.stopped().map(|how| format!(", {how}")).unwrap_or_default();
        let line = format!(
            "{} {} {}{by}: {}{times}{stopped}",
            self.class.name(),
            self.action,
            self.object,
            self.rule
        );
        for c in line.chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        Ok(())
    }
}
