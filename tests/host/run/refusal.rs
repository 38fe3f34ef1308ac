//! What must not run: a policy that is not one, or not the one that was pinned.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use effectgate_tests::{Gate, Outcome, Scene, gate};
use serde_json::{Value, json};

/// A run whose command would leave a file.
fn attempt(scene: &Scene, options: &[&str]) -> Outcome {
    let ran = scene.root().join("ran");
    let _ = fs::remove_file(&ran);
    Gate::new(scene).option(options).trigger(["create", ran.to_str().expect("UTF-8")])
}

fn assert_refused(scene: &Scene, options: &[&str], why: &str) {
    let outcome = attempt(scene, options);
    outcome.assert_refused();
    assert!(!scene.root().join("ran").exists(), "the command ran{}", outcome.story());
    let said = outcome.stderr.to_lowercase();
    assert!(said.contains(why), "the message says nothing of {why:?}{}", outcome.story());
}

/// Refused for what the file says; the message names file and line.
fn assert_refused_text(text: &str, line: Option<usize>) {
    let scene = Scene::new();
    scene.write_envelope_text(text);
    let place = match line {
        Some(line) => format!("envelope.json:{line}:"),
        None => "envelope.json".to_owned(),
    };
    assert_refused(&scene, &[], &place);
}

fn assert_refused_value(change: impl FnOnce(&Scene, &mut Value)) {
    let scene = Scene::new();
    let mut envelope = scene.envelope_value();
    change(&scene, &mut envelope);
    scene.write_envelope(&envelope);
    assert_refused(&scene, &[], "envelope.json");
}

#[test]
fn missing_envelope() {
    let scene = Scene::new();
    fs::remove_file(scene.envelope()).expect("rm");
    assert_refused(&scene, &[], "envelope.json");
}

#[test]
fn envelope_that_is_a_directory() {
    let scene = Scene::new();
    fs::remove_file(scene.envelope()).expect("rm");
    fs::create_dir(scene.envelope()).expect("mkdir");
    assert_refused(&scene, &[], "envelope.json");
}

#[test]
fn empty_envelope() {
    assert_refused_text("", None);
}

#[test]
fn malformed_envelope() {
    assert_refused_text("{\n  \"envelope_id\": \"x\",\n  oops\n}\n", Some(3));
    assert_refused_text("[]\n", Some(1));
    assert_refused_text("null\n", Some(1));
}

#[test]
fn key_that_is_unknown_twice_or_not_there() {
    assert_refused_value(|_, envelope| envelope["extra"] = json!(1));
    assert_refused_value(|_, envelope| {
        envelope.as_object_mut().expect("an object").remove("network");
    });
    let scene = Scene::new();
    let text = fs::read_to_string(scene.envelope()).expect("read");
    let twice = text.replacen("\"network\"", "\"network\": \"deny\", \"network\"", 1);
    scene.write_envelope_text(&twice);
    assert_refused(&scene, &[], "network");
}

#[test]
fn contradictory_network() {
    assert_refused_value(|_, envelope| envelope["allowed_hosts"] = json!(["127.0.0.1"]));
    assert_refused_value(|_, envelope| envelope["network"] = json!("allowlist"));
    assert_refused_value(|_, envelope| envelope["network"] = json!("open"));
}

#[test]
fn roots_that_are_none() {
    assert_refused_value(|_, envelope| envelope["allowed_roots"] = json!(["/"]));
    assert_refused_value(|_, envelope| envelope["allowed_roots"] = json!(["relative"]));
    assert_refused_value(|scene, envelope| {
        envelope["allowed_roots"] = json!([format!("{}/..", scene.root().display())]);
    });
}

#[test]
fn root_that_is_not_there() {
    let scene = Scene::new();
    let nowhere = scene.path().join("nowhere");
    scene.allow(|envelope| {
        envelope["allowed_roots"] = json!([scene.root(), nowhere]);
    });
    assert_refused(&scene, &[], "nowhere");
}

#[test]
fn envelope_that_nobody_pinned() {
    let scene = Scene::new();
    fs::remove_file(scene.pin()).expect("rm");
    assert_refused(&scene, &[], "pin");
}

