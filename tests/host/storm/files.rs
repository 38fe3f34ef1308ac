//! Many open files.

use std::process::Stdio;

use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::daemon::Daemon;
use effectgate_tests::tools::in_vm;
use effectgate_tests::{Gate, Scene, attached, gate, wait};

use super::numbers;

fn many() -> u32 {
    if in_vm() { 10_000 } else { 100_000 }
}

fn words(scene: &Scene) -> Vec<String> {
    let text = |name| scene.root().join(name).to_str().expect("UTF-8").to_owned();
    vec!["hold-many".to_owned(), text("file"), many().to_string(), text("ready")]
}

/// The job opens them.
#[test]
fn hundred_thousand_opened() {
    let scene = Scene::new();
    let mut running = Gate::new(&scene)
        .with(|command| {
            command.stdin(Stdio::piped());
        })
        .start_trigger(words(&scene));
    running.say("go");
    let outcome = running.end();
    outcome.assert_pass();
    assert_eq!(numbers(&outcome.verdict()["lost"]), 0, "{}", outcome.story());
}

/// The job has them before it is watched.
#[test]
fn hundred_thousand_held_at_the_start() {
    let scene = Scene::new();
    let daemon = Daemon::start();
    let cgroup = Cgroup::new();
    let mut command = std::process::Command::new(gate::trigger());
    command.args(words(&scene)).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::piped());
    let door = attached::enter(&mut command, &cgroup);
    let mut child = command.spawn().expect("it can be started");
    drop(door);
    let ready = scene.root().join("ready");
    wait::until("the files are open", || ready.exists().then_some(()));
    let job = daemon.start_job("held", &scene.envelope(), &cgroup);
    // Its input ends.
    drop(child.stdin.take());
    assert!(wait::exit(&mut child, "the job").success());
    let output = daemon.job(&["finish", &job]);
    assert_eq!(output.status.code(), Some(0), "{output:?}{}", daemon.log());
}
