//! The job's own cgroup.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};

use crate::{engine::kill_cgroup, observe::proc};

/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Name of the cgroups that `run` makes: it puts its process id behind, so that
/// what a killed one left can be told from what is in use.
pub const RUNS: &str = "effectgate-run-";

/// Removes the empty cgroups that dead observers left below `parent`. One that
/// is not empty is only spoken of: what looks dead from here may live in
/// another PID namespace.
pub fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let pid = name.strip_prefix(RUNS).and_then(|pid| pid.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            match fs::remove_dir(entry.path()) {
                Ok(()) => tracing::info!("removed {name}, which a dead observer left behind"),
                Err(error) => {
                    tracing::warn!("{name} looks left behind by a dead observer: {error}")
                }
            }
        }
    }
}

/// A cgroup that is killed and removed when dropped.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// # Errors
    /// When it cannot be made, or is there already.
    pub fn make(path: &Path) -> Result<Cgroup> {
        // One of the same name belonged to a dead observer with the same id; if
        // it is not empty it stays, and making another fails.
        let _ = fs::remove_dir(path);
        fs::create_dir(path)
            .with_context(|| format!("cannot make the cgroup {}", path.display()))?;
        Ok(Cgroup { path: path.to_owned() })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that a process writes `0` to in order to enter.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn door(&self) -> Result<File> {
        let procs = self.path.join("cgroup.procs");
        let door = fs::OpenOptions::new().write(true).open(&procs);
        door.with_context(|| format!("cannot open {}", procs.display()))
    }

    /// As [`empty`].
    ///
    /// # Errors
    /// When processes do not die.
    pub fn empty(&self) -> Result<u32> {
        empty(&self.path)
    }
}

/// Kills what is in a cgroup and waits until it is empty; returns how many
/// processes there were.
///
/// # Errors
/// When they do not die.
pub fn empty(cgroup: &Path) -> Result<u32> {
    let events = cgroup.join("cgroup.events");
    let file = File::open(&events).with_context(|| format!("cannot open {}", events.display()))?;
    if !populated(&events)? {
        return Ok(0);
    }
    let left = proc::members(cgroup)
        .with_context(|| format!("cannot tell who is in {}", cgroup.display()))?
        .len() as u32;
    kill_cgroup(cgroup)?;
    let until = Instant::now() + PATIENCE;
    while populated(&events)? {
        let Some(rest) = until.checked_duration_since(Instant::now()) else {
            bail!("processes in {} do not die", cgroup.display());
        };
        // The kernel reports a change of cgroup.events as POLLPRI.
        let mut fds = [PollFd::new(&file, PollFlags::PRI)];
        let wait = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(rest.subsec_nanos()).clamp(1, 50_000_000),
        };
        let _ = poll(&mut fds, Some(&wait));
    }
    Ok(left)
}

fn populated(events: &Path) -> Result<bool> {
    let text =
        fs::read_to_string(events).with_context(|| format!("cannot read {}", events.display()))?;
    Ok(text.lines().any(|line| line == "populated 1"))
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = self.empty() {
            tracing::error!("{error:#}");
        }
        if let Err(error) = remove(&self.path) {
            tracing::error!("cannot remove the cgroup {}: {error}", self.path.display());
        }
    }
}

/// Removes a cgroup and those that the job made below it.
fn remove(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}
