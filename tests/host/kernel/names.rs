//! Names and depths at the edge.

use std::path::{Path, PathBuf};

use effectgate_tests::{Scene, record, watched};

/// Names are bytes. A backslash is doubled, what is not UTF-8 is `\xNN`.
#[test]
fn name_that_is_not_utf8() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    let scene = Scene::new();
    let mut name = scene.outside().into_os_string().into_vec();
    name.extend(b"/caf\xe9 \\ \xff\xc3\xa9");
    let outcome = watched::trigger(
        &scene,
        [std::ffi::OsStr::new("create"), std::ffi::OsStr::from_bytes(&name)],
    );
    outcome.assert_fail();
    let want = record::escape(&name);
    assert!(
        outcome.violations().iter().any(|violation| record::path(violation) == want),
        "no violation about {want}{}",
        outcome.story()
    );
}

/// Deeper than the walk towards the root goes: what cannot be known is not
/// passed.
#[test]
fn deeper_than_the_walk() {
    let scene = Scene::new();
    let depth = effectgate_common::wire::WALK_MAX + 10;
    make_deep(&scene.root(), depth);
    let root = scene.root();
    let outcome = watched::trigger(
        &scene,
        ["deep-create", root.to_str().expect("UTF-8"), "d", &depth.to_string()],
    );
    assert!([120, 121].contains(&outcome.code()), "the unknown passed{}", outcome.story());
}

/// As deep as the walk still goes.
#[test]
fn as_deep_as_the_walk() {
    let scene = Scene::new();
    let depth = effectgate_common::wire::WALK_MAX / 2;
    make_deep(&scene.root(), depth);
    let root = scene.root();
    let outcome = watched::trigger(
        &scene,
        ["deep-create", root.to_str().expect("UTF-8"), "d", &depth.to_string()],
    );
    outcome.assert_pass();
}

fn make_deep(base: &Path, depth: usize) {
    let path: PathBuf = std::iter::repeat_n("d", depth).collect();
    std::fs::create_dir_all(base.join(path)).expect("mkdir");
}
