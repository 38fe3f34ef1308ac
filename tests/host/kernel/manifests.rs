//! A manifest on every kernel and backend: what is read and run, as well.

use std::fs;

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Scene, gate, record, watched};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &["bprm_creds_from_file"];

/// The workspace may be read, `directory` written, what lies below `tools` run.
fn scene() -> Scene {
    let scene = Scene::new();
    fs::create_dir(scene.root().join("tools")).expect("mkdir");
    for place in ["tools/trigger", "directory/trigger"] {
        fs::copy(gate::trigger(), scene.root().join(place)).expect("copy");
    }
    scene.write_manifest(&Manifest::new().text());
    scene
}

#[test]
fn a_clean_job_passes() {
    let words = ["sequence", "open-read", "file", ",", "create", "directory/new", ","];
    let words = [&["tools/trigger"], &words[..], &["exec", "tools/trigger", "true"]].concat();
    watched::manifest(&scene(), "observe", words).assert_pass();
}

#[test]
fn each_thing_outside_is_a_violation() {
    let scene = scene();
    let words = ["sequence", "open-read", "../outside/file", ",", "open-write", "file", ","];
    let words = [&["tools/trigger"], &words[..], &["exec", "directory/trigger", "true"]].concat();
    let outcome = watched::manifest(&scene, "observe", words);
    outcome.assert_fail();
    let seen = outcome.violations().into_iter().map(|event| {
        let (kind, rule) = (record::kind(event), record::text(&event["rule"]["name"]).to_owned());
        (kind, record::path(event).to_owned(), rule)
    });
    let path = |place: &str| scene.path().join(place).to_str().expect("UTF-8").to_owned();
    let want = [
        ("file/open_read", path("outside/file"), "workspace_roots"),
        ("file/open_write", path("root/file"), "write_roots"),
        ("exec/exec", path("root/directory/trigger"), "binaries"),
    ];
    let want = want.map(|(kind, path, rule)| (kind.to_owned(), path, rule.to_owned()));
    // Where mappings are seen, that program is also one that the job wrote.
    let seen = seen.filter(|(kind, ..)| kind != "file/map_exec");
    assert_eq!(seen.collect::<Vec<_>>(), want, "{}", outcome.story());
}

/// Under `enforce` it is not run at all, where anything but the network can be
/// denied: whoever asks for it goes on and is told no.
#[test]
fn what_is_not_listed_does_not_start() {
    let scene = scene();
    let words = ["tools/trigger", "sequence", "exec", "directory/trigger", "create", "directory/x"];
    let outcome = watched::manifest(&scene, "enforce", words);
    outcome.assert_fail();
    let mut seen = outcome.violations();
    // Where it runs, its file is mapped to be run as well.
    seen.retain(|event| record::kind(event) != "file/map_exec");
    assert_eq!(seen.len(), 1, "{}", outcome.story());
    assert_eq!(record::kind(seen[0]), "exec/exec");
    let place = scene.root().join("directory/trigger");
    assert_eq!(record::path(seen[0]), place.to_str().expect("UTF-8"));
    let denied = gate::backend() == "lsm";
    let decision = if denied { "denied" } else { "recorded" };
    assert_eq!(record::text(&seen[0]["decision"]), decision, "{}", outcome.story());
    assert_eq!(scene.root().join("directory/x").exists(), !denied, "{}", outcome.story());
}

/// What no hook can deny, since it takes an environment to judge, ends as soon as
/// it was judged: a key that is not allowed, and one that could stand where the
/// environment was not read.
#[test]
fn what_is_known_too_late_to_be_denied_is_killed() {
    if gate::backend() != "lsm" {
        return;
    }
    let killed = |size: &str| {
        let words = ["tools/trigger", "exec-large-environment", "DEPLOY_TOKEN", size];
        let forever = ["tools/trigger", "stubborn", "directory/ready"];
        let outcome = watched::manifest(&scene(), "enforce", words.into_iter().chain(forever));
        let ends = outcome.events.iter().filter(|event| record::kind(event) == "guard/killed");
        assert_eq!(ends.count(), 1, "{}", outcome.story());
        outcome
    };
    killed("65536").assert_fail();
    killed("524288").assert_indeterminate();
}
