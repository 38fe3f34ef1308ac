//! Where results go: standard output, in pieces, until nobody reads any more.
//! Everything passes here, and nothing in it can steer a terminal.

use std::io::{BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use serde::Serialize;

use super::sources::Step;
use crate::{
    diagnose::visible,
    exit::{self, Failure},
};

#[derive(Debug)]
pub struct Out {
    to: BufWriter<Stdout>,
    is_terminal: bool,
    failed: Option<std::io::Error>,
}

impl Out {
    pub fn new() -> Out {
        let stdout = std::io::stdout();
        let is_terminal = stdout.is_terminal();
        Out { to: BufWriter::with_capacity(1 << 16, stdout), is_terminal, failed: None }
    }

    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// A line for people.
    pub fn text(&mut self, line: &str) -> Step {
        self.write(visible(line).as_bytes())
    }

    /// A line for machines. JSON escapes what lies below the blank; on a
    /// terminal what lies above and is as invisible is escaped as well, which
    /// JSON readers read as the same.
    pub fn json(&mut self, line: &[u8]) -> Step {
        let plain = |byte: &u8| matches!(byte, b' '..=b'~');
        if !self.is_terminal || line.iter().all(plain) {
            return self.write(line);
        }
        let mut escaped = String::with_capacity(line.len());
        for c in String::from_utf8_lossy(line).chars() {
            if matches!(c, ' '..='~') || visible(c.encode_utf8(&mut [0; 4])).starts_with(c) {
                escaped.push(c);
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped += &format!("\\u{unit:04x}");
            }
        }
        self.write(escaped.as_bytes())
    }

    /// A value as a line of JSON.
    pub fn value(&mut self, value: &impl Serialize) -> Step {
        match serde_json::to_vec(value) {
            Ok(line) => self.json(&line),
            Err(error) => {
                self.failed.get_or_insert(error.into());
                Step::Enough
            }
        }
    }

    /// To be called when all was written.
    ///
    /// # Errors
    /// When something could not be written. That nobody reads it is no failure.
    pub fn end(mut self, code: u8) -> Result<u8, Failure> {
        let error = self.failed.take().or_else(|| self.to.flush().err());
        match error {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure {
                code: exit::USAGE,
                error: anyhow::anyhow!("cannot write to standard output: {error}"),
            }),
            _ => Ok(code),
        }
    }

    fn write(&mut self, line: &[u8]) -> Step {
        let written = self.to.write_all(line).and_then(|()| self.to.write_all(b"\n"));
        match written {
            Ok(()) => Step::On,
            Err(error) => {
                self.failed.get_or_insert(error);
                Step::Enough
            }
        }
    }
}
