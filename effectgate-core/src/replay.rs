//! A log read back: its chain checked, its records judged again by the same
//! step that judged them live. One record is held at a time.

mod lines;
mod place;
mod records;

use std::collections::VecDeque;
use std::io::BufRead;

use serde_json::Value;

pub(crate) use lines::Lines;
pub(crate) use place::{Places, stage};

pub use lines::{LONGEST, Line, ReplayError, day};
pub use records::{Records, Verified, verify};

use crate::chain::Flaw;
use crate::input::{Class, Input};
use crate::policy::Policy;
use crate::record::read;
use crate::step::{self, State};
use crate::verdict::{Outcome, Verdict, Violation};

/// What a log says when it is judged again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// By the policy that was given; its `log` is the log that was read.
    pub verdict: Verdict,
    /// The verdict that the log closes with.
    pub logged: Outcome,
    /// The policy that was given is the one the log was written under.
    pub same_policy: bool,
    /// The first record that came out otherwise than it stands in the log.
    /// Looked for only under the same policy: another one judges otherwise.
    pub disagreement: Option<u64>,
}

impl Replayed {
    /// The log is what this version makes of its inputs. Under another policy
    /// there is nothing to compare, and this is true.
    pub fn agrees(&self) -> bool {
        self.disagreement.is_none()
    }
}

/// Judges a log by a policy: the one it was written under, or another one, by
/// paths. The chain is checked on the way.
///
/// # Errors
/// [`ReplayError`] when the log cannot be read or does not hold; it says how
/// far it is good.
pub fn replay(log: impl BufRead, policy: Policy) -> Result<Replayed, ReplayError> {
    each(log, policy, |_, _| {})
}

/// The same, and shows each record as it stands in the log, with the violations
/// that judging it again found in it.
///
/// # Errors
/// As [`replay()`].
pub fn each(
    log: impl BufRead,
    policy: Policy,
    mut show: impl FnMut(&Value, &[Violation]),
) -> Result<Replayed, ReplayError> {
    let (mut lines, first, opening) = Lines::open(log)?;
    let same_policy = opening.sha256 == policy.sha256;
    let mut policy = policy;
    if same_policy {
        // The same file by another name, as evidence keeps it.
        policy.file.clone_from(&opening.file);
    }
    let compare = if opening.sparse { Compare::Judgement } else { Compare::Bytes };
    let (started, places) = stage(opening, policy, same_policy);
    let mut run = Run {
        state: State::new(),
        due: VecDeque::new(),
        violations: Vec::new(),
        compare,
        disagreement: None,
    };
    run.take(0, &first.bytes, || Ok(Input::Started(Box::new(started))))
        .map_err(|what| lines.flawed(Flaw::Content(what)))?;
    show(&first.value, &[]);
    let mut verdict = None;
    let mut logged = None;
    while let Some((seq, line)) = lines.next()? {
        if read::closes(&line.value) {
            logged = line.value["object"]["verdict"].as_str().and_then(Outcome::from_name);
        }
        let finished = run
            .take(seq, &line.bytes, || {
                read::input(&line.value, &|file, root| places.find(file, root))
            })
            .map_err(|what| lines.flawed(Flaw::Content(what)))?;
        verdict = verdict.or(finished);
        show(&line.value, &run.violations);
    }
    let (Some(mut verdict), Some(logged)) = (verdict, logged) else {
        return Err(lines.flawed(Flaw::Content("verdict")));
    };
    verdict.log = lines.log();
    let disagreement = run.disagreement.filter(|_| same_policy);
    Ok(Replayed { verdict, logged, same_policy, disagreement })
}

/// The step, with what it wrote and the log has yet to show.
struct Run {
    state: State,
    due: VecDeque<step::Line>,
    /// What the line that was taken last speaks of.
    violations: Vec<Violation>,
    compare: Compare,
    disagreement: Option<u64>,
}

/// What of a record must come out as it stands in the log.
#[derive(Clone, Copy)]
enum Compare {
    /// All of it.
    Bytes,
    /// What it was judged to be. Opening records once held less, so that the
    /// chain that hangs on them comes out otherwise.
    Judgement,
}

impl Compare {
    /// What a guest holds was not asked then, and is in no record that follows
    /// from what it does.
    fn passes_over(self, line: &[u8], due: &[u8]) -> bool {
        let of_env = |judgement: [Value; 5]| judgement[0] == Class::Env.name();
        matches!(self, Compare::Judgement)
            && judgement(due).is_some_and(of_env)
            && !self.same(line, due)
    }

    fn same(self, line: &[u8], due: &[u8]) -> bool {
        match self {
            Compare::Bytes => line == due,
            Compare::Judgement => judgement(line).is_some() && judgement(line) == judgement(due),
        }
    }
}

fn judgement(line: &[u8]) -> Option<[Value; 5]> {
    let record: Value = serde_json::from_slice(line).ok()?;
    Some(["class", "action", "within", "rule", "decision"].map(|key| record[key].clone()))
}

impl Run {
    /// Takes the log's next line. An input can give several records; those
    /// after its first come from no input of their own.
    fn take(
        &mut self,
        seq: u64,
        line: &[u8],
        input: impl FnOnce() -> read::Read<Input>,
    ) -> read::Read<Option<Verdict>> {
        let mut verdict = None;
        while self.due.front().is_some_and(|due| self.compare.passes_over(line, &due.bytes)) {
            self.due.pop_front();
        }
        if self.due.is_empty() {
            let output = step::written(&mut self.state, input()?);
            self.due.extend(output.records);
            verdict = output.verdict;
        }
        let due = self.due.pop_front();
        if !due.as_ref().is_some_and(|due| self.compare.same(line, &due.bytes)) {
            self.disagreement.get_or_insert(seq);
        }
        self.violations = due.map(|due| due.violations).unwrap_or_default();
        Ok(verdict)
    }
}
