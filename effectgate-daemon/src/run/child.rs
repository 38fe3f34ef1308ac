//! Starts the command in its cgroup, as its user, and waits for its end.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStrExt, process::ExitStatusExt},
    },
    path::Path,
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use effectgate_core::{input::Exit, policy::Policy};
use rustix::process::{Resource, setrlimit};
use tokio::{
    process::Command,
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use super::{cgroup::Cgroup, files, user::User};

/// What is to be started.
#[derive(Debug)]
pub struct Launch<'a> {
    pub command: &'a [OsString],
    pub env: BTreeMap<OsString, OsString>,
    pub workspace: Option<&'a Path>,
    pub user: Option<&'a User>,
    pub cgroup: &'a Cgroup,
    pub timeout: Option<Duration>,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    /// Why it was stopped from outside, if it was.
    pub stopped: Option<String>,
}

/// The command's environment: cut down to what the policy allows unless all of
/// it is to be kept, and the keys that the observer itself gives.
#[must_use]
pub fn environment(
    policy: &Policy,
    keep: bool,
    user: Option<&User>,
    tmpdir: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> =
        std::env::vars_os().filter(|(key, _)| keep || policy.allows_env(key.as_bytes())).collect();
    env.insert("TMPDIR".into(), tmpdir.into());
    env.insert("ENVELOPE_HASH".into(), policy.sha256.clone().into());
    if let Some(user) = user {
        env.insert("HOME".into(), user.home.clone());
        env.insert("USER".into(), user.name.clone());
        env.insert("LOGNAME".into(), user.name.clone());
    }
    env
}

/// Waits for the command, and for signals to this process from the moment it
/// is made.
#[derive(Debug)]
pub struct Waiter {
    runtime: Runtime,
    signals: Signals,
}

impl Waiter {
    /// # Errors
    /// When signals cannot be waited for.
    pub fn new() -> Result<Waiter> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start waiting for the command")?;
        let signals = {
            let _inside = runtime.enter();
            Signals::new().context("cannot wait for signals")?
        };
        Ok(Waiter { runtime, signals })
    }

    /// Starts the command and waits for it; a signal to this process or the
    /// time limit kills the whole job.
    ///
    /// # Errors
    /// When the command cannot be started, or a signal came before it was.
    pub fn run(&mut self, launch: &Launch<'_>) -> Result<Ended> {
        self.runtime.block_on(wait(launch, &mut self.signals))
    }
}

/// The signals that end a job.
#[derive(Debug)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The name of the next one.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

async fn wait(launch: &Launch<'_>, signals: &mut Signals) -> Result<Ended> {
    // Has one come already?
    tokio::select! {
        biased;
        name = signals.next() => bail!("interrupted by {name} before the command was started"),
        () = std::future::ready(()) => {}
    }
    let door = launch.cgroup.door()?;
    let mut child = command(launch, &door)?.spawn().with_context(|| {
        let program = launch.command.first().map(|program| program.display().to_string());
        format!("cannot start {}", program.unwrap_or_default())
    })?;
    drop(door);
    let limit = async {
        match launch.timeout {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let why = tokio::select! {
        status = child.wait() => return Ok(Ended { exit: exit(status?), stopped: None }),
        name = signals.next() => format!("the observer got {name}"),
        () = limit => format!("the time limit of {:?} was reached", launch.timeout.unwrap_or_default()),
    };
    crate::engine::kill_cgroup(launch.cgroup.path())?;
    // Killed by its own id as well: it may have left its cgroup.
    let _ = child.start_kill();
    let status = child.wait().await?;
    Ok(Ended { exit: exit(status), stopped: Some(why) })
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}

fn command(launch: &Launch<'_>, door: &File) -> Result<Command> {
    let (program, args) = launch.command.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(&launch.env);
    if let Some(dir) = launch.workspace {
        command.current_dir(dir);
    }
    let door = door.as_raw_fd();
    let ids = launch.user.map(|user| (user.uid, user.gid, user.groups.clone()));
    let limit = files::limit_before();
    // SAFETY: between fork and exec only async-signal-safe system calls are
    // made, on values that exist already.
    unsafe {
        command.pre_exec(move || {
            if let Some(limit) = &limit {
                setrlimit(Resource::Nofile, *limit)?;
            }
            enter(door, ids.as_ref())
        });
    }
    Ok(command)
}

/// In the child: enters the cgroup, drops what is not the command's, and
/// becomes its user.
fn enter(door: RawFd, ids: Option<&(u32, u32, Vec<u32>)>) -> io::Result<()> {
    let ok = |result: libc::c_int| {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: plain system calls on values owned by this process.
    unsafe {
        if libc::write(door, b"0".as_ptr().cast(), 1) != 1 {
            return Err(io::Error::last_os_error());
        }
        if let Some((uid, gid, groups)) = ids {
            ok(libc::setgroups(groups.len(), groups.as_ptr()))?;
            ok(libc::setresgid(*gid, *gid, *gid))?;
            ok(libc::setresuid(*uid, *uid, *uid))?;
        }
        // After the change of user, which clears it: nobody watches a job
        // whose observer is dead.
        ok(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // Not closed but marked, since the error report of a failing exec
        // needs its pipe.
        let range = (3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        ok(libc::syscall(libc::SYS_close_range, range.0, range.1, range.2) as libc::c_int)
    }
}
