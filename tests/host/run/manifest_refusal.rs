//! What must not run under a manifest.

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Gate, Outcome, gate};
use serde_json::json;

use super::manifest::{scene, text};

fn refused(manifest: &Manifest, said: &[&str]) {
    let scene = scene(manifest);
    assert_says(&Gate::manifest(&scene).run(["tools/trigger", "create", "directory/ran"]), said);
    assert!(!scene.root().join("directory/ran").exists(), "the command ran");
}

fn assert_says(outcome: &Outcome, said: &[&str]) {
    outcome.assert_refused();
    for words in said {
        assert!(outcome.stderr.contains(words), "nothing of {words:?}{}", outcome.story());
    }
}

#[test]
fn roots_that_are_not_there() {
    for key in ["workspace_roots", "write_roots", "exec_roots", "read_roots"] {
        let manifest = Manifest::new()
            .set("extends", json!(["base-linux"]))
            .set(key, json!(["nowhere", "directory", "tools"]))
            .set("workspace_roots", json!([".", "nowhere"]));
        refused(&manifest, &["agent-egress.yml:", "nowhere", "create it before"]);
    }
}

#[test]
fn programs_that_are_not_there() {
    let manifest = Manifest::new().without("exec_roots");
    refused(&manifest, &["agent-egress.yml:6: binaries", "no-such-program", "/usr/bin"]);
}

#[test]
fn what_cannot_be_done_here() {
    refused(&Manifest::new().set("on_loss", "deny"), &["on_loss: deny", "enforce"]);
    if gate::on_tracepoints() {
        refused(&Manifest::new().set("min_coverage", "object"), &["coverage", "object"]);
    }
}

#[test]
fn one_kind_called_the_other() {
    let scene = scene(&Manifest::new());
    let outcome = |words: &[&str]| {
        let run = std::process::Command::new(gate::binary())
            .args([&["run"], words, &["--", "true"]].concat())
            .current_dir(scene.root())
            .output()
            .expect("the binary can be started");
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    let (manifest, envelope) = (text(&scene.manifest()), text(&scene.envelope()));
    let (code, said) = outcome(&["--envelope", &manifest]);
    assert!(code == Some(122) && said.contains("use --manifest"), "{code:?} {said}");
    let (code, said) = outcome(&["--manifest", &envelope]);
    assert!(code == Some(122) && said.contains("use --envelope"), "{code:?} {said}");
    let (code, said) = outcome(&["--manifest", &manifest, "--envelope", &envelope]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = outcome(&["--manifest", &manifest, "--workspace", "/nonexistent"]);
    assert!(code == Some(122) && said.contains("/nonexistent"), "{code:?} {said}");
}

#[test]
fn a_manifest_that_nobody_pinned() {
    let scene = scene(&Manifest::new());
    std::fs::remove_file(scene.path().join("agent-egress.yml.sha256")).expect("rm");
    assert_says(&Gate::manifest(&scene).run(["tools/trigger", "true"]), &["pin"]);
}
