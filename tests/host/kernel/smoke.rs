//! `run` itself, also where all other cases are jobs of a daemon.

use effectgate_tests::{Gate, Scene};

#[test]
fn run_inside() {
    let scene = Scene::new();
    let file = scene.root().join("file");
    let outcome = Gate::new(&scene).trigger(["open-write", file.to_str().expect("UTF-8")]);
    outcome.assert_pass();
}

#[test]
fn run_outside() {
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let outcome = Gate::new(&scene).trigger(["open-write", file.to_str().expect("UTF-8")]);
    outcome.assert_fail();
}
