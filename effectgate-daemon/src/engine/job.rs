//! One job as the engine keeps it.

use std::{collections::BTreeMap, fs::File, path::PathBuf};

use effectgate_core::{
    Line,
    input::{Class, JobId, Mode},
    time,
    verdict::Log,
};

use super::{JobStatus, kill_cgroup};
use crate::sinks::evidence::Evidence;

/// What the engine knows of a job beside the pipeline's state.
#[derive(Debug)]
pub struct Job {
    pub id: JobId,
    pub name: String,
    pub policy: String,
    pub cgroup: PathBuf,
    pub cgroup_id: u64,
    pub mode: Mode,
    pub started: u64,
    pub evidence: Option<Evidence>,
    /// Losses already reported, by class.
    pub reported: Vec<(Class, u64)>,
    pub records: u64,
    pub violations: u64,
    pub lost: u64,
    /// Why its evidence is not whole.
    pub failed: Option<String>,
    /// Seconds after the launch at which it is stopped.
    pub bound: Option<u64>,
    pub launched: Option<u64>,
    /// Its policy has it killed when records are lost.
    pub kills_on_loss: bool,
    /// It was killed for what its policy says.
    pub stopped: bool,
    /// Network namespaces that are its own by their numbers, held so that these
    /// are not another's.
    pub networks: BTreeMap<u64, File>,
}

impl Job {
    /// Writes a line of the log. Evidence that cannot be written ends the job:
    /// nobody could tell any more what it did.
    pub fn write(&mut self, line: &Line) {
        self.records += 1;
        self.violations += line.violations.len() as u64;
        let Some(evidence) = self.evidence.as_mut().filter(|_| self.failed.is_none()) else {
            return;
        };
        if let Err(error) = evidence.append(&line.bytes) {
            self.fail(format!("{error:#}"));
        }
    }

    /// Makes what was written durable, and has it signed now and then; `log`
    /// says what was written.
    pub fn sync(&mut self, log: impl FnOnce() -> Option<Log>) {
        let Some(evidence) = self.evidence.as_mut().filter(|_| self.failed.is_none()) else {
            return;
        };
        match evidence.sync() {
            Ok(()) => evidence.checkpoint(log),
            Err(error) => self.fail(format!("{error:#}")),
        }
    }

    /// Whole seconds since its launch, once its bound is reached.
    pub fn out_of_time(&self, now: u64) -> Option<u64> {
        let seconds = now.checked_sub(self.launched?)? / time::SECOND;
        (!self.stopped && seconds >= self.bound?).then_some(seconds)
    }

    fn fail(&mut self, why: String) {
        tracing::error!(job = self.name, "{why}; the job is stopped");
        self.failed = Some(why);
        if let Err(error) = kill_cgroup(&self.cgroup) {
            tracing::error!("{error:#}");
        }
    }

    /// As `list` shows it.
    pub fn status(&self, backend: effectgate_core::input::Backend) -> JobStatus {
        JobStatus {
            id: self.id,
            name: self.name.clone(),
            policy: self.policy.clone(),
            cgroup: self.cgroup.clone(),
            backend,
            started: time::format(self.started),
            records: self.records,
            synced: self.evidence.as_ref().map_or(0, Evidence::synced),
            violations: self.violations,
            lost: self.lost,
            failed: self.failed.clone(),
        }
    }
}
