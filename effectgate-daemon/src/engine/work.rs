//! The engine's thread.

use std::{
    collections::BTreeMap,
    net::{IpAddr, ToSocketAddrs},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_common::maps::REGISTRAR_JOB;
use effectgate_core::{
    Output, State, Verdict,
    input::{
        Backend, Class, Event, Exit, Input, JobId, Known, Mode, Notice, Stage, Started, UnixNanos,
    },
    pin, step,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::{ClockId, Timespec, clock_gettime},
};

use super::{
    Config, JobSpec, Request,
    canary::{self, Cage},
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

/// The classes in which the canary was heard, and those in which not.
type Heard = (Vec<Class>, Vec<Class>);

pub struct Work {
    kernel: Kernel,
    attributor: Attributor,
    state: State,
    roots: Roots,
    jobs: BTreeMap<JobId, Job>,
    last: JobId,
    /// The cgroup below which the canary gets its own.
    own_cgroup: PathBuf,
    bird: Option<canary::Bird>,
    /// When the canary last spoke, and what of it was heard and what not.
    heard: Option<(Instant, Heard)>,
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
        for backend in candidates {
            match Work::with(backend, config, &metrics) {
                Ok(work) => return Ok(work),
                Err(error) => refusals.push(format!("{}: {error:#}", backend.name())),
            }
        }
        bail!("no backend to be had\n  {}", refusals.join("\n  "))
    }

    fn with(backend: Backend, config: &Config, metrics: &Arc<Metrics>) -> Result<Work> {
        let own_cgroup = config.cgroup_root.join(proc::own_cgroup()?);
        cgroup::sweep(&own_cgroup);
        let kernel = Kernel::load(backend, config.ring_bytes, &config.cgroup_root)?;
        let uname = rustix::system::uname();
        let mut work = Work {
            kernel,
            attributor: Attributor::new(boot_offset()),
            state: State::new(),
            roots: Roots::default(),
            jobs: BTreeMap::new(),
            last: 0,
            own_cgroup,
            bird: None,
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
        let (_, missing) = work.canary()?;
        let names: Vec<&str> = missing.iter().map(|class| class.name()).collect();
        ensure!(missing.is_empty(), "hooks are attached but do not fire for {}", names.join(", "));
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
                    Request::Finish { job, exit, notices, reply } => {
                        let _ = reply.send(self.finish(job, exit, notices));
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
                self.rest(wake);
            }
        }
    }

    fn rest(&self, wake: &OwnedFd) {
        // SAFETY: the ring lives as long as the kernel side does.
        let ring = unsafe { BorrowedFd::borrow_raw(self.kernel.ring_fd()) };
        let mut fds = [
            PollFd::new(&ring, PollFlags::IN),
            PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN),
        ];
        // Nothing can come while nobody is watched.
        let nap = (!self.jobs.is_empty() || self.bird.is_some()).then(|| timespec(NAP));
        let _ = poll(&mut fds, nap.as_ref());
        let _ = rustix::io::read(wake, &mut [0u8; 8]);
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

    fn event(&mut self, event: Event) {
        if event.job == canary::JOB {
            if let Some(bird) = &mut self.bird {
                bird.hear(&event);
            }
            return;
        }
        self.step(Input::Event(event));
    }

    fn step(&mut self, input: Input) -> Option<Verdict> {
        let Output { records, verdict, .. } = step(&mut self.state, input);
        for line in &records {
            self.metrics.line(line);
            if let Some(job) = self.jobs.get_mut(&line.job) {
                job.write(line);
            }
        }
        verdict
    }

    /// Proves that effects of every class are seen, unless that has just been done.
    fn canary(&mut self) -> Result<Heard> {
        if let Some((at, heard)) = &self.heard
            && at.elapsed() < TICK
        {
            return Ok(heard.clone());
        }
        let cage = Cage::make(&self.own_cgroup)?;
        let id = cage.id()?;
        self.kernel.adopt_cgroup(id, canary::JOB)?;
        let released = cage.release().map(|bird| self.bird = Some(bird));
        while self.bird.as_ref().is_some_and(|bird| !bird.done()) {
            if self.drain() == 0 {
                std::thread::yield_now();
            }
        }
        warn(self.kernel.forget_cgroup(id));
        released?;
        let bird = self.bird.take().context("the canary is awaited here only")?;
        let heard = (bird.seen(), bird.missing());
        self.heard = Some((Instant::now(), heard.clone()));
        Ok(heard)
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
        if let Some(other) = self.jobs.values().find(|job| job.cgroup_id == cgroup_id) {
            bail!("the cgroup {} is already job {}", spec.cgroup.display(), other.name);
        }
        let has = coverage(self.backend());
        for (class, has) in [
            (Class::File, has.file),
            (Class::Exec, has.exec),
            (Class::Env, has.env),
            (Class::Net, has.net),
        ] {
            ensure!(
                has >= spec.min_coverage,
                "the {} backend has coverage `{}` for class {}, but `{}` is the least that is wanted",
                self.backend().name(),
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
        if let Some(dir) = &spec.evidence {
            let dir = std::path::absolute(dir)?;
            let inside = roots.iter().find(|root| {
                use std::os::unix::ffi::OsStrExt;
                dir.starts_with(std::ffi::OsStr::from_bytes(&root.path))
            });
            if let Some(root) = inside {
                bail!(
                    "the evidence directory {} lies below the root {}, where the job could change it",
                    dir.display(),
                    String::from_utf8_lossy(&root.path)
                );
            }
        }
        let evidence = match &spec.evidence {
            Some(dir) => {
                let note = spec.note.as_ref().map(|(_, bytes)| bytes.as_slice());
                Some(Evidence::create(dir, &spec.policy_bytes, note)?)
            }
            None => None,
        };
        let hosts = resolve(&spec);
        let (seen, missing) = self.canary()?;
        let backend = self.backend();
        let ts = now();
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
        let members = proc::members(&spec.cgroup).unwrap_or_default();
        let mut processes: Vec<Known> = Vec::new();
        let mut env = Vec::new();
        for pid in members {
            for tid in proc::threads(pid) {
                self.kernel.label(tid, id)?;
            }
            processes.push(proc::known(pid));
            env.extend(proc::env_names(pid));
        }
        env.sort();
        env.dedup();
        self.step(Input::Started(Box::new(Started {
            job: id,
            ts,
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
            hosts,
            streams: spec.streams,
            terminals: spec.terminals,
            env,
            processes,
        })));
        self.step(Input::Canary { job: id, ts: now(), seen, missing });
        self.step(Input::Launched { job: id, ts: now() });
        self.metrics.jobs(self.jobs.len());
        Ok(())
    }

    fn finish(&mut self, id: JobId, exit: Option<Exit>, notices: Vec<Notice>) -> Result<Verdict> {
        ensure!(self.jobs.contains_key(&id), "no job {id}");
        while self.drain() > 0 {}
        let mut rest = Vec::new();
        self.attributor.flush(id, &mut rest);
        for event in rest {
            self.event(event);
        }
        self.losses(id);
        for notice in notices {
            self.step(Input::Notice { job: id, ts: now(), notice });
        }
        let verdict = self.step(Input::Finished { job: id, ts: now(), exit });
        let job = self.forget(id).context("the job was just there")?;
        let verdict = verdict.context("the pipeline gave no verdict")?;
        if let Some(why) = job.failed {
            bail!("{why}: there is no whole evidence, and so no verdict");
        }
        self.metrics.verdict(&verdict);
        if let Some(evidence) = job.evidence {
            evidence.close(&verdict)?;
        }
        Ok(verdict)
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
                    ts: now(),
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
            self.step(Input::Gap { job: id, ts: now(), stage: Stage::Ring, lost: new });
        }
        if self.garbled > 0 {
            // Whose record it was cannot be told, so every job is told.
            let lost = vec![(Class::Guard, std::mem::take(&mut self.garbled))];
            self.metrics.lost(Stage::Decode, &lost);
            for job in self.jobs.keys().copied().collect::<Vec<_>>() {
                let lost = lost.clone();
                self.step(Input::Gap { job, ts: now(), stage: Stage::Decode, lost });
            }
        }
    }

    /// Jobs that are still there when the engine stops get their verdict.
    fn stop(&mut self) {
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            let why = "the observer was stopped".to_owned();
            if let Err(error) = self.finish(id, None, vec![Notice::Stopped { why }]) {
                tracing::error!("job {id}: {error:#}");
            }
        }
    }
}

/// What each host of the policy resolves to now.
fn resolve(spec: &JobSpec) -> Vec<Vec<IpAddr>> {
    let mut hosts = vec![Vec::new(); spec.policy.hosts.entries.len()];
    for (index, name) in spec.policy.names_to_resolve() {
        match (name, 0).to_socket_addrs() {
            Ok(addresses) => hosts[index].extend(addresses.map(|address| address.ip())),
            Err(error) => tracing::warn!("{name} does not resolve, so it allows nothing: {error}"),
        }
        hosts[index].dedup();
    }
    hosts
}

/// Unix time minus boot time, nanoseconds, at this moment.
fn boot_offset() -> u64 {
    nanos(clock_gettime(ClockId::Realtime)) - nanos(clock_gettime(ClockId::Boottime))
}

fn now() -> UnixNanos {
    nanos(clock_gettime(ClockId::Realtime))
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
