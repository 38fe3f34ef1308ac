//! Jobs of the daemon under manifests.

use std::os::unix::process::ExitStatusExt;

use effectgate_tests::Scene;
use effectgate_tests::daemon::Daemon;
use effectgate_tests::manifest::Manifest;
use effectgate_tests::wait;
use serde_json::json;

use crate::house::{Job, trigger};

fn scene(manifest: &Manifest) -> Scene {
    let scene = Scene::new();
    std::fs::create_dir(scene.root().join("tools")).expect("mkdir");
    scene.write_manifest(&manifest.text());
    scene
}

#[test]
fn reads_are_judged() {
    let daemon = Daemon::start();
    for (file, code) in [("file", 0), ("../outside/file", 120)] {
        let scene = scene(&Manifest::new());
        let name = format!("job-{code}");
        let mut job = Job::under_manifest(&daemon, &name, scene, &["open-read", file]);
        job.release();
        job.wait();
        let (found, verdict) = job.finish(&daemon);
        assert_eq!(found, code, "{verdict:#}");
        if code != 0 {
            let [violation] = verdict["violations"].as_array().expect("a list").as_slice() else {
                panic!("one violation: {verdict:#}")
            };
            assert_eq!(violation["action"], "open_read");
            assert_eq!(violation["rule"]["name"], "workspace_roots");
        }
    }
}

#[test]
fn a_job_is_stopped_when_its_time_is_over() {
    let daemon = Daemon::start();
    let scene = scene(&Manifest::new().set("max_wall_clock_sec", 1));
    // It waits for a word that nobody says.
    let mut job = Job::under_manifest(&daemon, "late", scene, &["true"]);
    assert_eq!(job.ended().signal(), Some(libc::SIGKILL));
    let (code, verdict) = job.finish(&daemon);
    assert_eq!(code, 120, "{verdict:#}");
    assert_eq!(verdict["violations"][0]["class"], json!("limit"), "{verdict:#}");
}

#[test]
fn what_joins_a_stopped_job_is_killed_too() {
    let daemon = Daemon::start();
    let scene = scene(&Manifest::new().set("max_wall_clock_sec", 1));
    let mut job = Job::under_manifest(&daemon, "joined", scene, &["true"]);
    job.ended();
    // It waits for a word that nobody says.
    let mut late = trigger(&["after-line", "true"], &job.scene).spawn().expect("a process");
    job.cgroup.add(late.id());
    let status = wait::exit(&mut late, "the process that joined later");
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    let (code, verdict) = job.finish(&daemon);
    assert_eq!(code, 120, "{verdict:#}");
}
