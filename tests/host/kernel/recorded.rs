//! Effects that are recorded and judged by nothing.

use std::path::Path;

use effectgate_tests::{Outcome, Scene, gate, record, watched};

fn trigger() -> String {
    gate::trigger().to_str().expect("UTF-8").to_owned()
}

fn count(outcome: &Outcome, kind: &str) -> usize {
    outcome.events.iter().filter(|event| record::kind(event) == kind).count()
}

#[test]
fn fork_and_exit() {
    let scene = Scene::new();
    let outcome = watched::trigger(&scene, ["fork", "5"]);
    outcome.assert_pass();
    assert_eq!(count(&outcome, "exec/fork"), 5, "forks{}", outcome.story());
    assert!(count(&outcome, "exec/exit") >= 5, "exits{}", outcome.story());
}

#[test]
fn exec_with_its_arguments() {
    let scene = Scene::new();
    let outcome = watched::trigger(&scene, ["exec", &trigger(), "true", "two words", ""]);
    outcome.assert_pass();
    let argv = serde_json::json!([trigger(), "true", "two words", ""]);
    let exec = outcome
        .events
        .iter()
        .find(|event| record::kind(event) == "exec/exec" && event["object"]["argv"] == argv)
        .unwrap_or_else(|| panic!("the second exec is not recorded{}", outcome.story()));
    assert_eq!(record::path(exec), trigger());
    assert_eq!(exec["within"], true);
}

#[test]
fn exec_by_descriptor() {
    let scene = Scene::new();
    let outcome = watched::trigger(&scene, ["execveat", &trigger()]);
    outcome.assert_pass();
    let execs: Vec<_> =
        outcome.events.iter().filter(|event| record::kind(event) == "exec/exec").collect();
    assert_eq!(execs.len(), 2, "execs{}", outcome.story());
    assert!(execs.iter().all(|exec| record::path(exec) == trigger()), "{}", outcome.story());
}

/// The name it was called by is not the file that runs.
#[test]
fn exec_by_a_relative_name() {
    let scene = Scene::new();
    let program = scene.root().join("program");
    std::fs::copy(gate::trigger(), &program).expect("cp");
    let outcome = watched::trigger(&scene, ["exec", "./program", "true"]);
    outcome.assert_pass();
    let exec = outcome
        .events
        .iter()
        .filter(|event| record::kind(event) == "exec/exec")
        .find(|event| event["object"]["argv"][0] == "./program")
        .unwrap_or_else(|| panic!("the exec is not recorded{}", outcome.story()));
    assert_eq!(record::path(exec), program.to_str().expect("UTF-8"), "{}", outcome.story());
    assert!(exec["object"]["interpreter"].is_null(), "{exec}");
}

#[test]
fn script_with_its_interpreter() {
    let scene = Scene::new();
    let script = scene.root().join("script");
    std::fs::write(&script, format!("#!{} true\n", trigger())).expect("write");
    let script = scene.copy_of(&script);
    let outcome = watched::trigger(&scene, [Path::new("exec"), &script]);
    outcome.assert_pass();
    let script = script.to_str().expect("UTF-8");
    let exec = outcome
        .events
        .iter()
        .find(|event| {
            record::kind(event) == "exec/exec" && event["object"].to_string().contains(script)
        })
        .unwrap_or_else(|| panic!("the script is not recorded{}", outcome.story()));
    assert!(exec["object"].to_string().contains(&trigger()), "{}", outcome.story());
}

#[test]
fn ancestry() {
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let outcome =
        watched::trigger(&scene, ["fork-then", "open-write", file.to_str().expect("UTF-8")]);
    outcome.assert_fail();
    let violation = &outcome.violations()[0];
    assert!(
        violation["process"]["ancestry"].to_string().contains(&trigger()),
        "the parent is not named{}",
        outcome.story()
    );
}

#[test]
fn process_is_pid_and_start() {
    let scene = Scene::new();
    let outcome = watched::trigger(&scene, ["fork", "1"]);
    outcome.assert_pass();
    for event in outcome.events.iter().filter(|event| record::kind(event) == "exec/exec") {
        assert!(event["process"]["pid"].as_u64().is_some(), "{event}");
        assert!(!event["process"]["start"].is_null(), "{event}");
    }
}

/// A program with a 32-bit entry, whose arguments the tracepoint backend cannot
/// read.
#[test]
fn compatible_system_call() {
    let bare = std::process::Command::new(gate::trigger())
        .arg("compat-getpid")
        .status()
        .expect("the trigger can be started");
    if !bare.success() {
        println!("not tested: this kernel has no entry for 32-bit programs ({bare})");
        return;
    }
    let scene = Scene::new();
    let outcome = watched::trigger(&scene, ["compat-getpid"]);
    if gate::on_tracepoints() {
        outcome.assert_indeterminate();
    } else {
        outcome.assert_pass();
    }
}
