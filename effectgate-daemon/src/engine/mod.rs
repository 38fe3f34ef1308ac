//! The engine: one thread that owns the kernel side and all state, and watches
//! many jobs at once through one set of programs. `run` is this engine with
//! one job; the daemon is this engine with a socket.

mod canary;
mod end;
mod job;
mod listed;
mod pulse;
mod roots;
mod start;
mod surroundings;
mod tables;
mod ticks;
mod violations;
mod watch;
mod work;

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
    thread::JoinHandle,
};

use anyhow::{Context, Result, anyhow, ensure};
use effectgate_core::{
    Verdict,
    input::{Backend, Coverage, Coverages, Exit, JobId, Mode, Notice},
    pin::ReviewNote,
    policy::{OnLoss, Policy},
};
use serde::Serialize;
use tokio::sync::oneshot;

use surroundings::Surroundings;

use crate::{
    run::{files, streams::Stream},
    sign::Signer,
    sinks::{
        evidence::{Evidence, Written},
        metrics::Metrics,
    },
};
pub use canary::run_if_asked as run_if_canary;
pub use roots::real;

/// How the engine is to watch.
#[derive(Clone, Debug)]
pub struct Config {
    /// `None`: the best backend that works here.
    pub backend: Option<Backend>,
    /// Size of each ring, in bytes, a power of two.
    pub ring_bytes: u32,
    /// Where cgroup v2 is mounted.
    pub cgroup_root: PathBuf,
}

/// A job to be watched.
#[derive(Debug)]
pub struct JobSpec {
    /// The name in records and lists.
    pub name: String,
    pub policy: Policy,
    /// The policy file's bytes, kept as evidence.
    pub policy_bytes: Vec<u8>,
    /// The digest that the policy was pinned by.
    pub pinned: String,
    /// The review note and the bytes it was read from.
    pub note: Option<(ReviewNote, Vec<u8>)>,
    /// The job's cgroup: an absolute path.
    pub cgroup: PathBuf,
    /// The policy may ask for more.
    pub mode: Mode,
    /// The policy's own minimum counts as well.
    pub min_coverage: Coverage,
    /// The directory that relative roots are relative to, resolved.
    pub workspace: Option<PathBuf>,
    /// The home of the job's user.
    pub home: Option<PathBuf>,
    pub argv: Vec<Vec<u8>>,
    /// A directory that is the job's own for its time.
    pub tmpdir: Option<PathBuf>,
    pub evidence: Option<PathBuf>,
    /// Size at which a segment of the log is closed, in bytes.
    pub segment_bytes: u64,
    /// Who signs the log's checkpoints; without one there are none.
    pub signer: Option<Arc<Signer>>,
    /// A file that will be written when the job has ended.
    pub metrics_file: Option<PathBuf>,
    /// Other files and directories of the observer's own.
    pub own: Vec<PathBuf>,
    /// Files that the job was handed as standard streams.
    pub streams: Vec<Stream>,
    pub terminals: Vec<effectgate_core::input::Device>,
}

/// A job as `list` and `status` show it.
#[derive(Clone, Debug, Serialize)]
pub struct JobStatus {
    pub id: JobId,
    pub name: String,
    pub policy: String,
    pub cgroup: PathBuf,
    pub backend: Backend,
    pub started: String,
    pub records: u64,
    /// Records that are durable: these survive whatever becomes of the
    /// observer and the machine.
    pub synced: u64,
    pub violations: u64,
    pub lost: u64,
    /// Why the job cannot be judged any more.
    pub failed: Option<String>,
}

/// What to ask of the engine; every request is answered.
enum Request {
    Start(Box<JobSpec>, Surroundings, Sender<Result<JobId>>),
    Finish(Finish, Sender<Result<(Verdict, Option<Evidence>)>>),
    List(Sender<Vec<JobStatus>>),
    Stop,
}

/// How a job ends.
#[derive(Debug)]
pub struct Finish {
    pub job: JobId,
    pub exit: Option<Exit>,
    pub notices: Vec<Notice>,
    pub left: Left,
}

/// What becomes of processes that are left when a job ends.
#[derive(Debug)]
pub enum Left {
    /// Killed, except these: the one that asks for the verdict, and its ancestors.
    Killed { spared: Vec<u32> },
    /// Left alone: it is not the job that ends, but the observer.
    Alone,
}

