//! Far down, and long names on the way.

use std::path::{Path, PathBuf};
use std::process::Command;

use effectgate_tests::{Gate, Scene, gate, record};

/// Far more than the walk towards the root goes (`wire::WALK_MAX`).
const DEPTH: usize = 4_000;

/// Removes what `remove_dir_all` may have too few descriptors for.
struct Deep(PathBuf);

impl Drop for Deep {
    fn drop(&mut self) {
        let _ = Command::new("rm").arg("-rf").arg(&self.0).status();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// What lies too deep is not known to be inside, and not known to be outside.
#[test]
fn tree_of_4000_directories() {
    let scene = Scene::new();
    let base = scene.root();
    let deep = Deep(base.join("d"));
    let outcome = Gate::new(&scene).trigger(["grow", text(&base), "d", &DEPTH.to_string()]);
    outcome.assert_indeterminate();
    assert!(outcome.violations().is_empty(), "{}", outcome.story());
    let made = outcome.events.iter().filter(|event| record::kind(event) == "file/mkdir");
    assert_eq!(made.count(), DEPTH, "{}", outcome.story());
    drop(deep);
}

/// Where the kernel denies, it denies what it does not know.
#[test]
fn tree_of_4000_directories_is_not_made() {
    if gate::backend() != "lsm" {
        return;
    }
    let scene = Scene::new();
    let base = scene.root();
    let words = ["grow", text(&base), "d", &DEPTH.to_string()];
    let outcome = Gate::new(&scene).option(["--mode", "enforce"]).trigger(words);
    outcome.assert_indeterminate();
    let made = outcome.events.iter().filter(|event| record::kind(event) == "file/mkdir");
    let denied = made.filter(|event| event["decision"] == "denied").count();
    assert_eq!(denied, 1, "{}", outcome.story());
    let deepest: PathBuf =
        std::iter::repeat_n("d", effectgate_common::wire::WALK_MAX + 1).collect();
    assert!(!base.join(deepest).exists(), "it was made all the same{}", outcome.story());
}

/// The longest names that there are, up to the longest path that a call takes.
#[test]
fn names_of_255_bytes_and_paths_of_4_kib() {
    const PATH_MAX: usize = 4096;
    let scene = Scene::new();
    for (base, within) in [(scene.root(), true), (scene.outside(), false)] {
        let mut path = base;
        while text(&path).len() + 1 + 255 + 2 < PATH_MAX {
            path.push("n".repeat(255));
            std::fs::create_dir(&path).expect("mkdir");
        }
        // With the NUL at its end, as long as it may be.
        path.push("f".repeat(PATH_MAX - 1 - text(&path).len() - 1));
        assert_eq!(text(&path).len(), PATH_MAX - 1);
        let outcome = Gate::new(&scene).trigger(["create", text(&path)]);
        let created = outcome.events.iter().find(|event| record::kind(event) == "file/create");
        let created = created.unwrap_or_else(|| panic!("no record of it{}", outcome.story()));
        let told = record::path(created);
        let is_whole = told == text(&path);
        let is_said_to_be_cut = created["object"]["path_cut"] == true;
        assert!(
            is_whole || is_said_to_be_cut && text(&path).ends_with(told),
            "{told}{}",
            outcome.story()
        );
        if within {
            outcome.assert_pass();
        } else {
            outcome.assert_fail();
        }
    }
}
