//! A job that a daemon watches from outside: its process is started here, with
//! whatever it is handed, and enters the job's cgroup before it runs.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cgroup::Cgroup;
use crate::daemon::Daemon;
use crate::gate::{self, Outcome};
use crate::scene::{Scene, digest};
use crate::wait;
use serde_json::json;

/// A command in the scene's root, with an environment of `PATH` alone, and
/// descriptors under the numbers that it gets them by.
#[must_use]
pub fn command<S: AsRef<OsStr>>(
    program: &Path,
    words: impl IntoIterator<Item = S>,
    scene: &Scene,
    handed: Vec<(OwnedFd, i32)>,
) -> Command {
    let mut command = Command::new(program);
    command
        .args(words)
        .env_clear()
        .env("PATH", gate::PATH)
        .current_dir(scene.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: between fork and exec only system calls are made, on descriptors
    // that the closure owns.
    unsafe {
        command.pre_exec(move || {
            for (from, to) in &handed {
                if libc::dup2(from.as_raw_fd(), *to) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    command
}

/// Runs the command as a job under a policy of the scene, whose root is a
/// manifest's workspace; the job ends with it, or with the last process that it
/// left, if that is `awaited`. Says how the command ended, and what the daemon said,
/// when it was there to say something.
///
/// # Panics
/// When the job cannot be watched.
pub fn run(
    daemon: &Daemon,
    scene: &Scene,
    policy: &Path,
    mode: &str,
    command: &mut Command,
    awaited: bool,
) -> (ExitStatus, Option<Outcome>) {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let name = format!("attached-{}", JOBS.fetch_add(1, Ordering::Relaxed));
    let cgroup = Cgroup::new();
    let text = fs::read_to_string(policy).expect("the scene has this policy");
    let workspace = (policy == scene.manifest()).then(|| scene.root());
    let started = daemon.ask(&json!({
        "request": "start",
        "cgroup": cgroup.path(),
        "name": name,
        "policy_file": policy,
        "pinned": digest(text.as_bytes()),
        "policy": text,
        "note": null,
        "workspace": workspace,
        "mode": mode,
        "min_coverage": "argument",
    }));
    let job = started.expect("the daemon answers")["job"].clone();

    let door = enter(command, &cgroup);
    let shown = format!("{command:?} as job {job}, {name}");
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
    drop(door);
    let stdout = gate::read(child.stdout.take().expect("piped"));
    let stderr = gate::read(child.stderr.take().expect("piped"));
    let ended = wait::exit(&mut child, &shown);

    if awaited {
        wait::until("the job's processes have ended", || cgroup.is_empty().then_some(()));
    }
    // What is left of it may hold the pipes, until it is killed here.
    let found = daemon.ask(&json!({ "request": "finish", "job": job }));
    drop(cgroup);
    let bytes = |thread: std::thread::JoinHandle<Vec<u8>>| {
        thread.join().expect("the reader ends with the pipe")
    };
    let (stdout, stderr) = (bytes(stdout), bytes(stderr));
    let evidence = daemon.state().join("jobs").join(name);
    let outcome = found.map(|found| {
        let outcome = Outcome::of_job(shown, ended, stdout, &stderr, evidence);
        if outcome.has_verdict() {
            assert_eq!(found["verdict"], *outcome.verdict(), "{}{}", daemon.log(), outcome.story());
        }
        outcome
    });
    (ended, outcome.filter(Outcome::has_verdict))
}

/// Lets the command be in the cgroup from its first instruction on. What is
/// returned has to live until it has started.
///
/// # Panics
/// When the cgroup is gone.
#[must_use]
pub fn enter(command: &mut Command, cgroup: &Cgroup) -> File {
    let door = OpenOptions::new()
        .write(true)
        .open(cgroup.path().join("cgroup.procs"))
        .expect("a cgroup that was just made has it");
    let fd = door.as_raw_fd();
    // SAFETY: between fork and exec one system call is made, on a descriptor
    // that is open until the command has started.
    unsafe {
        command.pre_exec(move || match libc::write(fd, b"0".as_ptr().cast(), 1) {
            1 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    door
}
