//! How a job ends: its processes first, then a canary that is heard after all
//! that they did, then the verdict.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_core::{
    Verdict,
    input::{Input, JobId, Notice},
};

use super::{Finish, Left, job::Job, roots::warn, work::Work};
use crate::{observe::proc, sinks::evidence::Evidence};

/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

impl Work {
    /// The verdict, and the evidence that it is to be written to: that takes time
    /// which the other jobs do not have.
    pub(super) fn finish(&mut self, finish: Finish) -> Result<(Verdict, Option<Evidence>)> {
        let Finish { job: id, exit, mut notices, left } = finish;
        ensure!(self.jobs.contains_key(&id), "no job {id} is being watched");
        if let Left::Killed { spared } = left {
            match self.end(id, &spared) {
                Ok(0) => {}
                Ok(killed) => notices.push(Notice::Leftovers { killed }),
                Err(error) => notices.push(Notice::Stopped { why: format!("{error:#}") }),
            }
        }
        // Heard after everything that the job did, and a proof that hooks fired
        // to the end.
        if let Err(error) = self.fresh_canary() {
            notices.push(Notice::CanaryFailed { why: format!("{error:#}") });
        }
        self.flush(id);
        if let Err(error) = self.unattributed() {
            notices.push(Notice::CanaryFailed { why: format!("{error:#}") });
        }
        self.losses(id);
        self.holes(id);
        self.repeats(id);
        for notice in notices {
            self.note(id, notice);
        }
        let verdict = self.step(Input::Finished { job: id, ts: self.now(), exit });
        let job = self.forget(id).context("the job was just there")?;
        let verdict = verdict.context("the pipeline gave no verdict")?;
        if let Some(why) = job.failed {
            bail!("{why}: there is no whole evidence, and so no verdict");
        }
        Ok((verdict, job.evidence))
    }

    /// Kills the job's processes wherever they went, all but those spared;
    /// returns how many there were.
    fn end(&mut self, id: JobId, spared: &[u32]) -> Result<u32> {
        let until = Instant::now() + PATIENCE;
        let mut killed = BTreeSet::new();
        loop {
            let left: BTreeSet<u32> = self
                .kernel
                .labelled(id)?
                .into_iter()
                .filter_map(proc::process_of)
                .filter(|pid| !spared.contains(pid))
                .collect();
            if left.is_empty() {
                return Ok(killed.len() as u32);
            }
            ensure!(Instant::now() < until, "processes of the job do not die: {left:?}");
            for pid in &left {
                proc::kill(*pid);
            }
            killed.extend(left);
            if self.drain() == 0 {
                self.rest(None, Some(Duration::from_millis(1)));
            }
        }
    }

    /// Undoes what a start did.
    pub(super) fn forget(&mut self, id: JobId) -> Option<Job> {
        // What the kernel programs know by its inode stays open until they do not.
        if let Some(tables) = self.tables.remove(&id) {
            tables.release(&mut self.kernel);
        }
        self.roots.release(&mut self.kernel, id);
        self.attributor.finish(id);
        warn(self.kernel.counters(id, false));
        warn(self.kernel.judge_no_more(id));
        let job = self.jobs.remove(&id);
        if let Some(job) = &job {
            warn(self.kernel.forget_cgroup(job.cgroup_id));
        }
        match self.kernel.labelled(id) {
            Ok(tids) => tids.into_iter().for_each(|tid| warn(self.kernel.unlabel(tid))),
            Err(error) => warn(Err(error)),
        }
        // Nobody has the job's label any more, who would make others.
        warn(self.kernel.networks(id, false));
        self.metrics.jobs(self.jobs.len());
        job
    }
}
