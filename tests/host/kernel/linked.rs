//! Hard links that were there before the job: what has a name outside as well is
//! outside, and what has all its names inside is inside.

use std::fs;

use effectgate_tests::{Scene, gate, record, watched};

const CHANGES: [(&str, &str); 4] = [
    ("open-write {}", "file/open_write"),
    ("truncate {}", "file/truncate"),
    ("chmod {}", "file/chmod"),
    ("utimes {}", "file/utimes"),
];

#[test]
fn a_name_outside_is_outside() {
    for (words, kind) in CHANGES {
        let scene = Scene::new();
        let (file, name) = (scene.outside().join("file"), scene.root().join("other-name"));
        fs::hard_link(&file, &name).expect("link");
        let (before, name) = (fs::read(&file).expect("read"), name.display().to_string());
        let mode = if gate::backend() == "lsm" { "enforce" } else { "observe" };
        let words = words.replace("{}", &name);
        let outcome = watched::trigger_in(&scene, mode, words.split_whitespace());
        outcome.assert_fail();
        let seen = outcome.violations();
        assert_eq!(record::kind(seen[0]), kind, "{}", outcome.story());
        assert_eq!(record::path(seen[0]), name);
        assert_eq!(record::text(&seen[0]["rule"]["name"]), "hard-link");
        assert_eq!(outcome.verdict()["disagreements"], 0, "{}", outcome.story());
        if mode == "enforce" {
            assert_eq!(fs::read(&file).expect("read"), before, "{words}");
        }
    }
}

#[test]
fn names_inside_are_inside() {
    let scene = Scene::new();
    let (file, name) = (scene.root().join("file"), scene.root().join("other-name"));
    fs::hard_link(file, &name).expect("link");
    let name = name.display().to_string();
    for (words, _) in CHANGES {
        let words = words.replace("{}", &name);
        watched::trigger(&scene, words.split_whitespace()).assert_pass();
    }
    // The name itself is the job's to give and to take.
    let scene = Scene::new();
    let name = scene.root().join("other-name");
    fs::hard_link(scene.outside().join("file"), &name).expect("link");
    watched::trigger(&scene, ["unlink", &name.display().to_string()]).assert_pass();
}
