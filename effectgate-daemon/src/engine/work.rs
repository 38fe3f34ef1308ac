//! The engine's thread.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use effectgate_common::{maps::REGISTRAR_JOB, wire::Header};
use effectgate_core::{
    Output, State, Verdict,
    input::{Backend, Class, Event, Input, JobId, Notice, UnixNanos},
    pin, step,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::{ClockId, Timespec, clock_gettime},
};

use super::{
    Config, Finish, Left, Request,
    canary::{self, Canary},
    coverage,
    job::Job,
    roots::Roots,
};
use crate::{
    observe::{attribute::Attributor, decode::decode, kernel, kernel::Kernel, proc},
    run::cgroup,
    sinks::metrics::Metrics,
};

/// How long events may lie in the ring while little is going on.
const NAP: Duration = Duration::from_millis(5);
/// How often losses are looked up and logs made durable.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Canaries that may get lost in a full ring before that counts as a failure.
const CANARIES: usize = 3;

pub struct Work {
    pub(super) kernel: Kernel,
    pub(super) attributor: Attributor,
    pub(super) state: State,
    pub(super) roots: Roots,
    pub(super) jobs: BTreeMap<JobId, Job>,
    pub(super) last: JobId,
    /// As many records as the ring holds, and more.
    ring_records: usize,
    canary: Option<Canary>,
    /// When a canary was last heard, and in which classes.
    heard: Option<(Instant, Vec<Class>)>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) host: String,
    pub(super) release: String,
    pub(super) programs: String,
    pub(super) ticked: Instant,
    /// Records that could not be decoded, not yet reported.
    pub(super) garbled: u64,
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
            ring_records: config.ring_bytes as usize / size_of::<Header>(),
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
                    Request::Start(spec, found, reply) => {
                        let _ = reply.send(self.start(*spec, found));
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
            self.bounds();
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
    pub(super) fn rest(&self, wake: Option<&OwnedFd>, nap: Option<Duration>) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.kernel.ring_fd(), PollFlags::IN)];
        fds.extend(wake.map(|wake| PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)));
        let nap = nap.map(timespec);
        let _ = poll(&mut fds, nap.as_ref());
        if let Some(wake) = wake {
            let _ = rustix::io::read(wake, &mut [0u8; 8]);
        }
    }

    /// Takes what is in the ring; returns how many records there were.
    pub(super) fn drain(&mut self) -> usize {
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
    pub(super) fn now(&self) -> UnixNanos {
        self.attributor.time(nanos(clock_gettime(ClockId::Boottime)))
    }

    pub(super) fn event(&mut self, event: Event) {
        if event.job == canary::JOB {
            if let Some(canary) = &mut self.canary {
                canary.hear(&event);
            }
            return;
        }
        self.step(Input::Event(event));
    }

    pub(super) fn step(&mut self, input: Input) -> Option<Verdict> {
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
    pub(super) fn fresh_canary(&mut self) -> Result<Vec<Class>> {
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
    pub(super) fn recent_canary(&mut self) -> Result<Vec<Class>> {
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
            let drained = self.drain();
            if let Some(canary) = &mut self.canary {
                canary.taken(drained, self.ring_records);
            }
            if drained == 0 {
                self.rest(None, Some(Duration::from_millis(1)));
            }
        }
        self.canary.take().context("the canary is awaited here only")
    }

    fn canaries_lost(&mut self) -> u64 {
        self.kernel.lost(canary::JOB).map_or(0, |lost| lost.iter().map(|(_, count)| count).sum())
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