/// The way to a running engine. Dropping it stops the engine.
pub struct Engine {
    requests: SyncSender<Request>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// Closes when the thread ends, however it does.
    ended: Option<oneshot::Receiver<()>>,
    pub backend: Backend,
    /// Why no better one was chosen; empty where nobody left the choice.
    refusals: Vec<String>,
    pub metrics: Arc<Metrics>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl Engine {
    /// Loads the kernel side and starts the thread. Returns when hooks are
    /// attached and have been seen to fire.
    ///
    /// # Errors
    /// When no backend works here; the message says why for each.
    pub fn start(config: Config) -> Result<Engine> {
        files::raise_limit();
        let metrics = Arc::new(Metrics::new()?);
        let flags = rustix::event::EventfdFlags::NONBLOCK | rustix::event::EventfdFlags::CLOEXEC;
        let wake = rustix::event::eventfd(0, flags).context("cannot make an eventfd")?;
        let own_wake = wake.try_clone().context("cannot duplicate an eventfd")?;
        let (requests, inbox) = sync_channel(REQUESTS);
        let (alive, ended) = oneshot::channel::<()>();
        let (ready, started) = channel();
        let sink = Arc::clone(&metrics);
        let pulse = pulse::Pulse::start().context("cannot start the pulse's thread")?;
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                let _alive = alive;
                match work::Work::begin(&config, sink, &pulse) {
                    Ok((mut work, refusals)) => {
                        let _ = ready.send(Ok((work.backend(), refusals)));
                        work.run(&inbox, &own_wake);
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })
            .context("cannot start the engine's thread")?;
        let (backend, refusals) =
            started.recv().map_err(|_| anyhow!("the engine ended at its start"))??;
        Ok(Engine {
            requests,
            wake,
            thread: Some(thread),
            ended: Some(ended),
            backend,
            refusals,
            metrics,
        })
    }

    /// Starts to watch a job. What is in its cgroup, or enters it, is the job.
    ///
    /// # Errors
    /// When a root is not to be had, the backend's coverage is less than wanted
    /// or it cannot enforce, the canary is not seen, or the evidence directory cannot be written.
    pub fn start_job(&self, mut spec: JobSpec) -> Result<JobId> {
        if let Some(agent) = &spec.policy.agent {
            spec.mode = spec.mode.max(agent.on_violation);
            spec.min_coverage = spec.min_coverage.max(agent.min_coverage.unwrap_or(Coverage::None));
            ensure!(
                agent.on_loss != OnLoss::Deny || spec.mode == Mode::Enforce,
                "on_loss: deny denies what cannot be reported, which takes the mode enforce: \
                 write on_violation: enforce, or give --mode enforce"
            );
        }
        self.can_be_had(spec.mode)?;
        let found = surroundings::look(&spec, coverage(self.backend).file)?;
        self.ask(|reply| Request::Start(Box::new(spec), found, reply))?
    }

    /// Denying takes the `lsm` backend. Who chose another one gets what it can do.
    fn can_be_had(&self, mode: Mode) -> Result<()> {
        if mode != Mode::Enforce || self.backend == Backend::Lsm {
            return Ok(());
        }
        let backend = self.backend.name();
        ensure!(
            self.refusals.is_empty(),
            "the mode enforce takes the lsm backend, which is not to be had here: choose \
             the {backend} backend by its name to have the network denied and the rest observed\n  {}",
            self.refusals.join("\n  ")
        );
        tracing::warn!(
            "the {backend} backend denies the network only; other violations are recorded"
        );
        Ok(())
    }

    /// Kills what is left of a job, wherever it went, and judges the job.
    ///
    /// # Errors
    /// When there is no such job, what is left of it does not die, or its
    /// evidence could not be written.
    pub fn finish_job(&self, finish: Finish) -> Result<(Verdict, Option<Written>)> {
        let (verdict, evidence) = self.ask(|reply| Request::Finish(finish, reply))??;
        let written = evidence.map(|evidence| evidence.close(&verdict)).transpose()?;
        self.metrics.verdict(&verdict);
        Ok((verdict, written))
    }

    /// Something that is done when the engine's thread ends; can be had once.
    pub fn ended(&mut self) -> Option<oneshot::Receiver<()>> {
        self.ended.take()
    }

    /// The jobs that are being watched.
    ///
    /// # Errors
    /// When the engine has ended.
    pub fn jobs(&self) -> Result<Vec<JobStatus>> {
        self.ask(Request::List)
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T> {
        let (reply, answer) = channel();
        let gone = || anyhow!("the engine has ended");
        self.requests.send(request(reply)).map_err(|_| gone())?;
        self.nudge();
        answer.recv().map_err(|_| gone())
    }

    fn nudge(&self) {
        // Full means that a wake-up is already on its way.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.requests.send(Request::Stop);
        self.nudge();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Requests that may wait for the engine.
const REQUESTS: usize = 64;

/// What each backend can know.
#[must_use]
pub fn coverage(backend: Backend) -> Coverages {
    let file = match backend {
        Backend::Lsm | Backend::Fentry => Coverage::Object,
        // Opens are judged on the object, all else on arguments.
        Backend::TracePoint => Coverage::Argument,
    };
    let object = Coverage::Object;
    Coverages { file, exec: object, env: object, net: object, tool: Coverage::None }
}

/// Kills everything in a cgroup and below it (`cgroup.kill`, kernel 5.14).
///
/// # Errors
/// When the cgroup cannot be written to.
pub fn kill_cgroup(cgroup: &Path) -> Result<()> {
    std::fs::write(cgroup.join("cgroup.kill"), "1")
        .with_context(|| format!("cannot kill what is in {}", cgroup.display()))
}
