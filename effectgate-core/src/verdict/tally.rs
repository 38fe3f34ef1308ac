//! What adds up to a verdict while a job runs. Bounded, however long it runs.

use std::collections::{BTreeMap, HashMap};

use crate::input::{Class, Exit, Started, UnixNanos};
use crate::judge::{Decision, Doubt, Rule};
use crate::verdict::{Command, Log, Outcome, PolicyRef, SCHEMA, Verdict, Violation};

/// Distinct violations and doubts that are listed; more are counted.
const LISTED: usize = 1000;
/// Of each class and action so many are listed in any case: nothing is hidden
/// behind very many of another kind.
const OF_EACH: usize = 20;
/// Bytes of the texts of the first: a process has a long ancestry, a program long
/// arguments.
const LISTED_BYTES: usize = 12 << 20;
/// Bytes of the texts of those of one kind that are listed beyond the first, without
/// their ancestry.
const OF_EACH_BYTES: usize = 192 << 10;

type Key = (Class, &'static str, String, Option<String>, Rule);

/// Violations of a class and action: how many are listed, and the bytes of those
/// beyond the first.
#[derive(Debug, Default)]
struct Kind {
    listed: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<Class, BTreeMap<Decision, u64>>,
    lost: BTreeMap<Class, u64>,
    gaps: u64,
    violations: Vec<Violation>,
    index: HashMap<Key, usize>,
    kinds: BTreeMap<(Class, &'static str), Kind>,
    /// Of the texts of the first that are listed.
    bytes: usize,
    unlisted: BTreeMap<Class, u64>,
    doubts: BTreeMap<Doubt, u64>,
    disagreements: u64,
    repeated: BTreeMap<Class, u64>,
}

impl Tally {
    pub fn count(&mut self, class: Class, decision: Decision) {
        *self.counts.entry(class).or_default().entry(decision).or_default() += 1;
    }

    pub fn lost(&mut self, lost: &BTreeMap<Class, u64>) {
        self.gaps += 1;
        for (class, count) in lost {
            let sum = self.lost.entry(*class).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    pub fn repeated(&mut self, counts: &BTreeMap<Class, u64>) {
        for (class, count) in counts {
            let sum = self.repeated.entry(*class).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The kernel judged an effect otherwise.
    pub fn disagreement(&mut self) {
        self.disagreements += 1;
        self.doubt(&Doubt::Disagreement);
    }

    pub fn doubt(&mut self, doubt: &Doubt) {
        if let Some(count) = self.doubts.get_mut(doubt) {
            *count += 1;
        } else if self.doubts.len() < LISTED {
            self.doubts.insert(doubt.clone(), 1);
        }
    }

    pub fn violation(&mut self, violation: &Violation) {
        let key = (
            violation.class,
            violation.action,
            violation.object.clone(),
            violation.program.clone(),
            violation.rule.clone(),
        );
        if let Some(known) = self.index.get(&key).and_then(|at| self.violations.get_mut(*at)) {
            known.count += 1;
            // What was stopped each time is said to be; what was not even once, is not.
            if violation.stopped().is_none() {
                known.decision = violation.decision;
            }
            return;
        }
        let kind = self.kinds.entry((violation.class, violation.action)).or_default();
        let (own, ancestry) = sizes(violation);
        let bytes = self.bytes + own + ancestry;
        let is_first = self.violations.len() < LISTED && bytes <= LISTED_BYTES;
        if is_first {
            self.bytes = bytes;
        } else if kind.listed < OF_EACH && kind.bytes + own <= OF_EACH_BYTES {
            kind.bytes += own;
        } else {
            *self.unlisted.entry(violation.class).or_default() += 1;
            return;
        }
        let mut listed = violation.clone();
        if let Some(process) = listed.process.as_mut().filter(|_| !is_first) {
            process.ancestry.clear();
        }
        kind.listed += 1;
        self.index.insert(key, self.violations.len());
        self.violations.push(listed);
    }

    /// The verdict, but for the log's end, which only the closing record knows.
    pub fn close(self, started: &Started, ended: UnixNanos, exit: Option<Exit>) -> Verdict {
        let outcome = if !self.violations.is_empty() || !self.unlisted.is_empty() {
            Outcome::Fail
        } else if self.gaps > 0 || !self.doubts.is_empty() {
            Outcome::Indeterminate
        } else {
            Outcome::Pass
        };
        let reasons = self.reasons();
        let policy = &started.policy;
        Verdict {
            schema: SCHEMA,
            job: started.name.clone(),
            verdict: outcome,
            reasons,
            policy: PolicyRef {
                kind: policy.kind,
                id: policy.id.clone(),
                sha256: policy.sha256.clone(),
                note: started.note.clone(),
            },
            backend: started.backend,
            coverage: started.coverage,
            command: Command {
                argv: started.argv.iter().map(|one| crate::escape::escape(one)).collect(),
                exit,
            },
            started: crate::time::format(started.ts),
            ended: crate::time::format(ended),
            counts: self.counts,
            repeated: self.repeated,
            lost: self.lost,
            violations: self.violations,
            violations_unlisted: self.unlisted.values().sum(),
            unlisted_by_class: self.unlisted,
            disagreements: started.judged.then_some(self.disagreements),
            log: Log::default(),
        }
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut by_class: BTreeMap<Class, u64> = BTreeMap::new();
        for violation in &self.violations {
            *by_class.entry(violation.class).or_default() += 1;
        }
        for (class, count) in by_class {
            let s = if count == 1 { "" } else { "s" };
            reasons.push(format!("{count} violation{s} of class {}", class.name()));
        }
        for (class, count) in &self.unlisted {
            let (s, are) = if *count == 1 { ("", "is") } else { ("s", "are") };
            let class = class.name();
            reasons.push(format!("{count} further violation{s} of class {class} {are} not listed"));
        }
        if self.gaps > 0 {
            let parts: Vec<String> = self
                .lost
                .iter()
                .map(|(class, count)| format!("{} {count}", class.name()))
                .collect();
            reasons.push(format!("records were lost: {}", parts.join(", ")));
        }
        for (doubt, count) in &self.doubts {
            let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
            reasons.push(format!("{doubt}{times}"));
        }
        reasons
    }
}

/// Bytes of a violation's texts: its own, and those of its process's ancestry.
fn sizes(violation: &Violation) -> (usize, usize) {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let (own, ancestry) = violation.process.as_ref().map_or((0, 0), |process| {
        let parents = process.ancestry.iter();
        let parents = parents.map(|parent| length(&parent.exe) + parent.comm.len());
        (length(&process.exe) + process.comm.len(), parents.sum())
    });
    (violation.object.len() + length(&violation.program) + own, ancestry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(class: Class, action: &'static str, object: String) -> Violation {
        Violation {
            class,
            action,
            object,
            program: None,
            rule: Rule { name: "r", file: None, line: None },
            decision: Decision::Recorded,
            coverage: None,
            seq: 0,
            count: 1,
            process: None,
        }
    }

    /// Whatever comes first, and however much of it.
    #[test]
    fn nothing_hides_behind_very_many_of_another_kind() {
        let mut tally = Tally::default();
        for number in 0..5000 {
            tally.violation(&violation(Class::File, "create", number.to_string()));
        }
        for number in 0..50 {
            tally.violation(&violation(Class::Net, "connect", number.to_string()));
            tally.violation(&violation(Class::File, "write", number.to_string()));
        }
        let listed = |class, action| {
            let kind = |one: &&Violation| (one.class, one.action) == (class, action);
            tally.violations.iter().filter(kind).count()
        };
        assert_eq!(listed(Class::File, "create"), LISTED);
        assert_eq!(listed(Class::Net, "connect"), OF_EACH);
        assert_eq!(listed(Class::File, "write"), OF_EACH);
        assert_eq!(tally.unlisted[&Class::Net], 50 - OF_EACH as u64);
    }

    /// What is listed fits into what a reader takes, and is a failure even where
    /// nothing fits.
    #[test]
    fn what_is_listed_is_bounded_in_bytes() {
        let mut tally = Tally::default();
        let large = |number: usize, bytes: usize| {
            violation(Class::Exec, "exec", format!("{number}{}", "x".repeat(bytes)))
        };
        tally.violation(&large(0, LISTED_BYTES));
        assert_eq!((tally.violations.len(), tally.unlisted[&Class::Exec]), (0, 1));
        for number in 0..40 {
            tally.violation(&large(number, 2 << 20));
        }
        assert_eq!((tally.violations.len(), tally.unlisted[&Class::Exec]), (5, 36));
        // What others took is not taken from these.
        tally.violation(&violation(Class::Net, "connect", "192.0.2.1:9".to_owned()));
        assert_eq!(tally.violations.len(), 6);
    }
}
