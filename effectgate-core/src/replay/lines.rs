//! A log's lines, in order and unbroken, or how far they are.

use std::io::{BufRead, Read as _};

use serde_json::Value;

use crate::chain::{self, Chain, Flaw};
use crate::record::read::{self, Opening};
use crate::verdict::Outcome;

/// No record is longer (bytes): the arguments of a program are at most 2 MiB
/// (`MAX_ARG_STRLEN` and a quarter of the stack), escaped at most sixfold.
const LONGEST: u64 = 64 << 20;

/// Why a log does not hold.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("the log could not be read after {good} good records: {source}")]
    Io {
        good: u64,
        #[source]
        source: std::io::Error,
    },
    #[error("line {line}: {flaw}; the log is good for its first {good} records")]
    Flawed {
        /// From 1.
        line: u64,
        /// Records before the flaw.
        good: u64,
        flaw: Flaw,
    },
}

/// A log that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    /// The closing record's hash.
    pub head: String,
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
    records(log, |_| {})
}

/// The same, and shows each record that holds.
///
/// # Errors
/// As [`verify`].
pub fn records(log: impl BufRead, mut show: impl FnMut(&Value)) -> Result<Verified, ReplayError> {
    let (mut lines, first, opening) = Lines::open(log)?;
    show(&first.value);
    let mut verdict = None;
    while let Some((_, line)) = lines.next()? {
        show(&line.value);
        if read::closes(&line.value) {
            verdict = line.value["object"]["verdict"].as_str().and_then(Outcome::from_name);
        }
    }
    let verdict = verdict.ok_or_else(|| lines.flawed(Flaw::Content("verdict")))?;
    Ok(Verified {
        records: lines.records(),
        head: lines.head().to_owned(),
        job: opening.name,
        policy_sha256: opening.sha256,
        verdict,
    })
}

/// How a log's policy was read when its job started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `YYYY-MM-DD`: exceptions expire.
    pub day: String,
    /// The file's name as it was given, which rules cite.
    pub policy_file: String,
}

/// The day on which a log's job started, `YYYY-MM-DD`: a policy that judges it
/// is read as of that day. `None` where no such log begins; judging it says why.
pub fn day(log: impl BufRead) -> Option<String> {
    origin(log).map(|origin| origin.day)
}

/// How a log's policy was read. `None` where no such log begins; judging it
/// says why.
pub fn origin(log: impl BufRead) -> Option<Origin> {
    let mut lines = Lines { log, chain: Chain::new(String::new()), closed: false, good: 0 };
    let value = chain::parse(&lines.bytes().ok()??).ok()?;
    let day = crate::time::day(read::opening(&value).ok()?.ts);
    let policy_file = value["object"]["policy"]["file"].as_str()?.to_owned();
    Some(Origin { day, policy_file })
}

/// One line, as bytes and as JSON.
pub(crate) struct Line {
    pub bytes: Vec<u8>,
    pub value: Value,
}

pub(crate) struct Lines<R> {
    log: R,
    chain: Chain,
    closed: bool,
    /// Records that hold.
    good: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the opening record; the rest of the chain hangs on it.
    pub fn open(log: R) -> Result<(Self, Line, Opening), ReplayError> {
        let chain = Chain::new(String::new());
        let mut lines = Lines { log, chain, closed: false, good: 0 };
        let Some(bytes) = lines.bytes()? else { return Err(lines.flawed(Flaw::Empty)) };
        let opened = chain::parse(&bytes).and_then(|value| {
            let opening = read::opening(&value).map_err(Flaw::Content)?;
            lines.chain = Chain::new(chain::genesis_of(
                &opening.sha256,
                &opening.name,
                &opening.host,
                &opening.kernel,
                opening.backend,
                &opening.programs,
            ));
            lines.chain.check(&bytes)?;
            Ok((Line { bytes, value }, opening))
        });
        match opened {
            Ok((line, opening)) => {
                lines.good = 1;
                Ok((lines, line, opening))
            }
            Err(flaw) => Err(lines.flawed(flaw)),
        }
    }

    /// The next record with its number; `None` after the closing one.
    pub fn next(&mut self) -> Result<Option<(u64, Line)>, ReplayError> {
        let Some(bytes) = self.bytes()? else {
            return if self.closed { Ok(None) } else { Err(self.flawed(Flaw::Unclosed)) };
        };
        if self.closed {
            return Err(self.flawed(Flaw::AfterClosing));
        }
        let seq = self.chain.next;
        let value = self.chain.check(&bytes).map_err(|flaw| self.flawed(flaw))?;
        self.good = self.chain.next;
        self.closed = read::closes(&value);
        Ok(Some((seq, Line { bytes, value })))
    }

    pub fn flawed(&self, flaw: Flaw) -> ReplayError {
        ReplayError::Flawed { line: self.good + 1, good: self.good, flaw }
    }

    pub fn records(&self) -> u64 {
        self.chain.next
    }

    pub fn head(&self) -> &str {
        &self.chain.head
    }

    fn bytes(&mut self) -> Result<Option<Vec<u8>>, ReplayError> {
        let mut bytes = Vec::new();
        let read = self.log.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        match read {
            Err(source) => Err(ReplayError::Io { good: self.good, source }),
            Ok(0) => Ok(None),
            Ok(_) if bytes.pop() == Some(b'\n') => Ok(Some(bytes)),
            Ok(length) if length as u64 == LONGEST => Err(self.flawed(Flaw::TooLong)),
            Ok(_) => Err(self.flawed(Flaw::Truncated)),
        }
    }
}
