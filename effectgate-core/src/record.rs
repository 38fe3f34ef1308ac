//! The event record `effectgate.event/v1`: one line of the log.

mod action;
mod objects;
pub(crate) mod read;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub use action::{Action, EnvAction, GuardAction, ProcessAction};
pub(crate) use objects::{
    canary, closing, env, exec, exit, file, fork, gap, guard, net, notice, opening, protocol_name,
    sums, unix,
};

use crate::input::{Coverage, Decided, UnixNanos};
use crate::judge::{Decision, Rule};
use crate::process::Process;

pub const SCHEMA: &str = "effectgate.event/v1";

/// The largest integer that every JSON reader holds exactly (RFC 7493, 2.2).
pub(crate) const LARGEST: u64 = (1 << 53) - 1;

/// A record without its place in the chain.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub ts: UnixNanos,
    pub job: &'a str,
    pub action: Action,
    pub object: Value,
    /// Null for what the daemon itself says.
    pub process: Option<&'a Process>,
    pub within: bool,
    pub rule: &'a Rule,
    pub decision: Decision,
    /// What the kernel programs came to, where it is something else.
    pub kernel: Option<Decided>,
    /// Null for class `guard`.
    pub coverage: Option<Coverage>,
}

impl Record<'_> {
    /// The record's members, but for `hash`, in their place in the chain.
    pub fn to_json(&self, seq: u64, prev: &str) -> Value {
        let mut record = json!({
            "schema": SCHEMA,
            "seq": number(seq),
            "ts": crate::time::format(self.ts),
            "job": self.job,
            "class": self.action.class(),
            "action": self.action.name(),
            "object": self.object,
            "process": self.process,
            "within": self.within,
            "rule": self.rule,
            "decision": self.decision,
            "coverage": self.coverage,
            "prev": prev,
        });
        if let Some(kernel) = self.kernel {
            record["kernel"] = kernel.name().into();
        }
        record
    }
}

/// A number, or its decimal digits where JSON readers would round it.
pub(crate) fn number(n: u64) -> Value {
    if n <= LARGEST { Value::from(n) } else { Value::from(n.to_string()) }
}

/// Reads exactly what [`number`] writes.
pub(crate) fn read_number(value: &Value) -> Option<u64> {
    let n = match value {
        Value::Number(n) => n.as_u64()?,
        Value::String(digits) => digits.parse().ok()?,
        _ => return None,
    };
    (number(n) == *value).then_some(n)
}

pub(crate) fn serialize_start<S: Serializer>(
    start: &Option<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    start.map(number).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_digits() {
        for (n, value) in [
            (0, json!(0)),
            (LARGEST, json!(9_007_199_254_740_991_u64)),
            (LARGEST + 1, json!("9007199254740992")),
            (u64::MAX, json!("18446744073709551615")),
        ] {
            assert_eq!(number(n), value);
            assert_eq!(read_number(&value), Some(n));
        }
        for value in [json!("5"), json!(-1), json!(1.5), json!("+9007199254740992"), json!(null)] {
            assert_eq!(read_number(&value), None, "{value}");
        }
    }
}
