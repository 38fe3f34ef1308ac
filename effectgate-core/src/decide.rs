//! What follows from two runs of one job by two runners: the table of
//! `docs/deciding.md`, and nothing besides. A violation decides alone; no
//! ledger is asked about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::freeze::{Freeze, Run, State, Subject, same_runner};
use crate::input::Exit;
use crate::properties::{COMMAND, Properties, PropertyResult};
use crate::verdict::Outcome;

pub const SCHEMA: &str = "effectgate.decision/v1";

/// One runner's run, whose bundle holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub runner: String,
    /// Whether its bundle says which runner it was.
    pub is_named: bool,
    /// SHA-256 of the bundle's list of digests.
    pub bundle: String,
    /// The log's origin, which no other run's log has. A bundle can be completed
    /// and signed again; the run that it is of stays the same.
    pub log: String,
    /// SHA-256 of the policy.
    pub policy: String,
    pub verdict: Outcome,
    pub results: BTreeMap<String, PropertyResult>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The gate opens.
    Pass,
    /// It stays shut until somebody freezes what the runners disagree on, or
    /// mends it.
    Hold,
    Fail,
    /// It stays shut: what the job did is not known.
    Indeterminate,
}

/// The answer and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    pub schema: &'static str,
    pub decision: Answer,
    /// Why it is not `pass`.
    pub reasons: Vec<String>,
    /// Rows of the ledger by which a disagreement was let through.
    pub frozen: Vec<Freeze>,
    /// Disagreements that may be frozen.
    pub held: Vec<Disagreement>,
}

/// A property on which the runners disagree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    pub property: String,
    pub left: Run,
    pub right: Run,
}

impl Side {
    /// A property's result here.
    fn result(&self, property: &str) -> PropertyResult {
        self.results.get(property).copied().unwrap_or(PropertyResult::Absent)
    }

    /// The run, as a row of the ledger names it.
    pub fn run(&self, property: &str) -> Run {
        Run {
            runner: self.runner.clone(),
            result: self.result(property),
            bundle: self.bundle.clone(),
        }
    }
}

/// What a command can say by its exit code. Above it are those with which a
/// shell says that it could not be run, or that a signal ended it.
const LAST_OWN_CODE: i32 = 125;

/// The results of a run: its properties, and its command's exit code where no
/// property tells why it is what it is. That a signal ended it, none tells.
pub fn results(
    properties: Option<&Properties>,
    exit: Option<Exit>,
) -> BTreeMap<String, PropertyResult> {
    let mut results = properties.map(|them| them.results.clone()).unwrap_or_default();
    let told = results.values().any(|result| *result == PropertyResult::Fail);
    let failed = match exit {
        None | Some(Exit::Code(0)) => false,
        Some(Exit::Code(1..=LAST_OWN_CODE)) => !told,
        Some(Exit::Code(_) | Exit::Signal(_)) => true,
    };
    if failed {
        results.insert(COMMAND.to_owned(), PropertyResult::Fail);
    } else if exit.is_some() && results.is_empty() {
        results.insert(COMMAND.to_owned(), PropertyResult::Pass);
    }
    results
}

/// Decides, by a ledger whose rows are well formed, as on a day (`YYYY-MM-DD`,
/// UTC).
pub fn decide(left: &Side, right: &Side, ledger: &[Freeze], today: &str) -> Decision {
    let mut decision = Decision {
        schema: SCHEMA,
        decision: Answer::Pass,
        reasons: Vec::new(),
        frozen: Vec::new(),
        held: Vec::new(),
    };
    decision.effects(left, right);
    if decision.decision == Answer::Pass {
        decision.pair(left, right);
        decision.ledger(ledger, today);
        decision.properties(left, right, ledger, today);
    }
    decision
}

