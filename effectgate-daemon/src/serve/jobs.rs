//! Jobs over the socket. Whoever asks is known by the socket's peer
//! credentials, never by what it says.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_core::{
    input::{Coverage, JobId, Mode},
    pin, policy,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream, unix::UCred},
    time::timeout,
};

use super::{
    clients,
    protocol::{Answer, REQUEST_MAX, Request, Start},
};
use crate::{
    bundle,
    clock::today,
    engine::{Engine, Finish, JobSpec, Left},
    exit,
    observe::proc,
    report,
    sign::{Signer, Source},
};

/// How long a client may take to ask, and to take its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a request that are read from somebody who may ask nothing.
const STRANGER_MAX: u64 = 64 << 10;

/// Everything that a request needs.
#[derive(Debug)]
pub struct Jobs {
    pub engine: Engine,
    pub state_dir: PathBuf,
    /// Size at which a segment of a job's log is closed, in bytes.
    pub segment_bytes: u64,
    /// Who signs the evidence, and with what.
    pub signer: Option<(Source, Arc<Signer>)>,
}

/// Binds the socket; one that a dead daemon left behind is replaced.
///
/// # Errors
/// When another daemon answers there, or the place cannot be written.
pub fn bind(path: &Path) -> Result<UnixListener> {
    let what = || format!("cannot make the socket {}", path.display());
    if let Ok(meta) = fs::symlink_metadata(path) {
        ensure!(meta.file_type().is_socket(), "{} is there and is no socket", path.display());
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            bail!("another daemon is listening on {}", path.display());
        }
        fs::remove_file(path).with_context(what)?;
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(what)?;
    }
    let listener = UnixListener::bind(path).with_context(what)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).with_context(what)?;
    Ok(listener)
}

/// Answers for ever.
///
/// # Errors
/// When answering a client panics.
pub async fn serve(listener: UnixListener, jobs: Arc<Jobs>) -> Result<()> {
    clients::serve(
        "the job socket",
        async || listener.accept().await.map(|(stream, _)| stream),
        |stream| converse(stream, Arc::clone(&jobs)),
    )
    .await
}

async fn converse(stream: UnixStream, jobs: Arc<Jobs>) -> Result<()> {
    let peer = stream.peer_cred().context("no peer credentials")?;
    let (read, mut write) = stream.into_split();
    // A stranger is heard as well, but not at length: one that is cut off while
    // it speaks would not hear why.
    let allowed = may_control(&peer);
    let mut line = Vec::new();
    let mut reader = BufReader::new(read.take(if allowed { REQUEST_MAX } else { STRANGER_MAX }));
    timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await.context("no request came")??;
    let answer = if allowed {
        // Requests wait for the engine, which may take a while.
        tokio::task::spawn_blocking(move || answer(&jobs, &peer, &line)).await?
    } else {
        let message = format!("user {} may not control jobs; root may", peer.uid());
        Answer::Error { message, code: exit::REFUSED }
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    timeout(PATIENCE, write.write_all(&text)).await.context("the answer was not taken")??;
    Ok(())
}

fn may_control(peer: &UCred) -> bool {
    peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw()
}

fn answer(jobs: &Jobs, peer: &UCred, line: &[u8]) -> Answer {
    let refused =
        |code, error: anyhow::Error| Answer::Error { message: format!("{error:#}"), code };
    let request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => return refused(exit::USAGE, anyhow::anyhow!("no request: {error}")),
    };
    let result = match request {
        Request::Start(start) => jobs.start(*start).map_err(|error| (exit::REFUSED, error)),
        Request::Finish { job } => match jobs.find(job) {
            Ok(_) => jobs.finish(job, peer.pid()).map_err(|error| (exit::OBSERVER, error)),
            Err(error) => Err((exit::USAGE, error)),
        },
        Request::Status { job } => jobs.status(job).map_err(|error| (exit::USAGE, error)),
        Request::List {} => jobs.list().map_err(|error| (exit::OBSERVER, error)),
    };
    match result {
        Ok(value) => Answer::Ok(value),
        Err((code, error)) => refused(code, error),
    }
}

