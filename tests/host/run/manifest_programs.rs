//! Which programs a job runs under a manifest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Gate, Scene, gate};
use serde_json::json;

use super::manifest::{assert_fails_for, scene, text, trigger};

/// Two programs below `tools` and `directory`, both written by the job.
#[test]
fn what_the_job_wrote_runs_below_an_exec_root_only() {
    let scene = scene(&Manifest::new().set("write_roots", json!(["directory", "tools"])));
    trigger(&scene, &["link", "tools/trigger", "tools/again"]).assert_pass();
    trigger(&scene, &["link", "tools/trigger", "directory/again"]).assert_pass();
    Gate::manifest(&scene).run(["tools/again", "true"]).assert_pass();
    let outcome = Gate::manifest(&scene).run(["directory/again", "true"]);
    let again = scene.root().join("directory/again");
    assert_fails_for(&outcome, "exec/exec", &again, "binaries");
}

#[test]
fn a_program_that_is_not_listed() {
    let scene = scene(&Manifest::new());
    let other = scene.root().join("other-program");
    fs::copy(gate::trigger(), &other).expect("copy");
    let outcome = trigger(&scene, &["exec", &text(&other), "true"]);
    assert_fails_for(&outcome, "exec/exec", &other, "binaries");
}

#[test]
fn a_script_is_its_interpreter() {
    let scene = scene(&Manifest::new());
    let script = script(&scene, "tools/script", "#!/bin/sh\n");
    let outcome = Gate::manifest(&scene).run([&script]);
    outcome.assert_fail();
    let programs: Vec<_> = outcome.violations().iter().map(|e| e["class"].clone()).collect();
    assert!(programs.contains(&json!("exec")), "{}", outcome.story());
    // One that lies in the workspace itself is no better than any other.
    let own = format!("#!{}/tools/trigger true\n", scene.root().display());
    let script = self::script(&scene, "directory/script", &own);
    Gate::manifest(&scene).run([&script]).assert_pass();
}

fn script(scene: &Scene, name: &str, text: &str) -> PathBuf {
    let path = scene.root().join(name);
    fs::write(&path, text).expect("write");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    path
}

/// The file of the program `env`.
fn env() -> PathBuf {
    let places = ["/usr/bin/env", "/bin/env"].map(Path::new);
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    found.expect("every system has env")
}

/// Whether a system's programs are one file (busybox), which is a shell.
fn one_for_all() -> bool {
    ["busybox", "toybox"].iter().any(|name| env().ends_with(name))
}

#[test]
fn a_listed_program() {
    let scene = scene(&Manifest::new().set("binaries", json!(["env"])));
    let outcome = Gate::manifest(&scene).run(["env", "tools/trigger", "true"]);
    if one_for_all() {
        outcome.assert_refused();
        assert!(outcome.stderr.contains("busybox"), "{}", outcome.story());
        return;
    }
    outcome.assert_pass();
    // Called by another name, it is still that file.
    let link = scene.root().join("directory/other-name");
    std::os::unix::fs::symlink(env(), &link).expect("symlink");
    Gate::manifest(&scene).run(["directory/other-name", "tools/trigger", "true"]).assert_pass();
    // A copy of it is another file.
    let copy = scene.root().join("directory/env");
    fs::copy(env(), &copy).expect("copy");
    let outcome = Gate::manifest(&scene).run(["directory/env", "tools/trigger", "true"]);
    assert_fails_for(&outcome, "exec/exec", &copy, "binaries");
}

#[test]
fn a_programs_digest() {
    if one_for_all() {
        return;
    }
    let listed = |sha256: &str| {
        let binaries = json!([{ "name": "env", "sha256": sha256 }]);
        scene(&Manifest::new().set("binaries", binaries))
    };
    let file = fs::read(env());
    let digest = effectgate_tests::scene::digest(&file.expect("it can be read"));
    let run = |scene: &Scene| Gate::manifest(scene).run(["env", "tools/trigger", "true"]);
    run(&listed(&digest)).assert_pass();
    let outcome = run(&listed(&"0".repeat(64)));
    outcome.assert_refused();
    assert!(outcome.stderr.contains(&digest), "{}", outcome.story());
}

/// A Python that is an interpreter used as a shell, and one that is not.
#[test]
fn an_interpreter_used_as_a_shell() {
    if !Path::new("/usr/bin/python3").exists() {
        println!("not tested: python3 is not installed");
        return;
    }
    let manifest =
        Manifest::new().set("binaries", json!(["python3"])).set("extends", json!(["python"]));
    let scene = scene(&manifest);
    fs::write(scene.root().join("a.py"), "print(open('file').read())\n").expect("write");
    let run =
        |words: &[&str]| Gate::manifest(&scene).run([&["/usr/bin/python3", "-B"], words].concat());
    run(&["a.py"]).assert_pass();
    let python = Path::new("/usr/bin/python3").canonicalize().expect("it is there");
    let inline = run(&["-c", "print(1)"]);
    inline.assert_fail();
    let violations = inline.violations();
    let [seen] = violations[..] else { panic!("one violation{}", inline.story()) };
    assert_eq!(seen["rule"]["name"], "exceptions", "{}", inline.story());
    let shown = inline.verdict()["violations"][0]["object"].clone();
    assert_eq!(shown, format!("{} (python -c)", python.display()));
    let exception = json!([{
        "allows": "python -c", "reviewers": ["A. One", "B. Two"],
        "reason": "the test", "expires": "2999-12-31",
    }]);
    scene.write_manifest(&manifest.set("exceptions", exception).text());
    run(&["-c", "print(1)"]).assert_pass();
}