impl Decision {
    /// The envelope comes first, and where it was violated nothing comes after.
    fn effects(&mut self, left: &Side, right: &Side) {
        for side in [left, right] {
            let runner = &side.runner;
            match side.verdict {
                Outcome::Pass => {}
                Outcome::Fail => self.say(
                    Answer::Fail,
                    format!("{runner}: the envelope was violated; that is never frozen and never retried"),
                ),
                Outcome::Indeterminate => self.say(
                    Answer::Indeterminate,
                    format!("{runner}: not everything was observed, so nothing is known to be clean"),
                ),
            }
        }
        // A violation is one, whatever else was not seen.
        if [left, right].iter().any(|side| side.verdict == Outcome::Fail) {
            self.decision = Answer::Fail;
        }
    }

    /// Two runs of one thing by two runners.
    fn pair(&mut self, left: &Side, right: &Side) {
        for side in [left, right].into_iter().filter(|side| !side.is_named) {
            let message = format!(
                "{}: its bundle names no runner, so nothing says that there are two",
                side.runner
            );
            self.say(Answer::Fail, message);
        }
        if same_runner(&left.runner, &right.runner) {
            let message = format!(
                "both runs are of runner {:?}: to run again is no second opinion",
                left.runner
            );
            self.say(Answer::Fail, message);
        }
        if left.log == right.log {
            self.say(Answer::Fail, "both bundles are of one and the same run".to_owned());
        }
        if left.policy != right.policy {
            self.say(Answer::Fail, "the two ran under different policies".to_owned());
        }
        if left.results.is_empty() || right.results.is_empty() {
            let message = "one of them says nothing of any property, nor of its command".to_owned();
            self.say(Answer::Fail, message);
        }
    }

    /// A ledger that nobody keeps in order excuses nothing.
    fn ledger(&mut self, ledger: &[Freeze], today: &str) {
        for row in ledger {
            let property = &row.property;
            match row.state(today) {
                State::Live => {}
                State::Expired => {
                    let message =
                        format!("the freeze of {property:?} expired on {} (UTC)", row.expires);
                    self.say(Answer::Fail, message);
                }
                State::Future => {
                    let message = format!(
                        "the freeze of {property:?} was created on {}, which has not come (UTC)",
                        row.created
                    );
                    self.say(Answer::Fail, message);
                }
            }
        }
    }

    fn properties(&mut self, left: &Side, right: &Side, ledger: &[Freeze], today: &str) {
        let rows: HashMap<Subject<'_>, &Freeze> =
            ledger.iter().map(|row| (row.subject(), row)).collect();
        let names: BTreeSet<&String> = left.results.keys().chain(right.results.keys()).collect();
        for name in names {
            let (one, other) = (left.run(name), right.run(name));
            if name == COMMAND {
                self.command([&one, &other]);
                continue;
            }
            match (one.result, other.result) {
                (PropertyResult::Pass, PropertyResult::Pass) => {}
                (PropertyResult::Fail, PropertyResult::Fail) => {
                    self.say(Answer::Fail, format!("both runners say that {name:?} fails"));
                }
                _ => {
                    let row = rows.get(&Subject::of(name, &left.policy, &one, &other)).copied();
                    self.disagreement(name, one, other, row, today);
                }
            }
        }
    }

    fn disagreement(
        &mut self,
        name: &str,
        left: Run,
        right: Run,
        row: Option<&Freeze>,
        today: &str,
    ) {
        match row {
            // One that is not live was said already.
            Some(row) if row.state(today) != State::Live => {}
            Some(row) => self.frozen.push(row.clone()),
            None => {
                let message = format!(
                    "the runners disagree on {name:?}: {} says {}, {} says {}",
                    left.runner,
                    left.result.name(),
                    right.runner,
                    right.result.name()
                );
                self.say(Answer::Hold, message);
                self.held.push(Disagreement { property: name.to_owned(), left, right });
            }
        }
    }

    /// An exit code is no property that could be frozen.
    fn command(&mut self, runs: [&Run; 2]) {
        for run in runs.into_iter().filter(|run| run.result == PropertyResult::Fail) {
            let message = format!("{}: the command failed, and no property tells why", run.runner);
            self.say(Answer::Fail, message);
        }
    }

    fn say(&mut self, answer: Answer, reason: String) {
        self.decision = self.decision.max(answer);
        self.reasons.push(reason);
    }
}

#[cfg(test)]
mod tests;
