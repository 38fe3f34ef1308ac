//! One line: whether it is an event, and whether it may stand behind those
//! before it.

use std::borrow::Cow;
use std::str;

use super::raw::{FIELDS, REQUIRED, Raw, RawLine};
use super::{Event, Flaw, Kind, LONGEST};
use crate::input::UnixNanos;
use crate::redact;
use crate::time;

/// What the lines so far allow the next one.
#[derive(Debug, Default)]
pub(super) struct Order {
    ts: Option<UnixNanos>,
    step: Option<u64>,
}

pub(super) fn too_long() -> Flaw {
    let message = format!("the line is longer than {LONGEST} bytes");
    flaw("trace-line-too-long", None, message, "cut the output, not the event")
}

pub(super) fn truncated() -> Flaw {
    let message = "the trace ends in the middle of a line".to_owned();
    flaw("trace-truncated", None, message, "end every line, the last one too, with a newline")
}

impl Order {
    /// Gives the event, or all that is wrong with the line.
    pub fn line(&mut self, bytes: &[u8], take: &mut dyn FnMut(Result<Event<'_>, Flaw>)) {
        let mut good = true;
        let event = parse(bytes, &mut |flaw| {
            good = false;
            take(Err(flaw));
        });
        let Some(event) = event else { return };
        // Out of order, an event is still all there, and is judged.
        if self.ts.is_some_and(|last| event.ts < last) {
            let message = "the time is before that of an earlier line".to_owned();
            take(Err(flaw(
                "trace-time-backwards",
                Some("ts"),
                message,
                "write events in the order in which they happened",
            )));
        }
        if let (Some(last), Some(step)) = (self.step, event.step)
            && step < last
        {
            let message = format!("step {step} comes after step {last}");
            take(Err(flaw("trace-step-falls", Some("step"), message, "number steps upwards")));
        }
        self.ts = self.ts.max(Some(event.ts));
        self.step = self.step.max(event.step);
        if good {
            take(Ok(event));
        }
    }
}

fn parse<'a>(bytes: &'a [u8], fault: &mut dyn FnMut(Flaw)) -> Option<Event<'a>> {
    const JSON: &str = "write one JSON object on each line";
    if bytes.len() > LONGEST {
        fault(too_long());
        return None;
    }
    if memchr::memchr(0, bytes).is_some() {
        let help = "a trace is text; write it again, or say that it is damaged";
        fault(flaw("trace-nul", None, "the line holds a NUL byte".to_owned(), help));
        return None;
    }
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1);
            fault(flaw("trace-not-utf-8", None, message, "write the trace as UTF-8"));
            return None;
        }
    };
    let first = text.bytes().find(|b| !matches!(b, b' ' | b'\t' | b'\r'));
    if first.is_none() {
        fault(flaw("trace-blank-line", None, "the line is blank".to_owned(), "remove it"));
        return None;
    }
    if first != Some(b'{') {
        fault(flaw("trace-json", None, "the line is no JSON object".to_owned(), JSON));
        return None;
    }
    match serde_json::from_str(text) {
        Ok(raw) => Parts { raw, good: true, fault }.event(),
        Err(error) => {
            // Nothing of the line itself stands in what the parser says.
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default();
            let message = format!("the line is no JSON: {what}, at byte {}", error.column());
            fault(flaw("trace-json", None, message, JSON));
            None
        }
    }
}

struct Parts<'a, 'f> {
    raw: RawLine<'a>,
    good: bool,
    fault: &'f mut dyn FnMut(Flaw),
}

