//! Names and mounts that change while effects are reported.

use effectgate_tests::tools::in_vm;
use effectgate_tests::{Gate, Scene, record};

fn turns() -> String {
    if in_vm() { "300" } else { "5000" }.to_owned()
}

/// All of it happens inside the root, whatever the directory is called now.
#[test]
fn renames_above_what_is_written() {
    let scene = Scene::new();
    let base = scene.root().join("directory");
    let outcome =
        Gate::new(&scene).trigger(["rename-storm", base.to_str().expect("UTF-8"), &turns()]);
    assert!(outcome.violations().is_empty(), "a false violation{}", outcome.story());
    let moved = outcome.events.iter().filter(|event| record::kind(event) == "file/rename").count();
    let turns: usize = turns().parse().expect("a number");
    assert!(moved >= 2 * turns, "{moved} renames recorded{}", outcome.story());
}

/// What a job mounts is not part of a root: each write to it is outside.
#[test]
fn mounts_over_what_is_written() {
    let scene = Scene::new();
    let base = scene.root().join("directory");
    let outcome =
        Gate::new(&scene).trigger(["mount-storm", base.to_str().expect("UTF-8"), &turns()]);
    outcome.assert_fail();
    let turns: usize = turns().parse().expect("a number");
    let made = |event: &&serde_json::Value| {
        record::kind(event) == "file/create" && event["within"] == false
    };
    let made = outcome.events.iter().filter(made).count();
    // Before it comes into being and once it is open, where both are seen.
    assert!(made >= turns, "{made} of {turns}{}", outcome.story());
}
