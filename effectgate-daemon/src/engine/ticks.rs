//! What is looked after while jobs run: their bounds, what they lost, and that
//! their logs are durable.

use std::time::Instant;

use anyhow::Result;
use effectgate_core::input::{Class, Input, JobId, Limited, Notice, Stage};

use super::{job::Job, kill_cgroup, roots::warn, work::Work};
use crate::observe::proc;

impl Work {
    /// Stops the jobs whose time is over.
    pub(super) fn bounds(&mut self) {
        let now = self.now();
        let over = self.jobs.values().filter_map(|job| Some((job.id, job.out_of_time(now)?)));
        for (id, value) in over.collect::<Vec<_>>() {
            self.put_an_end_to(id, Notice::Limit { limit: Limited::WallClock, value });
        }
    }

    /// Kills a job's processes for what its policy says, wherever they went.
    pub(super) fn put_an_end_to(&mut self, id: JobId, notice: Notice) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.stopped = true;
        }
        self.note(id, notice);
        self.kill(id);
    }

    /// Has a record say what the engine found out, or did.
    pub(super) fn note(&mut self, id: JobId, notice: Notice) {
        self.step(Input::Notice { job: id, ts: self.now(), notice });
    }

    fn kill(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        warn(kill_cgroup(&job.cgroup));
        match self.kernel.labelled(id) {
            Ok(tids) => tids.into_iter().filter_map(proc::process_of).for_each(proc::kill),
            Err(error) => warn(Err(error)),
        }
    }

    pub(super) fn tick(&mut self) {
        self.ticked = Instant::now();
        if !self.jobs.is_empty() {
            self.check();
        }
        if let Err(error) = self.unattributed() {
            self.wrong(format!("{error:#}"));
        }
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            self.losses(id);
            let lossy = |job: &&Job| job.kills_on_loss && job.lost > 0 && !job.stopped;
            if self.jobs.get(&id).filter(lossy).is_some() {
                let why = "records were lost, and the policy says on_loss: kill".to_owned();
                self.put_an_end_to(id, Notice::Stopped { why });
            } else if self.jobs.get(&id).is_some_and(|job| job.stopped) {
                // What joined it since, or was being made while it was killed.
                self.kill(id);
            }
            if let Some(job) = self.jobs.get_mut(&id) {
                job.sync(|| self.state.log(id));
            }
        }
    }

    /// Says how many effects were seen before and not reported again.
    pub(super) fn repeats(&mut self, id: JobId) {
        let counts = match self.kernel.repeated(id) {
            Ok(counts) => counts,
            Err(error) => return warn(Err(error)),
        };
        let counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        if !counts.is_empty() {
            self.note(id, Notice::Repeated { counts });
        }
    }

    /// Says so when more numbers are missing among a job's records than were
    /// counted as lost: nothing explains them.
    pub(super) fn holes(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let unexplained = self.kernel.missing(id).saturating_sub(job.lost);
        if unexplained > 0 {
            job.lost += unexplained;
            let lost = vec![(Class::Guard, unexplained)];
            self.metrics.lost(Stage::Ring, &lost);
            self.step(Input::Gap { job: id, ts: self.now(), stage: Stage::Ring, lost });
        }
    }

    /// Turns counted losses into a gap record.
    pub(super) fn losses(&mut self, id: JobId) {
        let lost = match self.kernel.lost(id) {
            Ok(lost) => lost,
            Err(error) => {
                let why = format!("losses cannot be read: {error:#}");
                return self.note(id, Notice::CanaryFailed { why });
            }
        };
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let before = std::mem::replace(&mut job.reported, lost.clone());
        let new: Vec<(Class, u64)> = lost
            .into_iter()
            .map(|(class, count)| {
                let known = before.iter().find(|(c, _)| *c == class).map_or(0, |(_, n)| *n);
                (class, count.saturating_sub(known))
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        job.lost += new.iter().map(|(_, count)| count).sum::<u64>();
        if !new.is_empty() {
            self.metrics.lost(Stage::Ring, &new);
            self.step(Input::Gap { job: id, ts: self.now(), stage: Stage::Ring, lost: new });
        }
    }

    /// Turns records that could not be decoded, and effects that the kernel may not
    /// have told of, into gap records. Whose they were cannot be told, so every job is
    /// told.
    ///
    /// # Errors
    /// When the kernel does not say what it told.
    pub(super) fn unattributed(&mut self) -> Result<()> {
        let garbled = std::mem::take(&mut self.garbled);
        self.lost_of_all(Stage::Decode, vec![(Class::Guard, garbled)]);
        let skipped = self.kernel.skipped()?;
        self.lost_of_all(Stage::Hook, skipped);
        Ok(())
    }

    fn lost_of_all(&mut self, stage: Stage, lost: Vec<(Class, u64)>) {
        let count: u64 = lost.iter().map(|(_, count)| count).sum();
        if count == 0 || self.jobs.is_empty() {
            return;
        }
        self.metrics.lost(stage, &lost);
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.lost += count;
            }
            self.step(Input::Gap { job: id, ts: self.now(), stage, lost: lost.clone() });
        }
    }
}
