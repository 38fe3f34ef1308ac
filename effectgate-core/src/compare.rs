//! A trace held against a manifest: what the agent's harness wrote down, or
//! EffectGate's own event log. Constant memory; everything that does not hold
//! is counted, the first of each rule are listed.

mod bounds;
mod event;
mod findings;
mod log;
mod place;
mod program;
mod reach;
mod server;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Read as _};

use serde::Serialize;

pub use bounds::{Bounds, Used};
pub use findings::{Cited, Finding};
pub use log::is_log;

use crate::input::UnixNanos;
use crate::policy::Policy;
use crate::scan::Scan;
use crate::{time, trace};

use event::Judge;
use findings::Findings;

pub const SCHEMA: &str = "effectgate.comparison/v1";

/// No first line is longer (bytes). A log's opening record holds the job's
/// arguments; see `replay`.
const FIRST: u64 = 16 << 20;

/// What a trace is held against, and where.
pub struct Against<'a> {
    pub policy: &'a Policy,
    /// The workspace, as an absolute path.
    pub workspace: &'a str,
    /// The day on which exceptions must still hold, `YYYY-MM-DD`.
    pub today: &'a str,
    /// The path that an absolute path leads to, links followed; `None` where
    /// that is not known, as on another machine.
    pub resolve: &'a mut dyn FnMut(&str) -> Option<String>,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub schema: &'static str,
    pub holds: bool,
    pub manifest: ManifestRef,
    pub form: Form,
    /// Lines of the trace, records of the log.
    pub lines: u64,
    /// Those that could be read.
    pub events: u64,
    /// RFC 3339, UTC.
    pub first: Option<String>,
    /// RFC 3339, UTC.
    pub last: Option<String>,
    /// The day on which exceptions had to hold.
    pub day: String,
    /// What relative paths were held against.
    pub workspace: String,
    /// The first of each rule, in the order of the trace.
    pub findings: Vec<Finding>,
    /// All of them, by rule.
    pub counts: BTreeMap<&'static str, u64>,
    /// How far the limits were used; written beside, not inside.
    #[serde(skip)]
    pub bounds: Bounds,
    /// Where secrets stand; written beside, not inside.
    #[serde(skip)]
    pub secrets: Scan,
}

/// The manifest that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManifestRef {
    pub id: String,
    pub file: String,
    pub sha256: String,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    Trace,
    EventLog,
    /// Nothing was there to read.
    None,
}

/// Compares.
///
/// # Errors
/// When the trace cannot be read. A trace that cannot be understood is a finding.
pub fn compare(mut trace: impl BufRead, against: Against<'_>) -> io::Result<Comparison> {
    let first = first_line(&mut trace)?;
    let whole = first.as_slice().chain(trace);
    if is_log(&first) { log::compare(whole, &against) } else { lines(whole, against) }
}

/// The first line of a trace or a log, by which they are told apart.
///
/// # Errors
/// When it cannot be read.
pub fn first_line(trace: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    trace.take(FIRST).read_until(b'\n', &mut first)?;
    Ok(first)
}

/// The comparison when there is no trace at all.
pub fn without_trace(policy: &Policy, workspace: &str, today: &str) -> Comparison {
    let mut findings = Findings::new(policy);
    event::nothing_seen("trace-missing", "there is no trace", policy, &mut findings);
    let mut comparison = Comparison::unread(policy, workspace, today).with(findings);
    comparison.form = Form::None;
    comparison
}

fn lines(whole: impl BufRead, against: Against<'_>) -> io::Result<Comparison> {
    let (policy, workspace, today) = (against.policy, against.workspace, against.today);
    let mut findings = Findings::new(policy);
    let mut judge = Judge::new(against);
    let lines = trace::read(whole, |line, seen| match seen {
        Ok(event) => judge.event(line, &event, &mut findings),
        Err(flaw) => findings.flaw(line, flaw),
    })?;
    if lines == 0 {
        event::nothing_seen("trace-empty", "the trace is empty", policy, &mut findings);
    }
    let ended = judge.end(&mut findings);
    let mut comparison = Comparison::unread(policy, workspace, today).with(findings);
    comparison.lines = lines;
    comparison.events = ended.events;
    comparison.first = ended.times.map(|(first, _)| time::format(first));
    comparison.last = ended.times.map(|(_, last)| time::format(last));
    comparison.bounds = ended.bounds;
    comparison.secrets = ended.secrets;
    Ok(comparison)
}

/// What is known of a trace that was read to its end.
struct Ended {
    events: u64,
    times: Option<(UnixNanos, UnixNanos)>,
    bounds: Bounds,
    secrets: Scan,
}

impl Comparison {
    /// Before anything was read.
    fn unread(policy: &Policy, workspace: &str, today: &str) -> Self {
        Comparison {
            schema: SCHEMA,
            holds: true,
            manifest: ManifestRef {
                id: policy.id.clone(),
                file: policy.file.clone(),
                sha256: policy.sha256.clone(),
            },
            form: Form::Trace,
            lines: 0,
            events: 0,
            first: None,
            last: None,
            day: today.to_owned(),
            workspace: workspace.to_owned(),
            findings: Vec::new(),
            counts: BTreeMap::new(),
            bounds: Bounds::unused(policy),
            secrets: Scan::default(),
        }
    }

    fn with(self, findings: Findings) -> Self {
        let (findings, counts) = findings.into_parts();
        Comparison { holds: counts.is_empty(), findings, counts, ..self }
    }

    /// All that does not hold, listed or not.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// `compare: does not hold (3 findings in 120 events)`
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "holds" } else { "does not hold" };
        let (count, events) = (self.total(), self.events);
        let s = if count == 1 { "" } else { "s" };
        write!(f, "compare: {word} ({count} finding{s} in {events} events)")
    }
}

impl fmt::Debug for Against<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Against").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}
