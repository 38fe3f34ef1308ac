//! The pipeline's only step: an input in, records out. Live, replay and the
//! tests call the same one; the same inputs give the same bytes.

mod job;

use std::collections::BTreeMap;

use job::Job;

use crate::input::{Class, Input, JobId};
use crate::judge::Decision;
use crate::verdict::{Log, Verdict, Violation};

/// The jobs that are being watched.
#[derive(Debug, Default)]
pub struct State {
    jobs: BTreeMap<JobId, Job>,
    ignored: u64,
}

/// What came of an input.
#[derive(Debug, Default)]
pub struct Output {
    /// In the order in which they must be written.
    pub records: Vec<Line>,
    /// Of the job that just finished.
    pub verdict: Option<Verdict>,
    /// The input changed nothing: its job is not being watched, was started
    /// twice or launched twice.
    pub ignored: bool,
}

/// One line of a job's log, and what its sinks want to know without parsing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub job: JobId,
    pub seq: u64,
    /// Canonical JSON, without newline.
    pub bytes: Vec<u8>,
    pub class: Class,
    pub action: &'static str,
    pub decision: Decision,
    /// One for each thing outside the policy that the record speaks of.
    pub violations: Vec<Violation>,
    /// The process of an effect that is not known to be inside the policy.
    pub doubted: Option<u32>,
}

impl State {
    pub fn new() -> Self {
        State::default()
    }

    /// Inputs that were ignored since the beginning.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// A job's log as far as it goes; `None` when it is not being watched.
    pub fn log(&self, job: JobId) -> Option<Log> {
        self.jobs.get(&job).map(Job::log)
    }

    /// Jobs that have started and not finished.
    pub fn watched(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }
}

/// Takes one input.
pub fn step(state: &mut State, mut input: Input) -> Output {
    crate::redact::input(&mut input);
    written(state, input)
}

/// Takes an input that a record was read back into. Secrets were taken out of it
/// by the version that wrote it: what this one would take out beyond that is no
/// other record.
pub(crate) fn written(state: &mut State, input: Input) -> Output {
    let mut output = Output::default();
    let taken = match input {
        Input::Started(started) => {
            let free = !state.jobs.contains_key(&started.job);
            if free {
                let id = started.job;
                state.jobs.insert(id, Job::open(*started, &mut output.records));
            }
            free
        }
        Input::Finished { job, ts, exit } => match state.jobs.remove(&job) {
            Some(job) => {
                output.verdict = Some(job.close(ts, exit, &mut output.records));
                true
            }
            None => false,
        },
        other => state
            .jobs
            .get_mut(&job_of(&other))
            .is_some_and(|job| job.take(other, &mut output.records)),
    };
    if !taken {
        output.ignored = true;
        state.ignored += 1;
    }
    output
}

fn job_of(input: &Input) -> JobId {
    match input {
        Input::Started(started) => started.job,
        Input::Event(event) => event.job,
        Input::Canary { job, .. }
        | Input::Launched { job, .. }
        | Input::Gap { job, .. }
        | Input::Notice { job, .. }
        | Input::Finished { job, .. } => *job,
    }
}
