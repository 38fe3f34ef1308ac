//! Effects that no envelope has to list.

use std::path::Path;

use effectgate_tests::{Gate, Scene, gate, record, watched};

fn passes(words: &[&str]) {
    let scene = Scene::new();
    let outcome = watched::trigger(&scene, words);
    outcome.assert_pass();
}

#[test]
fn reading_anywhere() {
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let file = file.to_str().expect("UTF-8");
    let outcome = watched::trigger(&scene, ["open-read", file]);
    outcome.assert_pass();
    let read = outcome
        .events
        .iter()
        .find(|event| record::kind(event) == "file/open_read" && record::path(event) == file)
        .unwrap_or_else(|| panic!("the read is not recorded{}", outcome.story()));
    assert_eq!(record::exe(read), gate::trigger().to_str().expect("UTF-8"));
}

#[test]
fn devices_that_hold_nothing() {
    for device in ["/dev/null", "/dev/zero", "/dev/full"] {
        passes(&["open-write", device]);
    }
}

#[test]
fn its_own_process_files() {
    passes(&["open-write", "/proc/self/comm"]);
}

#[test]
fn memory_files() {
    passes(&["memfd-reopen"]);
}

/// Only `run` gives one.
#[test]
fn its_temporary_directory() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene).trigger(["tmpdir-create", "new"]);
    outcome.assert_pass();
    let made = outcome
        .events
        .iter()
        .find(|event| record::kind(event) == "file/create" && record::path(event).ends_with("/new"))
        .unwrap_or_else(|| panic!("the file is not recorded{}", outcome.story()));
    let directory = Path::new(record::path(made)).parent().expect("absolute");
    assert!(!directory.exists(), "{} is still there", directory.display());
}