impl Jobs {
    fn start(&self, start: Start) -> Result<Value> {
        let bytes = start.policy.into_bytes();
        let policy = policy::parse(&start.policy_file, &bytes, &today()).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            anyhow::anyhow!(faults.join("\n"))
        })?;
        let note = match start.note {
            Some(text) => {
                let note = pin::parse_note("review note", text.as_bytes()).map_err(|faults| {
                    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    anyhow::anyhow!(faults.join("\n"))
                })?;
                Some((note, text.into_bytes()))
            }
            None => None,
        };
        let pinned = pin::parse_digest(&start.pinned)?;
        pin::verify(&policy.sha256, &pinned, note.as_ref().map(|(note, _)| note))?;
        let coverage = Coverage::from_name(&start.min_coverage);
        let min_coverage =
            coverage.with_context(|| format!("no coverage {:?}", start.min_coverage))?;
        let mode = Mode::from_name(&start.mode);
        let mode = mode.with_context(|| format!("no mode {:?}", start.mode))?;
        let name = match start.name {
            Some(name) => name,
            None => format!("job-{}", unique()),
        };
        check_name(&name)?;
        let evidence = self.state_dir.join("jobs").join(&name);
        let job = self.engine.start_job(JobSpec {
            name: name.clone(),
            policy,
            policy_bytes: bytes,
            pinned,
            note,
            cgroup: absolute_cgroup(&start.cgroup)?,
            mode,
            min_coverage,
            workspace: start.workspace.map(|dir| dir.canonicalize()).transpose()?,
            home: None,
            argv: Vec::new(),
            tmpdir: None,
            evidence: Some(evidence.clone()),
            segment_bytes: self.segment_bytes,
            signer: self.signer.as_ref().map(|(_, signer)| Arc::clone(signer)),
            metrics_file: None,
            own: self.own(),
            streams: Vec::new(),
            terminals: Vec::new(),
        })?;
        Ok(json!({ "job": job, "name": name, "evidence": evidence }))
    }

    fn finish(&self, job: JobId, peer: Option<i32>) -> Result<Value> {
        // The asker can be a runner's hook inside the job: it and its ancestors
        // must live to hear the verdict.
        let left = Left::Killed { spared: lineage(peer) };
        let finish = Finish { job, exit: None, notices: Vec::new(), left };
        let (verdict, written) = self.engine.finish_job(finish)?;
        if let Some(written) = written {
            let signer = self.signer.as_ref().map(|(_, signer)| &**signer);
            bundle::finish(&written, &verdict, signer)?;
        }
        Ok(json!({ "text": report::text(&verdict), "verdict": verdict }))
    }

    /// What no job has any business with.
    fn own(&self) -> Vec<PathBuf> {
        let key = self.signer.iter().filter_map(|(source, _)| source.private());
        [self.state_dir.clone()].into_iter().chain(key).collect()
    }

    fn status(&self, job: JobId) -> Result<Value> {
        Ok(serde_json::to_value(self.find(job)?)?)
    }

    fn list(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.engine.jobs()?)?)
    }

    fn find(&self, job: JobId) -> Result<crate::engine::JobStatus> {
        let jobs = self.engine.jobs()?;
        jobs.into_iter().find(|status| status.id == job).with_context(|| {
            format!("no job {job} is being watched; `effectgate job list` shows those that are")
        })
    }
}

/// A job's name is also that of a directory.
fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    ensure!(
        !name.is_empty() && name.len() <= 128 && name.chars().all(plain) && !name.starts_with('.'),
        "the job's name {name:?} is not made of letters, digits, `-`, `_` and `.`"
    );
    Ok(())
}

fn absolute_cgroup(path: &Path) -> Result<PathBuf> {
    let root = proc::cgroup2()?;
    let real = fs::canonicalize(path).with_context(|| format!("no cgroup {}", path.display()))?;
    let own = root.join(proc::own_cgroup()?);
    ensure!(
        !own.starts_with(&real),
        "{} is the daemon's own cgroup or holds it; give the job one of its own",
        path.display()
    );
    ensure!(
        real.starts_with(&root) && real != root,
        "{} is no cgroup below {}",
        path.display(),
        root.display()
    );
    Ok(real)
}

/// A process and its ancestors, from the socket's word.
fn lineage(peer: Option<i32>) -> Vec<u32> {
    let mut lineage = Vec::new();
    let mut pid = peer.unwrap_or(0) as u32;
    while pid > 1 && !lineage.contains(&pid) {
        lineage.push(pid);
        pid = proc::known(pid).ppid;
    }
    lineage
}

fn unique() -> u128 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map(|since| since.as_nanos())
        .unwrap_or_default()
}
