//! Jobs over the socket. Whoever asks is known by the socket's peer
//! credentials, never by what it says.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_core::{
    input::{Coverage, JobId, Notice},
    pin, policy,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream, unix::UCred},
};

use super::protocol::{Answer, REQUEST_MAX, Request, Start};
use crate::{
    engine::{Engine, JobSpec},
    exit,
    observe::proc,
    report,
};

/// Everything that a request needs.
#[derive(Debug)]
pub struct Jobs {
    pub engine: Engine,
    pub state_dir: PathBuf,
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

/// Answers until the socket fails.
///
/// # Errors
/// When no more connections can be accepted.
pub async fn serve(listener: UnixListener, jobs: Arc<Jobs>) -> Result<()> {
    let mut peers = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.context("the job socket failed")?;
                let jobs = Arc::clone(&jobs);
                peers.spawn(async move {
                    if let Err(error) = converse(stream, jobs).await {
                        tracing::debug!("a client left: {error:#}");
                    }
                });
            }
            Some(ended) = peers.join_next() => {
                if let Err(error) = ended {
                    bail!("answering a client failed: {error}");
                }
            }
        }
    }
}

async fn converse(stream: UnixStream, jobs: Arc<Jobs>) -> Result<()> {
    let peer = stream.peer_cred().context("no peer credentials")?;
    let (read, mut write) = stream.into_split();
    let mut line = Vec::new();
    BufReader::new(read.take(REQUEST_MAX)).read_until(b'\n', &mut line).await?;
    // Requests wait for the engine, which may take a while.
    let answer = tokio::task::spawn_blocking(move || answer(&jobs, peer, &line)).await?;
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    write.write_all(&text).await?;
    Ok(())
}

fn answer(jobs: &Jobs, peer: UCred, line: &[u8]) -> Answer {
    let refused =
        |code, error: anyhow::Error| Answer::Error { message: format!("{error:#}"), code };
    if peer.uid() != 0 && peer.uid() != rustix::process::geteuid().as_raw() {
        let error = anyhow::anyhow!("user {} may not control jobs; root may", peer.uid());
        return refused(exit::REFUSED, error);
    }
    let request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => return refused(exit::USAGE, anyhow::anyhow!("no request: {error}")),
    };
    let result = match request {
        Request::Start(start) => jobs.start(*start).map_err(|error| (exit::REFUSED, error)),
        Request::Finish { job } => jobs.finish(job, peer.pid()).map_err(|e| (exit::OBSERVER, e)),
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
        let policy = policy::parse(&start.policy_file, &bytes).map_err(|faults| {
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
            note,
            cgroup: absolute_cgroup(&start.cgroup)?,
            min_coverage,
            argv: Vec::new(),
            tmpdir: None,
            evidence: Some(evidence.clone()),
            streams: Vec::new(),
            terminals: Vec::new(),
        })?;
        Ok(json!({ "job": job, "name": name, "evidence": evidence }))
    }

    fn finish(&self, job: JobId, peer: Option<i32>) -> Result<Value> {
        let status = self.find(job)?;
        let killed = clear(Path::new(&status.cgroup), peer.unwrap_or(0) as u32)?;
        let notices = if killed > 0 { vec![Notice::Leftovers { killed }] } else { Vec::new() };
        let verdict = self.engine.finish_job(job, None, notices)?;
        Ok(json!({ "text": report::text(&verdict), "verdict": verdict }))
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
    ensure!(
        real.starts_with(&root) && real != root,
        "{} is no cgroup below {}",
        path.display(),
        root.display()
    );
    Ok(real)
}

/// Kills what is left in a job's cgroup, except the one who asks for it.
fn clear(cgroup: &Path, asking: u32) -> Result<u32> {
    let members = match proc::members(cgroup) {
        Ok(members) => members,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error).context(format!("cannot read {}", cgroup.display())),
    };
    let mut killed = 0;
    if members.contains(&asking) {
        // A runner's hook inside the job: it and its ancestors must live to
        // hear the verdict.
        let mut spared = Vec::new();
        let mut pid = asking;
        while pid > 1 && !spared.contains(&pid) {
            spared.push(pid);
            pid = proc::known(pid).ppid;
        }
        for pid in members.into_iter().filter(|pid| !spared.contains(pid)) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
                killed += u32::from(
                    rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok(),
                );
            }
        }
    } else if !members.is_empty() {
        killed = crate::run::cgroup::empty(cgroup)?;
    }
    Ok(killed)
}

fn unique() -> u128 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map(|since| since.as_nanos())
        .unwrap_or_default()
}
