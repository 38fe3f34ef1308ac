//! The kernel's judgement against user space's: trees, mounts, policies and
//! effects by chance, and never two answers.

use std::ffi::CString;
use std::fs;
use std::os::unix::{ffi::OsStrExt, fs::symlink};
use std::path::Path;

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Outcome, Scene, gate, record, watched};
use serde_json::{Value, json};

/// Effects of one job.
const EFFECTS: &str = "400";

/// `EFFECTGATE_SEED`, to look for longer or again; else always the same.
fn seeds() -> Vec<u64> {
    match std::env::var("EFFECTGATE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..=4).collect(),
    }
}

const TREES: [&str; 4] = ["a", "b", "c", "d"];

/// Four trees of the same shape with links between them.
fn scene() -> Scene {
    let scene = Scene::new();
    let root = scene.root();
    for (index, tree) in TREES.iter().enumerate() {
        let tree = root.join(tree);
        for directory in ["p/p/q", "p/q/deep", "q/p", "q/mounted", "mounted"] {
            fs::create_dir_all(tree.join(directory)).expect("mkdir");
        }
        for file in ["file", "p/file", "p/p/file", "q/file", "p/q/deep/other"] {
            fs::write(tree.join(file), "content").expect("write");
        }
        let next = root.join(TREES[(index + 1) % TREES.len()]);
        symlink(&next, tree.join("link")).expect("symlink");
        symlink(next.join("p/file"), tree.join("q/link")).expect("symlink");
        symlink("../../..", tree.join("p/p/link")).expect("symlink");
    }
    for (index, tree) in TREES.iter().enumerate() {
        let next = root.join(TREES[(index + 2) % TREES.len()]);
        fs::hard_link(next.join("q/file"), root.join(tree).join("p/other")).expect("link");
    }
    fs::create_dir(root.join("tools")).expect("mkdir");
    fs::copy(gate::trigger(), root.join("tools/trigger")).expect("copy");
    scene
}

/// The trees that a number chooses, one at least.
fn chosen(number: u64) -> Vec<String> {
    const PLACES: [&str; 6] = ["a", "b/p", "c/q", "c", "d/p/q", "a/mounted"];
    let mut places: Vec<String> = PLACES
        .iter()
        .enumerate()
        .filter(|(index, _)| number >> index & 1 != 0)
        .map(|(_, place)| (*place).to_owned())
        .collect();
    if places.is_empty() {
        places.push("b".to_owned());
    }
    places
}

/// One tree appears in another, and a new file system in a third; gone again
/// when dropped.
struct Mounts([CString; 2]);

impl Mounts {
    fn on(root: &Path) -> Mounts {
        let path =
            |name: &str| CString::new(root.join(name).as_os_str().as_bytes()).expect("no NUL");
        let (from, to, new) = (path("b/q"), path("a/mounted"), path("c/q/mounted"));
        let none = std::ptr::null();
        // SAFETY: system calls on strings that live across them.
        let done = unsafe {
            libc::mount(from.as_ptr(), to.as_ptr(), none, libc::MS_BIND, none.cast())
                | libc::mount(none, new.as_ptr(), c"tmpfs".as_ptr(), 0, none.cast())
        };
        assert_eq!(done, 0, "mount: {}", std::io::Error::last_os_error());
        Mounts([to, new])
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        for place in &self.0 {
            // SAFETY: a string that lives across the call.
            unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

fn words(scene: &Scene, seed: u64) -> Vec<String> {
    let root = scene.root();
    let places = TREES.iter().map(|tree| root.join(tree).display().to_string());
    let first = ["tools/trigger", "chance", &seed.to_string(), EFFECTS].map(str::to_owned);
    first.into_iter().chain(places).collect()
}

fn modes() -> &'static [&'static str] {
    if gate::backend() == "lsm" { &["observe", "enforce"] } else { &["observe"] }
}

/// What was outside was denied and nothing else, where anything is.
fn assert_one_answer(outcome: &Outcome, mode: &str, seed: u64) {
    let story = || format!("seed {seed}, mode {mode}\n{}", outcome.story());
    assert_eq!(outcome.verdict()["disagreements"], 0, "{}", story());
    assert_eq!(outcome.verdict()["lost"], json!({}), "{}", story());
    let files = outcome.events.iter().filter(|event| event["class"] == "file");
    let mut outside = 0;
    for event in files {
        outside += usize::from(event["within"] == false);
        let denied = mode == "enforce" && event["within"] == false;
        assert_eq!(event["decision"] == "denied", denied, "{event}\n{}", story());
        assert!(record::path(event).starts_with('/'), "{event}");
    }
    assert!(outside > 10, "chance tried next to nothing: {}", story());
}

#[test]
fn envelopes() {
    for seed in seeds() {
        for mode in modes() {
            let scene = scene();
            let places = chosen(seed.wrapping_mul(0x9e37_79b9) >> 7);
            let roots = places.iter().map(|place| scene.root().join(place).display().to_string());
            let roots: Vec<Value> = roots.map(Value::from).collect();
            scene.allow(|envelope| envelope["allowed_roots"] = roots.clone().into());
            let _mounts = Mounts::on(&scene.root());
            let outcome = watched::trigger_in(&scene, mode, &words(&scene, seed)[1..]);
            assert_one_answer(&outcome, mode, seed);
        }
    }
}

#[test]
fn manifests() {
    for seed in seeds() {
        for mode in modes() {
            let scene = scene();
            let number = seed.wrapping_mul(0x85eb_ca6b) >> 5;
            let manifest = Manifest::new()
                .set(
                    "workspace_roots",
                    json!([&["tools".to_owned()][..], &chosen(number)].concat()),
                )
                .set("write_roots", json!(chosen(number)[..1]))
                .set("exec_roots", json!(["tools"]));
            scene.write_manifest(&manifest.text());
            let _mounts = Mounts::on(&scene.root());
            let outcome = watched::manifest(&scene, mode, words(&scene, seed));
            assert_one_answer(&outcome, mode, seed);
        }
    }
}
