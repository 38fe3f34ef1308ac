//! What a manifest says about lost records.

use std::io::Write;

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Gate, record, wait};

use super::manifest::{scene, text};

/// The observer stands still while the job does more than its ring holds: each
/// effect carries a path of some 4,000 bytes. Then the job waits for a line
/// that nobody says.
#[test]
fn a_job_is_killed_at_its_first_loss() {
    const DEPTH: usize = 15;
    const FILES: &str = "5000";
    let scene = scene(&Manifest::new().set("on_loss", "kill"));
    let step = "d".repeat(250);
    let deep: std::path::PathBuf = std::iter::repeat_n(step.as_str(), DEPTH).collect();
    let top = scene.root().join("directory");
    std::fs::create_dir_all(top.join(deep)).expect("mkdir");
    let (ready, done) = (top.join("ready"), top.join("done"));
    let (silent, mut held) = std::io::pipe().expect("a pipe");
    let before = ["tools/trigger", "ready-then", &text(&ready), "after-line", "sequence"];
    let flood = ["deep-flood", &text(&top), &step, &DEPTH.to_string(), FILES, &text(&done)];
    let running = Gate::manifest(&scene)
        .with(|command| {
            command.stdin(silent);
        })
        .start([&before[..], &flood, &[",", "after-line", "true"]].concat());
    wait::until("the command runs", || std::fs::exists(&ready).ok()?.then_some(()));
    wait::signal(running.pid(), libc::SIGSTOP);
    held.write_all(b"go\n").expect("the command reads its input");
    wait::until("the flood is over", || std::fs::exists(&done).ok()?.then_some(()));
    wait::signal(running.pid(), libc::SIGCONT);

    let outcome = running.end();
    outcome.assert_indeterminate();
    let stopped = outcome.events.iter().find(|event| record::kind(event) == "guard/stopped");
    let why = stopped.map(|event| event["object"]["why"].to_string()).unwrap_or_default();
    assert!(why.contains("on_loss"), "not for its loss{}", outcome.story());
    assert_eq!(outcome.verdict()["command"]["exit"]["signal"], 9, "{}", outcome.story());
}
