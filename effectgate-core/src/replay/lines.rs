//! A log's lines, in order and unbroken, or how far they are.

use std::io::{BufRead, ErrorKind, Read as _};

use serde_json::Value;

use crate::chain::{self, Chain, Flaw};
use crate::record::read::{self, Opening};
use crate::verdict::Log;

/// No record is longer (bytes): the arguments of a program are at most 2 MiB
/// (`MAX_ARG_STRLEN` and a quarter of the stack), escaped at most sixfold.
pub const LONGEST: u64 = 64 << 20;

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
        /// Where the flawed line begins, in bytes from the log's start: what is
        /// before it is good.
        byte: u64,
        flaw: Flaw,
    },
}

/// The day on which a log's job started, `YYYY-MM-DD`: a policy that judges it
/// is read as of that day. `None` where no such log begins; judging it says why.
pub fn day(log: impl BufRead) -> Option<String> {
    let value = chain::parse(&Lines::new(log).bytes().ok()??).ok()?;
    Some(crate::time::day(read::opening(&value).ok()?.ts))
}

/// One record's line, as bytes without the newline and as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub bytes: Vec<u8>,
    pub value: Value,
}

#[derive(Debug)]
pub(crate) struct Lines<R> {
    log: R,
    chain: Chain,
    closed: bool,
    /// Records that hold.
    good: u64,
    /// Their bytes, newlines included.
    good_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the opening record; the rest of the chain hangs on it.
    pub fn open(log: R) -> Result<(Self, Line, Opening), ReplayError> {
        let mut lines = Lines::new(log);
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
                lines.good_is(&line.bytes);
                Ok((lines, line, opening))
            }
            Err(flaw) => Err(lines.flawed(flaw)),
        }
    }

    /// The lines of another chain, which has neither an opening nor a closing
    /// record.
    pub fn of(log: R, chain: Chain) -> Self {
        Lines { log, chain, closed: false, good: 0, good_bytes: 0 }
    }

    /// The next record with its number; `None` after the closing one.
    pub fn next(&mut self) -> Result<Option<(u64, Line)>, ReplayError> {
        let next = self.any()?;
        match &next {
            None if !self.closed => return Err(self.flawed(Flaw::Unclosed)),
            None => {}
            Some((_, line)) => self.closed = read::closes(&line.value),
        }
        Ok(next)
    }

    /// The next record with its number; `None` at the end of what was written.
    pub fn any(&mut self) -> Result<Option<(u64, Line)>, ReplayError> {
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        if self.closed {
            return Err(self.flawed(Flaw::AfterClosing));
        }
        let seq = self.chain.next;
        let value = self.chain.check(&bytes).map_err(|flaw| self.flawed(flaw))?;
        self.good_is(&bytes);
        Ok(Some((seq, Line { bytes, value })))
    }

    /// What is wrong with the line after the last good one.
    pub fn flawed(&self, flaw: Flaw) -> ReplayError {
        ReplayError::Flawed { line: self.good + 1, good: self.good, byte: self.good_bytes, flaw }
    }

    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    pub fn into_chain(self) -> Chain {
        self.chain
    }

    pub fn log(&self) -> Log {
        self.chain.log()
    }

    /// Bytes of the lines so far.
    pub fn length(&self) -> u64 {
        self.good_bytes
    }

    fn new(log: R) -> Self {
        Lines::of(log, Chain::new(String::new()))
    }

    fn good_is(&mut self, line: &[u8]) {
        self.good = self.chain.next;
        self.good_bytes += line.len() as u64 + 1;
    }

    fn bytes(&mut self) -> Result<Option<Vec<u8>>, ReplayError> {
        let mut bytes = Vec::new();
        let read = self.log.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        match read {
            // What was read is not what was written, say of data that does not
            // decompress; that is no failure to read it.
            Err(source) if source.kind() == ErrorKind::InvalidData => {
                Err(self.flawed(Flaw::Damaged(source.to_string())))
            }
            Err(source) => Err(ReplayError::Io { good: self.good, source }),
            Ok(0) => Ok(None),
            Ok(_) if bytes.pop() == Some(b'\n') => Ok(Some(bytes)),
            Ok(length) if length as u64 == LONGEST => Err(self.flawed(Flaw::TooLong)),
            Ok(_) => Err(self.flawed(Flaw::Truncated)),
        }
    }
}
