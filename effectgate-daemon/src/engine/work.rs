//! The engine's thread.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use effectgate_common::maps::REGISTRAR_JOB;
use effectgate_core::{
    Output, State, Verdict,
    input::{Backend, Event, Input, JobId, Notice, UnixNanos},
    pin, step,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::{ClockId, Timespec, clock_gettime},
};

use super::{
    Config, Finish, Left, Request, canary, coverage, job::Job, pulse::Pulse, roots::Roots,
    tables::Held, watch::Watch,
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
/// Records that are taken at once.
pub(super) const RECORDS: usize = 4096;

pub struct Work {
    pub(super) kernel: Kernel,
    pub(super) attributor: Attributor,
    pub(super) state: State,
    pub(super) roots: Roots,
    pub(super) jobs: BTreeMap<JobId, Job>,
    /// What the kernel programs were told of each job's policy.
    pub(super) tables: BTreeMap<JobId, Held>,
    pub(super) last: JobId,
    pub(super) watch: Watch,
    pub(super) metrics: Arc<Metrics>,
    pub(super) host: String,
    pub(super) release: String,
    pub(super) programs: String,
    pub(super) ticked: Instant,
    /// Records that could not be decoded, not yet reported.
    pub(super) garbled: u64,
}

impl Work {
    /// Loads the best backend that works, and says why none better does.
    pub fn begin(
        config: &Config,
        metrics: Arc<Metrics>,
        pulse: &Arc<Pulse>,
    ) -> Result<(Work, Vec<String>)> {
        let candidates = match config.backend {
            Some(backend) => vec![backend],
            None => vec![Backend::Lsm, Backend::Fentry, Backend::TracePoint],
        };
        let mut refusals = Vec::new();
        let only = candidates.len() == 1;
        for backend in candidates {
            match Work::with(backend, config, &metrics, pulse) {
                Ok(work) => return Ok((work, refusals)),
                Err(error) if only => {
                    return Err(error.context(format!("the backend {} fails here", backend.name())));
                }
                Err(error) => refusals.push(format!("{}: {error:#}", backend.name())),
            }
        }
        bail!("no backend is to be had here\n  {}", refusals.join("\n  "))
    }

    fn with(
        backend: Backend,
        config: &Config,
        metrics: &Arc<Metrics>,
        pulse: &Arc<Pulse>,
    ) -> Result<Work> {
        cgroup::sweep(&config.cgroup_root.join(proc::own_cgroup()?));
        let kernel = Kernel::load(backend, config.ring_bytes, &config.cgroup_root)?;
        let attributor = Attributor::new(boot_offset()).asking(Rc::clone(kernel.registrar()));
        let uname = rustix::system::uname();
        let mut work = Work {
            kernel,
            attributor,
            state: State::new(),
            roots: Roots::default(),
            jobs: BTreeMap::new(),
            tables: BTreeMap::new(),
            last: 0,
            watch: Watch::new(pulse),
            metrics: Arc::clone(metrics),
            host: uname.nodename().to_string_lossy().into_owned(),
            release: uname.release().to_string_lossy().into_owned(),
            programs: pin::digest(kernel::object()?),
            ticked: Instant::now(),
            garbled: 0,
        };
        work.kernel.label(thread_id(), REGISTRAR_JOB)?;
        work.kernel.counters(canary::JOB, true)?;
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
            let drained = self.look();
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

    /// Until something is in a ring or at the door, `nap` at most.
    pub(super) fn rest(&self, wake: Option<&OwnedFd>, nap: Option<Duration>) {
        let rings = self.kernel.ring_fds();
        let mut fds: Vec<PollFd<'_>> =
            rings.iter().map(|ring| PollFd::from_borrowed_fd(*ring, PollFlags::IN)).collect();
        fds.extend(wake.map(|wake| PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)));
        let nap = nap.map(timespec);
        let _ = poll(&mut fds, nap.as_ref());
        if let Some(wake) = wake {
            let _ = rustix::io::read(wake, &mut [0u8; 8]);
        }
    }

    /// Takes what is in the rings; returns how many records there were.
    pub(super) fn drain(&mut self) -> usize {
        let mut events: Vec<Event> = Vec::new();
        let (attributor, garbled) = (&mut self.attributor, &mut self.garbled);
        // Bounded, so that requests and ticks get their turn under load.
        let count = self.kernel.drain(RECORDS, |bytes| {
            decoded(bytes, attributor, garbled, &mut events);
        });
        self.events(events);
        self.kernel.diagnose();
        count
    }

    /// Takes what still waits for records of a job that will not come any more.
    pub(super) fn flush(&mut self, job: JobId) {
        let mut events = Vec::new();
        let (attributor, garbled) = (&mut self.attributor, &mut self.garbled);
        self.kernel.flush(job, |bytes| decoded(bytes, attributor, garbled, &mut events));
        self.attributor.flush(job, &mut events);
        self.events(events);
    }

    fn events(&mut self, events: Vec<Event>) {
        for event in events {
            self.event(event);
        }
    }

    /// By the same clock as events: boot time and one offset.
    pub(super) fn now(&self) -> UnixNanos {
        self.attributor.time(nanos(clock_gettime(ClockId::Boottime)))
    }

    pub(super) fn event(&mut self, event: Event) {
        if event.job == canary::JOB {
            return self.watch.hear(&event);
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
        for line in &records {
            self.answer(line);
        }
        verdict
    }

    /// Jobs that are still there when the engine stops get their verdict.
    fn stop(&mut self) {
        let mut judged = Vec::new();
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            let why = "the observer was stopped".to_owned();
            let notices = vec![Notice::Stopped { why }];
            match self.finish(Finish { job: id, exit: None, notices, left: Left::Alone }) {
                Ok((verdict, Some(evidence))) => judged.push((id, verdict, evidence)),
                Ok((verdict, None)) => self.metrics.verdict(&verdict),
                Err(error) => tracing::error!("job {id}: {error:#}"),
            }
        }
        // Whoever signs may take its time, and who stops the observer has little.
        const AT_ONCE: usize = 16;
        while !judged.is_empty() {
            let some = judged.drain(..judged.len().min(AT_ONCE));
            std::thread::scope(|scope| {
                for (id, verdict, evidence) in some {
                    let metrics = &self.metrics;
                    scope.spawn(move || match evidence.close(&verdict) {
                        Ok(_) => metrics.verdict(&verdict),
                        Err(error) => tracing::error!("job {id}: {error:#}"),
                    });
                }
            });
        }
    }
}

fn decoded(bytes: &[u8], attributor: &mut Attributor, garbled: &mut u64, events: &mut Vec<Event>) {
    match decode(bytes) {
        Ok(record) => attributor.take(&record, events),
        Err(error) => {
            tracing::error!("{error}");
            *garbled += 1;
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
