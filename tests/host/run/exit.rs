//! Exit codes, to the letter.

use effectgate_tests::{Gate, Scene};

fn outside(scene: &Scene) -> String {
    scene.outside().join("file").to_str().expect("UTF-8").to_owned()
}

#[test]
fn pass_is_0() {
    Gate::new(&Scene::new()).trigger(["true"]).assert_pass();
}

#[test]
fn pass_of_a_failed_command_is_the_commands_own() {
    for code in [1, 7, 119] {
        let outcome = Gate::new(&Scene::new()).trigger(["exit", &code.to_string()]);
        outcome.assert_code(code);
        assert_eq!(outcome.verdict()["verdict"], "pass", "{}", outcome.story());
    }
}

#[test]
fn pass_of_a_killed_command_is_128_and_the_signal() {
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV] {
        let outcome = Gate::new(&Scene::new()).trigger(["kill-self", &signal.to_string()]);
        outcome.assert_code(128 + signal);
        assert_eq!(outcome.verdict()["verdict"], "pass", "{}", outcome.story());
    }
}

#[test]
fn fail_is_120() {
    let scene = Scene::new();
    Gate::new(&scene).trigger(["open-write", &outside(&scene)]).assert_fail();
}

/// A violation is judged by what happened, not by how the command ended.
#[test]
fn fail_of_a_killed_command_is_120() {
    let scene = Scene::new();
    let trigger = effectgate_tests::gate::trigger();
    let script =
        format!("{0} open-write {1}; {0} kill-self 9; exit 3", trigger.display(), outside(&scene));
    Gate::new(&scene).run(["/bin/sh", "-c", &script]).assert_fail();
}

#[test]
fn wrong_usage_is_2() {
    let scene = Scene::new();
    let envelope = scene.envelope();
    let envelope = envelope.to_str().expect("UTF-8");
    for words in [
        &["run"][..],
        &["run", "--envelope", envelope],
        &["run", "--envelope", envelope, "--"],
        &["run", "--", "true"],
        &["run", "--envelope", envelope, "--no-such-option", "--", "true"],
        &["run", "--envelope", envelope, "--backend", "guess", "--", "true"],
        &["run", "--envelope", envelope, "--digest", "abc", "--digest-file", "x", "--", "true"],
        &["no-such-command"],
        &[],
    ] {
        let output = std::process::Command::new(effectgate_tests::gate::binary())
            .args(words)
            .output()
            .expect("the binary under test can be started");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(!output.stderr.is_empty(), "{words:?}: no word about it");
        assert!(output.stdout.is_empty(), "{words:?}: {output:?}");
    }
}

/// Shells say 127 and 126; the contract says 122, since nothing ran.
#[test]
fn command_that_cannot_be_started() {
    let scene = Scene::new();
    let envelope = scene.envelope();
    for command in
        ["/nonexistent/program", "no-such-program", "/", envelope.to_str().expect("UTF-8")]
    {
        let outcome = Gate::new(&scene).without_replay().run([command]);
        assert!([122, 126, 127].contains(&outcome.code()), "{command}{}", outcome.story());
        assert!(outcome.stderr.contains(command), "{command} is not named{}", outcome.story());
    }
}
