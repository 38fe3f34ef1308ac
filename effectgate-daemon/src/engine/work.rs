//! The engine's thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_common::maps::REGISTRAR_JOB;
use effectgate_core::{
    Output, State, Verdict,
    input::{
        Backend, Class, Event, Input, JobId, Known, Mode, Notice, Stage, Started, UnixNanos, What,
    },
    pin, step,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::{ClockId, Timespec, clock_gettime},
};

use super::{
    Config, Finish, JobSpec, Left, Request,
    canary::{self, Canary},
    coverage,
    job::Job,
    roots::{Roots, warn},
};
use crate::{
    observe::{attribute::Attributor, decode::decode, kernel, kernel::Kernel, proc},
    run::cgroup,
    sinks::{evidence::Evidence, metrics::Metrics},
};

/// How long events may lie in the ring while little is going on.
const NAP: Duration = Duration::from_millis(5);
/// How often losses are looked up and logs made durable.
const TICK: Duration = Duration::from_secs(1);
/// Canaries that may get lost in a full ring before that counts as a failure.
const CANARIES: usize = 3;
/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Work {
    kernel: Kernel,
    attributor: Attributor,
    state: State,
    roots: Roots,
    jobs: BTreeMap<JobId, Job>,
    last: JobId,
    canary: Option<Canary>,
    /// When a canary was last heard, and in which classes.
    heard: Option<(Instant, Vec<Class>)>,
    metrics: Arc<Metrics>,
    host: String,
    release: String,
    programs: String,
    ticked: Instant,
    /// Records that could not be decoded, not yet reported.
    garbled: u64,
}

impl Work {
    /// Loads the best backend that works.
    pub fn begin(config: &Config, metrics: Arc<Metrics>) -> Result<Work> {
        let candidates = match config.backend {
            Some(backend) => vec![backend],
            None => vec![Backend::Lsm, Backend::TracePoint],
        };
        let mut refusals = Vec::new();
        let only = candidates.len() == 1;
        for backend in candidates {
            match Work::with(backend, config, &metrics) {
                Ok(work) => return Ok(work),
                Err(error) if only => {
                    return Err(error.context(format!("the backend {} fails here", backend.name())));
                }
                Err(error) => refusals.push(format!("{}: {error:#}", backend.name())),
            }
        }
        bail!("no backend is to be had here\n  {}", refusals.join("\n  "))
    }

    fn with(backend: Backend, config: &Config, metrics: &Arc<Metrics>) -> Result<Work> {
        cgroup::sweep(&config.cgroup_root.join(proc::own_cgroup()?));
        let kernel = Kernel::load(backend, config.ring_bytes, &config.cgroup_root)?;
        let uname = rustix::system::uname();
        let mut work = Work {
            kernel,
            attributor: Attributor::new(boot_offset()),
            state: State::new(),
            roots: Roots::default(),
            jobs: BTreeMap::new(),
            last: 0,
            canary: None,
            heard: None,
            metrics: Arc::clone(metrics),
            host: uname.nodename().to_string_lossy().into_owned(),
            release: uname.release().to_string_lossy().into_owned(),
            programs: pin::digest(kernel::object()?),
            ticked: Instant::now(),
            garbled: 0,
        };
        work.kernel.label(thread_id(), REGISTRAR_JOB)?;
        work.kernel.loss_counters(canary::JOB, true)?;
        work.fresh_canary()?;
        metrics.backend(backend, coverage(backend));
        Ok(work)
    }

    pub fn backend(&self) -> Backend {
        self.kernel.backend
    }

    /// Until told to stop.
    pub fn run(&mut self, inbox: &Receiver<Request>, wake: &OwnedFd) {
        loop {
            let drained = self.drain();
            while let Ok(request) = inbox.try_recv() {
                match request {
                    Request::Start(spec, reply) => {
                        let _ = reply.send(self.start(*spec));
                    }
                    Request::Finish(finish, reply) => {
                        let _ = reply.send(self.finish(finish));
                    }
                    Request::List(reply) => {
                        let backend = self.backend();
                        let _ = reply.send(self.jobs.values().map(|j| j.status(backend)).collect());
                    }
                    Request::Stop => return self.stop(),
                }
            }
            if self.ticked.elapsed() >= TICK {
                self.tick();
            }
            if drained == 0 {
                let busy = !self.jobs.is_empty();
                self.rest(Some(wake), busy.then_some(NAP));
            }
        }
    }

