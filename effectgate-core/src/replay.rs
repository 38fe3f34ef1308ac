//! A log read back: its chain checked, its records judged again by the same
//! step that judged them live. One record is held at a time.

mod lines;
mod place;
mod records;

use std::collections::VecDeque;
use std::io::BufRead;

pub(crate) use lines::Lines;
pub(crate) use place::{Places, stage};

pub use lines::{Line, ReplayError, day};
pub use records::{Records, Verified, verify};

use crate::chain::Flaw;
use crate::input::Input;
use crate::policy::Policy;
use crate::record::read;
use crate::step::{State, step};
use crate::verdict::{Outcome, Verdict};

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
    let (mut lines, first, opening) = Lines::open(log)?;
    let same_policy = opening.sha256 == policy.sha256;
    let (started, places) = stage(opening, policy, same_policy);
    let mut run = Run { state: State::new(), due: VecDeque::new(), disagreement: None };
    run.take(0, &first.bytes, || Ok(Input::Started(Box::new(started))))
        .map_err(|what| lines.flawed(Flaw::Content(what)))?;
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
    due: VecDeque<Vec<u8>>,
    disagreement: Option<u64>,
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
        if self.due.is_empty() {
            let output = step(&mut self.state, input()?);
            self.due.extend(output.records.into_iter().map(|line| line.bytes));
            verdict = output.verdict;
        }
        if self.due.pop_front().as_deref() != Some(line) {
            self.disagreement.get_or_insert(seq);
        }
        Ok(verdict)
    }
}
