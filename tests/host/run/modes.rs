//! What is done about a violation, beside saying it.

use std::io::PipeWriter;

use effectgate_tests::gate::Running;
use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Gate, Outcome, Scene, gate, record};

use super::manifest::{scene, text};

/// Standard input that nobody writes to, and its other end.
fn silent(gate: Gate) -> (Gate, PipeWriter) {
    let (silent, held) = std::io::pipe().expect("a pipe");
    let gate = gate.with(|command| {
        command.stdin(silent);
    });
    (gate, held)
}

fn killed_by_signal(outcome: &Outcome) -> bool {
    outcome.verdict()["command"]["exit"]["signal"] == 9
}

/// The record that says what was killed, and for which violation.
fn notice(outcome: &Outcome) -> &serde_json::Value {
    let mut notices = outcome.events.iter().filter(|it| record::kind(it) == "guard/killed");
    let notice = notices.next().unwrap_or_else(|| panic!("nothing killed{}", outcome.story()));
    let violation = notice["object"]["violation"].as_u64().expect("a number") as usize;
    assert_eq!(outcome.events[violation]["within"], false, "{}", outcome.story());
    notice
}

/// Violates the policy and then waits for a line that nobody says.
fn outside_then_wait(gate: Gate, scene: &Scene) -> (Running, PipeWriter) {
    let (gate, held) = silent(gate);
    let outside = text(&scene.outside().join("new"));
    let running = gate.start_trigger(["sequence", "create", &outside, ",", "after-line", "true"]);
    (running, held)
}

#[test]
fn a_violation_ends_the_job() {
    let scene = Scene::new();
    let (running, _held) = outside_then_wait(Gate::new(&scene).option(["--mode", "kill"]), &scene);
    let outcome = running.end();
    outcome.assert_fail();
    assert!(killed_by_signal(&outcome), "{}", outcome.story());
    assert_eq!(notice(&outcome)["object"]["pid"], serde_json::Value::Null);
    assert_eq!(outcome.events[0]["object"]["mode"], "kill");
}

#[test]
fn a_manifest_asks_for_it_as_well() {
    let scene = scene(&Manifest::new().set("on_violation", "kill"));
    let (gate, _held) = silent(Gate::manifest(&scene));
    let outside = text(&scene.outside().join("new"));
    let words = ["sequence", "create", &outside, ",", "after-line", "true"];
    let outcome = gate.start([&["tools/trigger"], &words[..]].concat()).end();
    outcome.assert_fail();
    assert!(killed_by_signal(&outcome), "{}", outcome.story());
    notice(&outcome);
}

#[test]
fn a_violation_does_not_happen() {
    let scene = Scene::new();
    let outside = scene.outside().join("new");
    let gate = Gate::new(&scene).option(["--mode", "enforce"]);
    let outcome = gate.trigger(["create", &text(&outside)]);
    outcome.assert_fail();
    let decisions: Vec<_> = outcome.violations().iter().map(|it| it["decision"].clone()).collect();
    if gate::on_tracepoints() {
        assert!(outcome.stderr.contains("denies the network only"), "{}", outcome.story());
        assert!(outside.exists(), "{}", outcome.story());
        assert!(decisions.iter().all(|it| it == "recorded"), "{}", outcome.story());
        return;
    }
    assert!(!outside.exists(), "it happened{}", outcome.story());
    assert!(decisions.iter().all(|it| it == "denied"), "{}", outcome.story());
    assert_eq!(outcome.verdict()["command"]["exit"]["code"], libc::EPERM, "{}", outcome.story());
    assert_eq!(outcome.verdict()["disagreements"], 0, "{}", outcome.story());
}

#[test]
fn connections_are_denied_by_every_backend() {
    for mode in ["kill", "enforce"] {
        let scene = Scene::new();
        let gate = Gate::new(&scene).option(["--mode", mode]);
        let outcome = gate.trigger(["connect", "192.0.2.1:9"]);
        outcome.assert_fail();
        let found = outcome.violations();
        let connect = found.iter().find(|event| record::kind(event) == "net/connect");
        let connect = connect.unwrap_or_else(|| panic!("no connect{}", outcome.story()));
        assert_ne!(connect["decision"], "recorded", "{mode}{}", outcome.story());
    }
}

/// Under another name the same file would be a program like any other.
#[test]
fn what_only_user_space_can_judge_is_killed() {
    if gate::on_tracepoints() {
        return;
    }
    let scene = scene(&Manifest::new().set("on_violation", "enforce"));
    std::fs::copy(gate::trigger(), scene.root().join("tools/bash")).expect("copy");
    let (gate, _held) = silent(Gate::manifest(&scene));
    let outcome = gate.start(["tools/bash", "after-line", "true"]).end();
    outcome.assert_fail();
    assert!(killed_by_signal(&outcome), "{}", outcome.story());
    assert!(notice(&outcome)["object"]["pid"].is_u64(), "{}", outcome.story());
}

#[test]
fn to_enforce_takes_the_lsm_backend() {
    let modules = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    if modules.contains("bpf") {
        return;
    }
    let scene = Scene::new();
    let envelope = text(&scene.envelope());
    let run = std::process::Command::new(gate::binary())
        .args(["run", "--mode", "enforce", "--envelope", &envelope, "--", "true"])
        .output()
        .expect("the binary can be started");
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(122), "{said}");
    assert!(said.contains("lsm") && said.contains("by its name"), "{said}");
}
