//! `trigger` under watch, in the way that the tests were told: each time by a
//! `run` of its own, or as one of many jobs of a single daemon. Loading the
//! programs takes an emulated machine seconds, and a daemon does it once.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::{OnceLock, RwLock};

use crate::attached;
use crate::daemon::Daemon;
use crate::gate::{self, Gate, Outcome};
use crate::scene::Scene;

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
    let mut command = attached::command(&gate::trigger(), words, scene, Vec::new());
    let outcome = job(scene, &scene.envelope(), mode, &mut command);
    outcome.assert_replays("--envelope", &scene.envelope());
    outcome
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
    let mut words = command.into_iter();
    // Relative to the root: where the command starts is not where the test does.
    let program = scene.root().join(words.next().expect("a program").as_ref());
    let mut command = attached::command(&program, words, scene, Vec::new());
    let outcome = job(scene, &scene.manifest(), mode, &mut command);
    outcome.assert_replays("--manifest", &scene.manifest());
    outcome
}

fn job(scene: &Scene, policy: &Path, mode: &str, command: &mut Command) -> Outcome {
    let shared = shared().read().expect("only the end of the process writes");
    let daemon = shared.as_ref().expect("tests end before the process");
    let (_, outcome) = attached::run(daemon, scene, policy, mode, command, false);
    outcome.unwrap_or_else(|| panic!("the daemon gave no verdict\n{}", daemon.log()))
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
