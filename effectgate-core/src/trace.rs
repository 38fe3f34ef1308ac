//! A trace: what an agent's harness wrote down, one JSON object a line.
//!
//! It is read line by line, in constant memory, and strictly: what could be
//! read in two ways, or left something out, is a flaw and no event.

mod extent;
mod line;
mod raw;

use std::borrow::Cow;
use std::io::{self, BufRead};

use crate::input::UnixNanos;

pub(crate) use extent::Extent;

/// No line is longer (bytes).
pub const LONGEST: usize = 1 << 20;

/// One thing that the harness saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    pub ts: UnixNanos,
    pub kind: Kind,
    /// Of the tool, the program, the step or whatever it is.
    pub name: Cow<'a, str>,
    pub binary: Option<Cow<'a, str>>,
    pub argv: Vec<Cow<'a, str>>,
    /// `None` only for [`Kind::Step`] and [`Kind::McpServer`].
    pub cwd: Option<Cow<'a, str>>,
    pub host: Option<Cow<'a, str>>,
    /// Never falls from one event to the next that has it.
    pub step: Option<u64>,
    /// Names of environment keys.
    pub env: Vec<Cow<'a, str>>,
    pub server: Option<Cow<'a, str>>,
    pub output: Option<Cow<'a, str>>,
    pub digest: Option<Cow<'a, str>>,
    pub tools: Option<Vec<Cow<'a, str>>>,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new step begins.
    Step,
    ToolCall,
    ToolResult,
    Exec,
    Net,
    /// An MCP server said who it is and what tools it has.
    McpServer,
}

impl Kind {
    pub const ALL: [(&'static str, Kind); 6] = [
        ("step", Kind::Step),
        ("tool_call", Kind::ToolCall),
        ("tool_result", Kind::ToolResult),
        ("exec", Kind::Exec),
        ("net", Kind::Net),
        ("mcp_server", Kind::McpServer),
    ];
}

/// Why a line is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub rule: &'static str,
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: &'static str,
}

/// Reads a whole trace. `take` gets every event, and every flaw of every line,
/// with the line's number (from 1), in order. Gives the number of lines.
///
/// # Errors
/// When the trace cannot be read.
pub fn read(
    mut trace: impl BufRead,
    mut take: impl FnMut(u64, Result<Event<'_>, Flaw>),
) -> io::Result<u64> {
    let mut reader = Reader::default();
    loop {
        let buffer = match trace.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok(reader.end(&mut take));
        }
        let used = reader.feed(buffer, &mut take);
        trace.consume(used);
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// Lines that ended.
    lines: u64,
    /// The beginning of a line whose end has not been read yet.
    begun: Vec<u8>,
    /// That line is longer than any line; its beginning is not kept.
    too_long: bool,
    order: line::Order,
}

impl Reader {
    /// Takes bytes up to the end of a line, or all; gives how many.
    fn feed(
        &mut self,
        buffer: &[u8],
        take: &mut impl FnMut(u64, Result<Event<'_>, Flaw>),
    ) -> usize {
        let Some(end) = memchr::memchr(b'\n', buffer) else {
            self.begin(buffer);
            return buffer.len();
        };
        self.lines += 1;
        let (number, rest) = (self.lines, &buffer[..end]);
        if self.begun.is_empty() && !self.too_long {
            self.order.line(rest, &mut |seen| take(number, seen));
            return end + 1;
        }
        self.begin(rest);
        if std::mem::take(&mut self.too_long) {
            take(number, Err(line::too_long()));
        } else {
            self.order.line(&self.begun, &mut |seen| take(number, seen));
        }
        self.begun.clear();
        end + 1
    }

    fn begin(&mut self, bytes: &[u8]) {
        self.too_long |= self.begun.len() + bytes.len() > LONGEST;
        if self.too_long {
            self.begun.clear();
        } else {
            self.begun.extend_from_slice(bytes);
        }
    }

    fn end(self, take: &mut impl FnMut(u64, Result<Event<'_>, Flaw>)) -> u64 {
        if self.begun.is_empty() && !self.too_long {
            return self.lines;
        }
        take(self.lines + 1, Err(line::truncated()));
        self.lines + 1
    }
}
