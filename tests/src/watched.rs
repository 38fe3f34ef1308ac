//! `trigger` under watch, in the way that the tests were told: each time by a
//! `run` of its own, or as one of many jobs of a single daemon. Loading the
//! programs takes an emulated machine seconds, and a daemon does it once.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, RwLock};

use crate::cgroup::Cgroup;
use crate::daemon::{Daemon, documents};
use crate::gate::{self, Gate, Outcome};
use crate::scene::Scene;
use crate::wait;

/// Runs `trigger` with these words under the scene's envelope.
///
/// # Panics
/// When it cannot be watched.
pub fn trigger<S: AsRef<OsStr>>(scene: &Scene, words: impl IntoIterator<Item = S>) -> Outcome {
    trigger_in(scene, "observe", words)
}

/// The same in another mode.
///
/// # Panics
/// When it cannot be watched.
pub fn trigger_in<S: AsRef<OsStr>>(
    scene: &Scene,
    mode: &str,
    words: impl IntoIterator<Item = S>,
) -> Outcome {
    if !by_daemon() {
        return Gate::new(scene).option(["--mode", mode]).trigger(words);
    }
    let envelope = scene.envelope();
    let policy = ["--envelope", envelope.to_str().expect("UTF-8"), "--mode", mode];
    let mut command = Command::new(gate::trigger());
    command.args(words);
    with_shared(scene, &policy, command)
}

/// Runs a command under the scene's manifest, whose workspace is the root.
///
/// # Panics
/// When it cannot be watched.
pub fn manifest<S: AsRef<OsStr>>(
    scene: &Scene,
    mode: &str,
    command: impl IntoIterator<Item = S>,
) -> Outcome {
    if !by_daemon() {
        return Gate::manifest(scene).option(["--mode", mode]).run(command);
    }
    let (manifest, root) = (scene.manifest(), scene.root());
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (manifest, root) = (text(&manifest), text(&root));
    let policy = ["--manifest", &manifest, "--workspace", &root, "--mode", mode];
    let mut words = command.into_iter();
    // Relative to the root: where the command starts is not where the test does.
    let program = scene.root().join(words.next().expect("a program").as_ref());
    let mut command = Command::new(program);
    command.args(words);
    with_shared(scene, &policy, command)
}

fn with_shared(scene: &Scene, policy: &[&str], command: Command) -> Outcome {
    let shared = shared().read().expect("only the end of the process writes");
    job(shared.as_ref().expect("tests end before the process"), scene, policy, command)
}

/// Whether what is watched is a job of the daemon.
///
/// # Panics
/// When the tests were told something else.
#[must_use]
pub fn by_daemon() -> bool {
    match std::env::var("EFFECTGATE_TEST_WAY").as_deref() {
        Err(_) | Ok("run") => false,
        Ok("daemon") => true,
        Ok(other) => panic!("EFFECTGATE_TEST_WAY={other}: there are `run` and `daemon`"),
    }
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

/// The daemon of this process. It ends with it, at its exit or, should it be
/// killed, with the thread that started the daemon.
fn shared() -> &'static RwLock<Option<Daemon>> {
    SHARED.get_or_init(|| {
        let (sender, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // Nobody waits for it any more when the test that asked has failed.
            let _ = sender.send(Daemon::start());
            loop {
                std::thread::park();
            }
        });
        let daemon = started.recv().expect("the daemon starts");
        // SAFETY: the function is there as long as the process is.
        let registered = unsafe { libc::atexit(end_shared) };
        assert_eq!(registered, 0, "no more functions can be registered for the exit");
        RwLock::new(Some(daemon))
    })
}

static SHARED: OnceLock<RwLock<Option<Daemon>>> = OnceLock::new();

extern "C" fn end_shared() {
    if let Some(mut shared) = SHARED.get().and_then(|shared| shared.try_write().ok()) {
        drop(shared.take());
    }
}

/// A command as a job: its cgroup is watched before it enters. `policy` are the
/// options of `job start` that say under what.
fn job(daemon: &Daemon, scene: &Scene, policy: &[&str], mut command: Command) -> Outcome {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let name = format!("case-{}", JOBS.fetch_add(1, Ordering::Relaxed));
    let cgroup = Cgroup::new();
    let id = daemon.start_job_with(&name, policy, &cgroup);
    command
        .env_clear()
        .env("PATH", gate::PATH)
        .current_dir(scene.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let door = enter(&mut command, &cgroup);
    let shown = format!("{command:?} as job {id}, {name}");
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
    drop(door);
    let stdout = gate::read(child.stdout.take().expect("piped"));
    let stderr = gate::read(child.stderr.take().expect("piped"));
    let ended = wait::exit(&mut child, &shown);

    // What is left of it may hold the pipes, until it is killed here.
    let finish = daemon.job(&["finish", &id, "--format", "json"]);
    let bytes = |thread: std::thread::JoinHandle<Vec<u8>>| {
        thread.join().expect("the reader ends with the pipe")
    };
    let said = [bytes(stderr), finish.stderr].concat();
    let outcome = Outcome::of_job(
        shown,
        ended,
        finish.status,
        bytes(stdout),
        &said,
        daemon.state().join("jobs").join(name),
    );
    let printed = documents(&finish.stdout);
    assert_eq!(printed.first(), Some(outcome.verdict()), "{}{}", daemon.log(), outcome.story());
    match policy.first() {
        Some(&"--manifest") => outcome.assert_replays("--manifest", &scene.manifest()),
        _ => outcome.assert_replays("--envelope", &scene.envelope()),
    }
    outcome
}
