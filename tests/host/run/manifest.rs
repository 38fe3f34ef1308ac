//! A job under a manifest: what it reads, writes and takes of time.

use std::fs;
use std::path::Path;

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Gate, Outcome, Scene, gate, record};
use serde_json::json;

/// A scene under this manifest, with `trigger` below `tools`.
pub fn scene(manifest: &Manifest) -> Scene {
    let scene = Scene::new();
    fs::create_dir(scene.root().join("tools")).expect("mkdir");
    fs::copy(gate::trigger(), scene.root().join("tools/trigger")).expect("copy");
    scene.write_manifest(&manifest.text());
    scene
}

/// Runs `trigger` from the workspace, which may run it.
pub fn trigger(scene: &Scene, words: &[&str]) -> Outcome {
    Gate::manifest(scene).run([&["tools/trigger"], words].concat())
}

pub fn text(path: &Path) -> String {
    path.to_str().expect("test paths are UTF-8").to_owned()
}

/// Fails for one thing: class, path, rule.
pub fn assert_fails_for(outcome: &Outcome, kind: &str, path: &Path, rule: &str) {
    outcome.assert_fail();
    let found = outcome.violations().into_iter().any(|event| {
        record::kind(event) == kind
            && record::path(event) == text(path)
            && event["rule"]["name"] == rule
    });
    assert!(found, "no {kind} of {} by {rule}{}", path.display(), outcome.story());
    let others = outcome.violations().into_iter().filter(|event| record::path(event) != text(path));
    assert_eq!(others.count(), 0, "something else as well{}", outcome.story());
}

#[test]
fn a_clean_job_passes() {
    let scene = scene(&Manifest::new());
    trigger(&scene, &["true"]).assert_pass();
    trigger(&scene, &["open-read", "file"]).assert_pass();
    trigger(&scene, &["create", "directory/new"]).assert_pass();
    trigger(&scene, &["tmpdir-create", "new"]).assert_pass();
}

#[test]
fn the_job_learns_the_manifests_digest() {
    let scene = scene(&Manifest::new());
    let outcome = trigger(&scene, &["print-env", "ENVELOPE_HASH"]);
    outcome.assert_pass();
    let digest = record::text(&outcome.verdict()["policy"]["sha256"]).to_owned();
    assert!(outcome.stdout().starts_with(&digest), "{}", outcome.story());
    assert_eq!(outcome.verdict()["policy"]["kind"], "manifest");
}

#[test]
fn what_lies_outside_is_not_read() {
    let scene = scene(&Manifest::new());
    let file = scene.outside().join("file");
    let outcome = trigger(&scene, &["open-read", &text(&file)]);
    assert_fails_for(&outcome, "file/open_read", &file, "workspace_roots");
    let outcome = trigger(&scene, &["open-read", "to-outside/file"]);
    assert_fails_for(&outcome, "file/open_read", &file, "workspace_roots");
    let shadow = Path::new("/etc/passwd-");
    if shadow.exists() {
        let outcome = trigger(&scene, &["open-read", &text(shadow)]);
        assert_fails_for(&outcome, "file/open_read", shadow, "workspace_roots");
    }
}

#[test]
fn what_a_root_for_reading_adds() {
    let manifest = Manifest::new()
        .set("workspace_roots", json!(["directory", "tools"]))
        .set("read_roots", json!(["file"]))
        .set("extends", json!(["base-linux"]));
    let scene = scene(&manifest);
    let (file, other) = (scene.root().join("file"), scene.root().join("other"));
    trigger(&scene, &["open-read", "file"]).assert_pass();
    let outcome = trigger(&scene, &["open-read", "other"]);
    assert_fails_for(&outcome, "file/open_read", &other, "read_roots");
    let outcome = trigger(&scene, &["open-write", "file"]);
    assert_fails_for(&outcome, "file/open_write", &file, "write_roots");
}

#[test]
fn the_workspace_is_not_written_but_where_it_says() {
    let scene = scene(&Manifest::new());
    let file = scene.root().join("file");
    let outcome = trigger(&scene, &["open-write", "file"]);
    assert_fails_for(&outcome, "file/open_write", &file, "write_roots");
    let new = scene.root().join("new");
    let outcome = trigger(&scene, &["create", "new"]);
    assert_fails_for(&outcome, "file/create", &new, "write_roots");
    let outcome = trigger(&scene, &["rename", "file", "directory/file"]);
    outcome.assert_fail();
    scene.write_manifest(&Manifest::new().set("write_roots", json!(["directory", "."])).text());
    fs::write(&file, "x").expect("write");
    trigger(&scene, &["open-write", "file"]).assert_pass();
}

/// A repository's own file is not a credential of the machine.
#[test]
fn what_the_workspace_holds_is_its_own() {
    let scene = scene(&Manifest::new());
    fs::write(scene.root().join(".npmrc"), "x").expect("write");
    trigger(&scene, &["open-read", ".npmrc"]).assert_pass();
}

#[test]
fn secrets_are_read_when_they_are_listed() {
    let scene = scene(&Manifest::new());
    let secrets = scene.path().join(".aws");
    fs::create_dir(&secrets).expect("mkdir");
    let secret = secrets.join("credentials");
    fs::write(&secret, "x").expect("write");
    let outcome = trigger(&scene, &["open-read", &text(&secret)]);
    assert_fails_for(&outcome, "file/open_read", &secret, "workspace_roots");
    let manifest = Manifest::new()
        .set("workspace_roots", json!(["tools", "directory"]))
        .set("mounted_secrets", json!([text(&secret)]));
    scene.write_manifest(&manifest.text());
    trigger(&scene, &["open-read", &text(&secret)]).assert_pass();
}

#[test]
fn a_root_that_is_a_link_is_where_it_leads() {
    let scene = scene(&Manifest::new().set("write_roots", json!(["link"])));
    let link = scene.root().join("link");
    std::os::unix::fs::symlink("directory", &link).expect("symlink");
    trigger(&scene, &["create", "directory/new"]).assert_pass();
    fs::remove_file(&link).expect("rm");
    std::os::unix::fs::symlink(scene.outside(), &link).expect("symlink");
    let outcome = trigger(&scene, &["true"]);
    outcome.assert_refused();
    let said = &outcome.stderr;
    assert!(said.contains("outside the workspace"), "{said}");
    assert!(said.contains("agent-egress.yml:5"), "the line is not named: {said}");
}

#[test]
fn a_job_is_stopped_when_its_time_is_over() {
    let scene = scene(&Manifest::new().set("max_wall_clock_sec", 1));
    // It waits for a line that nobody says.
    let (silent, held) = std::io::pipe().expect("a pipe");
    let command = Gate::manifest(&scene).with(|command| {
        command.stdin(silent);
    });
    let outcome = command.run(["tools/trigger", "after-line", "true"]);
    drop(held);
    outcome.assert_fail();
    let violations = outcome.violations();
    let [reached] = violations[..] else { panic!("one violation{}", outcome.story()) };
    assert_eq!(record::kind(reached), "limit/max_wall_clock_sec");
    assert_eq!(reached["object"]["bound"], 1);
    assert_eq!(reached["rule"]["line"], 11, "{reached}");
    assert_eq!(outcome.verdict()["command"]["exit"]["signal"], 9, "{}", outcome.story());
}

#[test]
fn the_workspace_can_be_another_directory() {
    let scene = scene(&Manifest::new());
    let elsewhere = Gate::manifest(&scene)
        .with(|command| {
            command.current_dir("/");
        })
        .option(["--workspace", &text(&scene.root())])
        .run(["tools/trigger", "create", "directory/new"]);
    elsewhere.assert_pass();
}
