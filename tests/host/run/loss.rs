//! Loss is an event, and never a silent pass.

use std::process::Stdio;

use effectgate_tests::{Gate, Scene, record, wait};

/// The observer stands still while the job does more than any ring holds. Each
/// record carries a path of some 4,000 bytes.
#[test]
fn flood_is_indeterminate() {
    const DEPTH: usize = 15;
    const FILES: &str = "40000";
    let scene = Scene::new();
    let step = "d".repeat(250);
    let path: std::path::PathBuf = std::iter::repeat_n(step.as_str(), DEPTH).collect();
    std::fs::create_dir_all(scene.root().join(path)).expect("mkdir");
    let text = |name: &str| scene.root().join(name).to_str().expect("UTF-8").to_owned();
    let (ready, done) = (text("ready"), text("done"));

    let mut running = Gate::new(&scene)
        .with(|command| {
            command.stdin(Stdio::piped());
        })
        .start_trigger([
            "ready-then",
            &ready,
            "after-line",
            "deep-flood",
            &text(""),
            &step,
            &DEPTH.to_string(),
            FILES,
            &done,
        ]);
    wait::until("the command runs", || std::fs::exists(&ready).ok()?.then_some(()));
    wait::signal(running.pid(), libc::SIGSTOP);
    running.say("go");
    wait::until("the flood is over", || std::fs::exists(&done).ok()?.then_some(()));
    wait::signal(running.pid(), libc::SIGCONT);

    let outcome = running.end();
    outcome.assert_indeterminate();
    let lost: u64 = numbers(&outcome.verdict()["lost"]);
    assert!(lost > 0, "nothing was lost{}", outcome.story());
    let gap = outcome.events.iter().find(|event| record::kind(event) == "guard/gap");
    assert!(gap.is_some(), "no record of the gap{}", outcome.story());
    let printed = outcome.stdout();
    let last = printed.lines().last().expect("a line");
    assert!(last.starts_with("verdict: indeterminate"), "{last}");
    assert!(!last.contains(" 0 lost"), "{last}");
}

/// The sum of all numbers in a value.
fn numbers(value: &serde_json::Value) -> u64 {
    match value {
        serde_json::Value::Number(number) => number.as_u64().unwrap_or(0),
        serde_json::Value::Object(map) => map.values().map(numbers).sum(),
        serde_json::Value::Array(list) => list.iter().map(numbers).sum(),
        _ => 0,
    }
}

/// A violation that was seen stays one, whatever was lost around it.
#[test]
fn a_fast_job_is_seen_whole() {
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let trigger = effectgate_tests::gate::trigger();
    let trigger = trigger.to_str().expect("UTF-8");
    let script = format!("{trigger} fork 200; {trigger} open-write {}", file.display());
    let outcome = Gate::new(&scene).run(["/bin/sh", "-c", &script]);
    outcome.assert_fail();
    assert_eq!(numbers(&outcome.verdict()["lost"]), 0, "{}", outcome.story());
    let forks = outcome.events.iter().filter(|event| record::kind(event) == "exec/fork").count();
    assert!(forks >= 200, "{forks} forks recorded");
}
