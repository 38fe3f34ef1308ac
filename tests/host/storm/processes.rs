//! Many processes, one after the other and at the same time.

use effectgate_tests::tools::in_vm;
use effectgate_tests::{Gate, Outcome, Scene, record};

use super::numbers;

/// An emulated machine has little memory and little time.
fn many() -> usize {
    if in_vm() { 1_000 } else { 20_000 }
}

fn assert_each_was_seen(outcome: &Outcome) {
    outcome.assert_pass();
    assert_eq!(numbers(&outcome.verdict()["lost"]), 0, "{}", outcome.story());
    for kind in ["exec/fork", "exec/exit"] {
        let seen = outcome.events.iter().filter(|event| record::kind(event) == kind).count();
        assert!(seen >= many(), "{seen} times {kind}, for {} processes", many());
    }
}

#[test]
fn one_after_the_other() {
    let outcome = Gate::new(&Scene::new()).trigger(["fork", &many().to_string()]);
    assert_each_was_seen(&outcome);
}

#[test]
fn at_the_same_time() {
    let scene = Scene::new();
    let ready = scene.root().join("ready");
    let words = ["fan", &many().to_string(), ready.to_str().expect("UTF-8")];
    let outcome = Gate::new(&scene).trigger(words);
    assert!(ready.exists(), "the machine has no room for {} processes", many());
    assert_each_was_seen(&outcome);
}
