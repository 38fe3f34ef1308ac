//! What a daemon leaves behind when it is killed, and what it does not keep.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use effectgate_tests::daemon::Daemon;
use effectgate_tests::{Scene, gate, wait};
use serde_json::{Value, json};

use crate::house::Job;

/// `effectgate log verify`: exit code and result.
pub fn verified(path: &Path) -> (i32, Value) {
    let mut command = Command::new(gate::binary());
    command.args(["log", "verify", "--format", "json"]).arg(path);
    let output = command.output().expect("the binary can be started");
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code().expect("a code"), found)
}

/// Nothing that it called durable is gone, nothing is added, and the next one
/// says so.
#[test]
fn killed_and_started_again() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let file = scene.root().join("file").to_string_lossy().into_owned();
    let mut job = Job::start(&daemon, "left", scene, &["open-write", &file]);
    let synced = wait::until("records are durable", || {
        let status = daemon.job_json(&["status", &job.id]).remove(0);
        status["synced"].as_u64().filter(|synced| *synced > 2)
    });
    wait::signal(daemon.pid(), libc::SIGKILL);
    let dir = daemon.state().join("jobs/left");
    let (_, house, _) = daemon.end();
    let before = fs::read(dir.join("events.jsonl")).expect("a log");
    let (code, found) = verified(&dir);
    assert_eq!(code, 1, "{found:#}");
    assert!(found["log"]["records"].as_u64() >= Some(synced), "{synced} were durable: {found:#}");
    assert_eq!(found["verdict"], Value::Null);

    let daemon = Daemon::start_in(house, &json!({}));
    wait::until("it says what was left", || {
        let log = daemon.log();
        (log.contains("jobs/left has no verdict") && log.contains("good for its first"))
            .then_some(())
    });
    assert_eq!(fs::read(dir.join("events.jsonl")).expect("a log"), before);
    assert!(!dir.join("verdict.json").exists());
    job.release();
    job.wait();
}

#[test]
fn old_evidence_goes_and_is_written_down() {
    let house = Scene::new();
    let jobs = house.path().join("state/jobs");
    for (name, days) in [("old", 40), ("young", 20)] {
        fs::create_dir_all(jobs.join(name)).expect("mkdir");
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        let dir = File::open(jobs.join(name)).expect("open");
        dir.set_modified(then).expect("its time");
    }
    let daemon = Daemon::start_in(house, &json!({ "keep_days": 30 }));
    let counted = wait::until("it is gone and counted", || {
        let metrics = daemon.metrics();
        let counted = "effectgate_dropped_jobs_total{why=\"age\"} 1";
        (!jobs.join("old").exists() && metrics.contains(counted)).then_some(metrics)
    });
    assert!(counted.contains("effectgate_dropped_jobs_total{why=\"size\"} 0"), "{counted}");
    assert!(jobs.join("young").exists());
    let (code, found) = verified(&daemon.state().join("dropped.jsonl"));
    assert_eq!((code, &found["dropped"]), (0, &json!(1)), "{found:#}");
}

/// Two of them would drop each other's evidence.
#[test]
fn one_daemon_has_a_state_directory() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let config = json!({
        "socket": scene.path().join("other.sock"),
        "metrics_listen": "127.0.0.1:0",
        "state_dir": daemon.state(),
        "backend": gate::backend(),
    });
    let path = scene.path().join("daemon.json");
    fs::write(&path, config.to_string()).expect("write");
    let mut command = Command::new(gate::binary());
    let output = command.arg("daemon").arg("--config").arg(path).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("another daemon keeps its state in"), "{said}");
}
