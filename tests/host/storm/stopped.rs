//! The observer stands still in the middle of a storm of violations.

use std::path::PathBuf;

use effectgate_tests::{Gate, Scene, gate, record, wait};

/// For so long the job does nothing but what it may not.
const MILLISECONDS: &str = "10000";

/// Each attempt is either reported or counted as lost, to the unit. Its path is
/// long, so that the ring is full soon, and read again soon.
#[test]
fn what_was_lost_is_counted_to_the_unit() {
    let scene = Scene::new();
    let step = "d".repeat(250);
    let deep: PathBuf = std::iter::repeat_n(step.as_str(), 14).collect();
    let deep = scene.outside().join(deep);
    std::fs::create_dir_all(&deep).expect("mkdir");
    let file = deep.join("file");
    std::fs::write(&file, "x").expect("write");
    let ready = scene.root().join("ready");
    let [file, ready] = [&file, &ready].map(|path| path.to_str().expect("UTF-8").to_owned());
    let denies = gate::backend() == "lsm";
    let mode = if denies { "enforce" } else { "observe" };
    let gate = Gate::new(&scene).option(["--mode", mode]);
    let running = gate.start_trigger(["attempts", &file, MILLISECONDS, &ready]);
    wait::until("the storm begins", || std::fs::exists(&ready).ok()?.then_some(()));
    wait::signal(running.pid(), libc::SIGSTOP);
    // The job ends, and stays until its parent goes on.
    wait::until("the storm is over", || {
        let children = format!("/proc/{0}/task/{0}/children", running.pid());
        let child = std::fs::read_to_string(children).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).ok()?;
        stat.rsplit(')').next()?.trim_start().starts_with('Z').then_some(())
    });
    wait::signal(running.pid(), libc::SIGCONT);

    let outcome = running.end();
    let printed = outcome.stdout();
    let first = printed.lines().next().expect("the job said how often it tried");
    let mut numbers = first.split(' ').map(|word| word.parse::<u64>().expect("a number"));
    let (tried, failed) = (numbers.next().expect("one"), numbers.next().expect("two"));
    let told = outcome
        .events
        .iter()
        .filter(|event| record::kind(event) == "file/open_write" && record::path(event) == file)
        .count() as u64;
    let lost = outcome.verdict()["lost"]["file"].as_u64().expect("a number");
    assert_eq!(told + lost, tried, "{told} told, {lost} lost, {tried} tried, {failed} failed");
    assert_eq!(failed, if denies { tried } else { 0 }, "a stopped observer denies nothing else");
    assert!(lost > 0, "nothing was lost of {tried}: the storm was none");
    // What was proven stays proven.
    outcome.assert_fail();
}
