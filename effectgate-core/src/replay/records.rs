//! A log's records, each one checked before it is given out.

use std::io::BufRead;

use super::lines::{Line, Lines, ReplayError};
use crate::chain::Flaw;
use crate::merkle::Tree;
use crate::record::read;
use crate::time;
use crate::verdict::{Log, Outcome};

/// The records of a log, in order and unbroken from the first on. What was
/// given out stays good when the next record turns out to be broken.
#[derive(Debug)]
pub struct Records<R> {
    lines: Lines<R>,
    first: Option<Line>,
    job: String,
    policy_sha256: String,
    started: String,
    verdict: Option<Outcome>,
}

impl<R: BufRead> Records<R> {
    /// # Errors
    /// [`ReplayError`] when the log does not begin with an opening record.
    pub fn open(log: R) -> Result<Self, ReplayError> {
        let (lines, first, opening) = Lines::open(log)?;
        Ok(Records {
            lines,
            first: Some(first),
            job: opening.name,
            policy_sha256: opening.sha256,
            started: time::format(opening.ts),
            verdict: None,
        })
    }

    /// The next record, with its number; `None` after the closing one.
    ///
    /// # Errors
    /// [`ReplayError`], which says how far the log is good.
    #[expect(clippy::should_implement_trait, reason = "an iterator would go on after an error")]
    pub fn next(&mut self) -> Result<Option<(u64, Line)>, ReplayError> {
        if let Some(first) = self.first.take() {
            return Ok(Some((0, first)));
        }
        let next = self.lines.next()?;
        if let Some((_, line)) = &next
            && read::closes(&line.value)
        {
            let word = line.value["object"]["verdict"].as_str();
            let verdict = word.and_then(Outcome::from_name);
            self.verdict =
                Some(verdict.ok_or_else(|| self.lines.flawed(Flaw::Content("verdict")))?);
        }
        Ok(next)
    }

    /// The job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// The digest of the policy that the log was written under.
    pub fn policy_sha256(&self) -> &str {
        &self.policy_sha256
    }

    /// When the log begins, RFC 3339, UTC.
    pub fn started(&self) -> &str {
        &self.started
    }

    /// The verdict that it closes with, once the closing record is out.
    pub fn verdict(&self) -> Option<Outcome> {
        self.verdict
    }

    /// The records that hold so far.
    pub fn log(&self) -> Log {
        self.lines.log()
    }

    /// The tree over them.
    pub fn tree(&self) -> &Tree {
        &self.lines.chain().tree
    }

    /// Their length in bytes.
    pub fn length(&self) -> u64 {
        self.lines.length()
    }
}

/// A log that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub log: Log,
    pub job: String,
    /// The digest of the policy that it was written under.
    pub policy_sha256: String,
    /// The verdict that it closes with.
    pub verdict: Outcome,
}

/// Checks a log's chain, without judging: no byte was changed, removed,
/// moved or added since it was written.
///
/// # Errors
/// [`ReplayError`], which says how far the log is good.
pub fn verify(log: impl BufRead) -> Result<Verified, ReplayError> {
    let mut records = Records::open(log)?;
    while records.next()?.is_some() {}
    let verdict = records.verdict.ok_or_else(|| records.lines.flawed(Flaw::Unclosed))?;
    let log = records.log();
    Ok(Verified { log, job: records.job, policy_sha256: records.policy_sha256, verdict })
}
