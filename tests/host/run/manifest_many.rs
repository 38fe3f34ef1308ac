//! Long manifests.

use std::fs;

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Gate, Scene};
use serde_json::json;

use super::manifest::{assert_fails_for, scene, trigger};

const MANY: usize = 10_000;

fn many() -> Scene {
    let names: Vec<String> = (0..MANY).map(|n| format!("many/{n}")).collect();
    let env: Vec<String> = (0..MANY).map(|n| format!("KEY{n}X")).collect();
    let programs: Vec<String> = (0..MANY).map(|n| format!("no-such-program-{n}x")).collect();
    let scene = scene(
        &Manifest::new()
            .set("write_roots", json!(names))
            .set("env_allow", json!(env))
            .set("binaries", json!(programs)),
    );
    for n in 0..MANY {
        fs::create_dir_all(scene.root().join(format!("many/{n}"))).expect("mkdir");
    }
    fs::create_dir(scene.root().join("many/other")).expect("mkdir");
    scene
}

#[test]
fn ten_thousand_entries() {
    let scene = many();
    let words = ["sequence", "create", "many/0/new", ",", "create", "many/9999/new"];
    Gate::manifest(&scene)
        .env("KEY9999X", "1")
        .run([&["tools/trigger"], &words[..]].concat())
        .assert_pass();
    let outcome = trigger(&scene, &["create", "many/other/new"]);
    let new = scene.root().join("many/other/new");
    assert_fails_for(&outcome, "file/create", &new, "write_roots");
}