impl<'a> Parts<'a, '_> {
    fn event(mut self) -> Option<Event<'a>> {
        self.keys();
        let ts = self.ts();
        let kind = self.kind();
        let name = self.text(2, false);
        let binary = self.text(3, true);
        let argv = self.list(4);
        let cwd = self.text(5, true);
        let host = self.text(6, true);
        let step = self.step();
        let env = self.list(8);
        let server = self.text(9, true);
        let output = self.text(10, true);
        let digest = self.text(11, true);
        let tools = self.list(12);
        let (ts, kind, name) = (ts?, kind?, name?);
        let event = Event {
            ts,
            kind,
            name,
            binary,
            argv: argv.unwrap_or_default(),
            cwd,
            host,
            step,
            env: env.unwrap_or_default(),
            server,
            output,
            digest,
            tools,
        };
        self.needs(&event);
        self.good.then_some(event)
    }

    fn wrong(&mut self, rule: &'static str, field: &str, message: String, help: &'static str) {
        self.good = false;
        (self.fault)(flaw(rule, Some(field), message, help));
    }

    fn keys(&mut self) {
        for name in std::mem::take(&mut self.raw.unknown) {
            let message = "no field of a trace has this name".to_owned();
            let help = "the fields are ts, type, name, binary, argv, cwd, host, step, env, \
                        server, output, digest, tools";
            self.wrong("trace-unknown-field", &shown(&name), message, help);
        }
        for at in std::mem::take(&mut self.raw.again) {
            let message = "the field is written twice".to_owned();
            self.wrong("trace-duplicate-field", FIELDS[at], message, "keep one of the two");
        }
        let all = FIELDS.iter().zip(&self.raw.fields).take(REQUIRED);
        let missing = all.filter(|(_, value)| matches!(value, Raw::Missing));
        let missing: Vec<&str> = missing.map(|(field, _)| *field).collect();
        for field in missing {
            let message = "the field is missing".to_owned();
            let help = "write it; where there is nothing to say, null or []";
            self.wrong("trace-missing-field", field, message, help);
        }
    }

    fn take(&mut self, at: usize) -> Raw<'a> {
        std::mem::take(&mut self.raw.fields[at])
    }

    fn type_wrong(&mut self, at: usize, found: &str, wanted: &str) {
        let message = format!("{found} stands where {wanted} was expected");
        self.wrong("trace-wrong-type", FIELDS[at], message, "write it in its type");
    }

    fn ts(&mut self) -> Option<UnixNanos> {
        const NANOS: f64 = 1e9;
        /// Seconds that Unix time in nanoseconds goes up to, in 64 bits.
        const LAST: f64 = 18_446_744_073.0;
        let value = self.take(0);
        let ts = match &value {
            Raw::Missing => return None,
            Raw::Text(text) => time::rfc3339(text),
            Raw::Whole(seconds) => seconds.checked_mul(time::SECOND),
            // Were a later time cut down to the last one, no time would pass.
            Raw::Number(seconds) if (0.0..LAST).contains(seconds) => Some((seconds * NANOS) as u64),
            Raw::Number(_) => None,
            other => {
                let found = other.kind();
                self.type_wrong(0, found, "a time");
                return None;
            }
        };
        if ts.is_none() {
            let message = "this is no time".to_owned();
            let help = "write 2026-01-31T12:00:00Z (RFC 3339), or seconds since 1970";
            self.wrong("trace-time", "ts", message, help);
        }
        ts
    }

    fn kind(&mut self) -> Option<Kind> {
        let text = self.text(1, false)?;
        let found = Kind::ALL.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let message = format!("{} is no type of event", shown(&text));
            let help = "the types are step, tool_call, tool_result, exec, net, mcp_server";
            self.wrong("trace-unknown-type", "type", message, help);
        }
        found.map(|(_, kind)| *kind)
    }

    fn step(&mut self) -> Option<u64> {
        match self.take(7) {
            Raw::Missing | Raw::Null => None,
            Raw::Whole(step) => Some(step),
            other => {
                self.type_wrong(7, other.kind(), "a whole number from 0");
                None
            }
        }
    }

    fn text(&mut self, at: usize, or_null: bool) -> Option<Cow<'a, str>> {
        match self.take(at) {
            Raw::Missing => None,
            Raw::Null if or_null => None,
            Raw::Text(text) => {
                self.no_nul(at, &text);
                // An output may well be empty; a name of something may not.
                if text.is_empty() && FIELDS[at] != "output" {
                    let message = "the field is empty".to_owned();
                    self.wrong("trace-blank", FIELDS[at], message, "write a value, or null");
                }
                Some(text)
            }
            other => {
                let wanted = if or_null { "a string or null" } else { "a string" };
                self.type_wrong(at, other.kind(), wanted);
                None
            }
        }
    }

    fn list(&mut self, at: usize) -> Option<Vec<Cow<'a, str>>> {
        match self.take(at) {
            Raw::Missing => None,
            // What may be left out may be null as well.
            Raw::Null if at >= REQUIRED => None,
            Raw::List(items) => {
                for item in &items {
                    self.no_nul(at, item);
                }
                Some(items)
            }
            Raw::BadList(item, found) => {
                let found = format!("{found}, item {item} of the list,");
                self.type_wrong(at, &found, "a string");
                None
            }
            other => {
                self.type_wrong(at, other.kind(), "a list of strings");
                None
            }
        }
    }

    /// Only an escape can put one there.
    fn no_nul(&mut self, at: usize, text: &str) {
        if memchr::memchr(0, text.as_bytes()).is_some() {
            let message = "a string holds a NUL".to_owned();
            let help = "no argument, path or name can hold one; remove it";
            self.wrong("trace-nul", FIELDS[at], message, help);
        }
    }

    /// What events of some types must say.
    fn needs(&mut self, event: &Event<'_>) {
        let absent: &[(&str, bool)] = match event.kind {
            Kind::Step => &[],
            Kind::McpServer => &[
                ("server", event.server.is_none()),
                ("digest", event.digest.is_none()),
                ("tools", event.tools.is_none()),
            ],
            Kind::Exec => &[("cwd", event.cwd.is_none()), ("binary", event.binary.is_none())],
            Kind::Net => &[("cwd", event.cwd.is_none()), ("host", event.host.is_none())],
            Kind::ToolCall | Kind::ToolResult => &[("cwd", event.cwd.is_none())],
        };
        if !self.good {
            return;
        }
        for (field, absent) in absent {
            if *absent {
                let message = "an event of this type says nothing without it".to_owned();
                self.wrong("trace-missing-field", field, message, "write its value");
            }
        }
    }
}

fn flaw(rule: &'static str, field: Option<&str>, message: String, help: &'static str) -> Flaw {
    Flaw { rule, field: field.map(str::to_owned), message, help }
}

/// A text of the trace inside a message.
fn shown(text: &str) -> String {
    crate::fault::quoted(&String::from_utf8_lossy(&redact::text(text.as_bytes())))
}