#[test]
fn wrong_digest() {
    let scene = Scene::new();
    assert_refused(&scene, &["--digest", &"0".repeat(64)], "sha-256");
}

#[test]
fn right_digest_passes() {
    let scene = Scene::new();
    let digest = scene.digest();
    attempt(&scene, &["--digest", &digest]).assert_pass();
    attempt(&scene, &["--digest", &digest.to_uppercase()]).assert_pass();
}

#[test]
fn drift_is_refused() {
    let scene = drifted();
    let pin = scene.path().join("another.sha256");
    fs::rename(scene.pin(), &pin).expect("mv");
    assert_refused(&scene, &["--digest-file", pin.to_str().expect("UTF-8")], "sha-256");
}

/// The pin beside the envelope counts without being named.
#[test]
fn drift_from_the_pin_beside_is_refused() {
    assert_refused(&drifted(), &[], "sha-256");
}

#[test]
fn drift_with_a_review_note_passes() {
    let scene = drifted();
    let note = note(&scene, &pinned(&scene), &scene.digest());
    let outcome = attempt(&scene, &["--review-note", note.to_str().expect("UTF-8")]);
    outcome.assert_pass();
    let kept = outcome.verdict()["policy"]["note"].to_string();
    assert!(kept.contains("A. Reviewer"), "the note is not evidence{}", outcome.story());
}

#[test]
fn drift_with_a_note_about_another_is_refused() {
    let scene = drifted();
    let note = note(&scene, &"0".repeat(64), &scene.digest());
    assert_refused(&scene, &["--review-note", note.to_str().expect("UTF-8")], "note");
}

#[test]
fn pin_that_is_none_is_refused() {
    let scene = Scene::new();
    fs::write(scene.pin(), "not a digest\n").expect("write");
    assert_refused(&scene, &[], "envelope.json.sha256");
}

#[test]
fn pin_and_its_verification() {
    let scene = Scene::new();
    let envelope = scene.envelope();
    let envelope = envelope.to_str().expect("UTF-8");
    fs::remove_file(scene.pin()).expect("rm");
    assert_eq!(effectgate(&["pin", envelope]).status.code(), Some(0));
    assert_eq!(pinned(&scene), scene.digest());
    assert_eq!(effectgate(&["pin", envelope, "--verify"]).status.code(), Some(0));
    drift(&scene);
    let output = effectgate(&["pin", envelope, "--verify"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    fs::remove_file(scene.pin()).expect("rm");
    let output = effectgate(&["pin", envelope, "--verify"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn check_of_good_bad_and_missing() {
    let scene = Scene::new();
    let path = scene.envelope();
    let envelope = path.to_str().expect("UTF-8");
    let output = effectgate(&["check", envelope]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    fs::write(&path, "{\n\"envelope_id\": \"\",\n\"x\": 1}\n").expect("write");
    let output = effectgate(&["check", envelope]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    for place in ["envelope.json:2:", "envelope.json:3:"] {
        assert!(said.contains(place), "every fault at once, {place} too: {said}");
    }
    fs::remove_file(&path).expect("rm");
    let output = effectgate(&["check", envelope]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

fn effectgate(words: &[&str]) -> Output {
    Command::new(gate::binary()).args(words).output().expect("the binary can be started")
}

fn pinned(scene: &Scene) -> String {
    let pin = fs::read_to_string(scene.pin()).expect("the pin was written");
    pin.split_whitespace().next().expect("a digest").to_owned()
}

/// A scene whose envelope changed after it was pinned.
fn drifted() -> Scene {
    let scene = Scene::new();
    drift(&scene);
    scene
}

fn drift(scene: &Scene) {
    let mut envelope = scene.envelope_value();
    envelope["allowed_env"] = json!(["ONE_MORE"]);
    scene.write_unpinned(&envelope.to_string());
}

fn note(scene: &Scene, old: &str, new: &str) -> PathBuf {
    let path = scene.path().join("note.json");
    let note = json!({
        "reviewer": "A. Reviewer",
        "date": "2025-01-31",
        "reason": "the build needs one more key",
        "old_digest": old,
        "new_digest": new,
    });
    fs::write(&path, note.to_string()).expect("write");
    path
}