    /// Until something is in the ring or at the door, `nap` at most.
    fn rest(&self, wake: Option<&OwnedFd>, nap: Option<Duration>) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.kernel.ring_fd(), PollFlags::IN)];
        fds.extend(wake.map(|wake| PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)));
        let nap = nap.map(timespec);
        let _ = poll(&mut fds, nap.as_ref());
        if let Some(wake) = wake {
            let _ = rustix::io::read(wake, &mut [0u8; 8]);
        }
    }

    /// Takes what is in the ring; returns how many records there were.
    fn drain(&mut self) -> usize {
        let mut events: Vec<Event> = Vec::new();
        let mut count = 0;
        // Bounded, so that requests and ticks get their turn under load.
        while count < 4096 {
            let Some(item) = self.kernel.ring().next() else { break };
            count += 1;
            match decode(&item) {
                Ok(record) => self.attributor.take(&record, &mut events),
                Err(error) => {
                    tracing::error!("{error}");
                    self.garbled += 1;
                }
            }
        }
        for event in events {
            self.event(event);
        }
        self.kernel.diagnose();
        count
    }

    /// By the same clock as events: boot time and one offset.
    fn now(&self) -> UnixNanos {
        self.attributor.time(nanos(clock_gettime(ClockId::Boottime)))
    }

    fn event(&mut self, event: Event) {
        if event.job == canary::JOB {
            if let Some(canary) = &mut self.canary {
                canary.hear(&event);
            }
            return;
        }
        self.step(Input::Event(event));
    }

    fn step(&mut self, input: Input) -> Option<Verdict> {
        let Output { records, verdict, ignored } = step(&mut self.state, input);
        if ignored {
            self.metrics.ignored();
        }
        for line in &records {
            self.metrics.line(line);
            if let Some(job) = self.jobs.get_mut(&line.job) {
                job.write(line);
            }
        }
        verdict
    }

    /// Proves that effects of every class are seen.
    ///
    /// # Errors
    /// When they are not.
    fn fresh_canary(&mut self) -> Result<Vec<Class>> {
        let mut missing = Vec::new();
        // One whose records were lost in a full ring proves nothing either way.
        for _ in 0..CANARIES {
            let before = self.canaries_lost();
            let canary = self.hear_canary()?;
            missing = canary.missing();
            if missing.is_empty() {
                self.heard = Some((Instant::now(), canary.seen()));
                return Ok(canary.seen());
            }
            if self.canaries_lost() == before {
                break;
            }
        }
        let names: Vec<&str> = missing.iter().map(|class| class.name()).collect();
        bail!(
            "hooks are attached, but a test effect of class {} was not seen; another security \
             tool may have switched them off (see kernel.ftrace_enabled)",
            names.join(", ")
        )
    }

    /// As [`Work::fresh_canary`], unless that has just been done.
    fn recent_canary(&mut self) -> Result<Vec<Class>> {
        match &self.heard {
            Some((at, seen)) if at.elapsed() < TICK => Ok(seen.clone()),
            _ => self.fresh_canary(),
        }
    }

    fn hear_canary(&mut self) -> Result<Canary> {
        let mut canary = Canary::start()?;
        self.kernel.label(canary.pid(), canary::JOB)?;
        canary.go()?;
        self.canary = Some(canary);
        while self.canary.as_ref().is_some_and(|canary| !canary.done()) {
            if self.drain() == 0 {
                self.rest(None, Some(Duration::from_millis(1)));
            }
        }
        self.canary.take().context("the canary is awaited here only")
    }

    fn canaries_lost(&mut self) -> u64 {
        self.kernel.lost(canary::JOB).map_or(0, |lost| lost.iter().map(|(_, count)| count).sum())
    }

    fn start(&mut self, spec: JobSpec) -> Result<JobId> {
        self.last += 1;
        let id = self.last;
        let result = self.try_start(id, spec);
        if result.is_err() {
            self.forget(id);
        }
        result.map(|()| id)
    }

    fn try_start(&mut self, id: JobId, spec: JobSpec) -> Result<()> {
        let cgroup_id = proc::cgroup_id(&spec.cgroup)
            .with_context(|| format!("no cgroup {}", spec.cgroup.display()))?;
        let nested = |job: &&Job| {
            job.cgroup.starts_with(&spec.cgroup) || spec.cgroup.starts_with(&job.cgroup)
        };
        if let Some(other) = self.jobs.values().find(nested) {
            bail!(
                "the cgroup {} and that of job {}, {}, lie one in the other: a process belongs to one job",
                spec.cgroup.display(),
                other.id,
                other.cgroup.display()
            );
        }
        let backend = self.backend();
        if let Some((class, has)) = coverage(backend).below(spec.min_coverage).next() {
            bail!(
                "the {} backend has coverage `{}` for class {}, less than the `{}` that is wanted: \
                 choose another backend or a lower --min-coverage",
                backend.name(),
                has.name(),
                class.name(),
                spec.min_coverage.name()
            );
        }
        let entries = spec.policy.roots.entries.iter().enumerate();
        let wanted: Vec<_> = entries
            .map(|(index, entry)| (entry.value.clone().into(), Some(index)))
            .chain(spec.tmpdir.iter().map(|dir| (dir.clone(), None)))
            .collect();
        let roots = self.roots.grant(&mut self.kernel, id, &wanted)?;
        if let Some(file) = &spec.metrics_file {
            self.roots.keep_out(file)?;
        }
        let seen = self.recent_canary()?;
        let evidence = match &spec.evidence {
            Some(dir) => {
                self.roots.keep_out(dir)?;
                let note = spec.note.as_ref().map(|(_, bytes)| bytes.as_slice());
                Some(Evidence::create(dir, &spec.policy_bytes, note)?)
            }
            None => None,
        };
        let ts = self.now();
        self.attributor.start(id, roots.clone());
        self.kernel.loss_counters(id, true)?;
        self.jobs.insert(
            id,
            Job {
                id,
                name: spec.name.clone(),
                policy: spec.policy.id.clone(),
                cgroup: spec.cgroup.clone(),
                cgroup_id,
                started: ts,
                evidence,
                reported: Vec::new(),
                records: 0,
                violations: 0,
                lost: 0,
                failed: None,
            },
        );
        // From here on what enters the cgroup is the job; what is in it already
        // is looked up, and what it does meanwhile waits in the ring.
        self.kernel.adopt_cgroup(cgroup_id, id)?;
        let members = proc::members(&spec.cgroup)
            .with_context(|| format!("cannot tell who is in {}", spec.cgroup.display()))?;
        let mut processes: Vec<Known> = Vec::new();
        let mut env = Vec::new();
        let mut unread = Vec::new();
        for pid in members {
            let threads = proc::threads(pid);
            for tid in threads.with_context(|| format!("cannot tell the threads of {pid}"))? {
                self.kernel.label(tid, id)?;
            }
            processes.push(proc::known(pid));
            match proc::env_names(pid) {
                Some(names) => env.extend(names),
                None if proc::process_of(pid).is_none() => {}
                None => unread.push(pid),
            }
        }
        env.sort();
        env.dedup();
        self.step(Input::Started(Box::new(Started {
            job: id,
            ts,
            boot_offset: self.attributor.time(0),
            name: spec.name,
            policy: spec.policy,
            note: spec.note.map(|(note, _)| note),
            host: self.host.clone(),
            kernel: self.release.clone(),
            backend,
            coverage: coverage(backend),
            min_coverage: spec.min_coverage,
            mode: Mode::Observe,
            programs: self.programs.clone(),
            argv: spec.argv,
            cgroup: spec.cgroup.display().to_string(),
            roots,
            hosts: spec.hosts,
            streams: spec.streams,
            terminals: spec.terminals,
            env,
            processes,
        })));
        self.step(Input::Canary { job: id, ts: self.now(), seen, missing: Vec::new() });
        self.step(Input::Launched { job: id, ts: self.now() });
        for pid in unread {
            // There, but what it holds cannot be told.
            let what = What::Env { names: Vec::new(), complete: false };
            let comm = proc::known(pid).comm;
            let event = Event { ts: self.now(), job: id, pid, tid: pid, uid: 0, comm, what };
            self.step(Input::Event(event));
        }
        self.metrics.jobs(self.jobs.len());
        Ok(())
    }

    fn finish(&mut self, finish: Finish) -> Result<Verdict> {
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
        let mut rest = Vec::new();
        self.attributor.flush(id, &mut rest);
        for event in rest {
            self.event(event);
        }
        self.losses(id);
        for notice in notices {
            self.step(Input::Notice { job: id, ts: self.now(), notice });
        }
        let verdict = self.step(Input::Finished { job: id, ts: self.now(), exit });
        let job = self.forget(id).context("the job was just there")?;
        let verdict = verdict.context("the pipeline gave no verdict")?;
        if let Some(why) = job.failed {
            bail!("{why}: there is no whole evidence, and so no verdict");
        }
        if let Some(evidence) = job.evidence {
            evidence.close(&verdict)?;
        }
        self.metrics.verdict(&verdict);
        Ok(verdict)
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
    fn forget(&mut self, id: JobId) -> Option<Job> {
        self.roots.release(&mut self.kernel, id);
        self.attributor.finish(id);
        warn(self.kernel.loss_counters(id, false));
        let job = self.jobs.remove(&id);
        if let Some(job) = &job {
            warn(self.kernel.forget_cgroup(job.cgroup_id));
        }
        match self.kernel.labelled(id) {
            Ok(tids) => tids.into_iter().for_each(|tid| warn(self.kernel.unlabel(tid))),
            Err(error) => warn(Err(error)),
        }
        self.metrics.jobs(self.jobs.len());
        job
    }

    fn tick(&mut self) {
        self.ticked = Instant::now();
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            self.losses(id);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.sync();
            }
        }
    }

    /// Turns counted losses into a gap record.
    fn losses(&mut self, id: JobId) {
        let lost = match self.kernel.lost(id) {
            Ok(lost) => lost,
            Err(error) => {
                let why = format!("losses cannot be read: {error:#}");
                self.step(Input::Notice {
                    job: id,
                    ts: self.now(),
                    notice: Notice::CanaryFailed { why },
                });
                return;
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
        if self.garbled > 0 {
            // Whose record it was cannot be told, so every job is told.
            let lost = vec![(Class::Guard, std::mem::take(&mut self.garbled))];
            self.metrics.lost(Stage::Decode, &lost);
            for job in self.jobs.keys().copied().collect::<Vec<_>>() {
                let lost = lost.clone();
                if let Some(job) = self.jobs.get_mut(&job) {
                    job.lost += 1;
                }
                self.step(Input::Gap { job, ts: self.now(), stage: Stage::Decode, lost });
            }
        }
    }

    /// Jobs that are still there when the engine stops get their verdict.
    fn stop(&mut self) {
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            let why = "the observer was stopped".to_owned();
            if let Err(error) = self.finish(Finish {
                job: id,
                exit: None,
                notices: vec![Notice::Stopped { why }],
                left: Left::Alone,
            }) {
                tracing::error!("job {id}: {error:#}");
            }
        }
    }
}

/// Unix time minus boot time, nanoseconds, at this moment.
fn boot_offset() -> u64 {
    nanos(clock_gettime(ClockId::Realtime)).wrapping_sub(nanos(clock_gettime(ClockId::Boottime)))
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}

fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}
