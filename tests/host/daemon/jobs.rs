use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use effectgate_tests::daemon::Daemon;
use effectgate_tests::{Scene, gate, keys, metrics, record, wait};

use crate::house::Job;

fn text(path: &std::path::Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Twenty at once, clean and dirty mixed: each gets its own verdict, about
/// its own effects.
#[test]
fn twenty_jobs_at_once() {
    let daemon = Daemon::start();
    let listener = TcpListener::bind("127.0.0.2:0").expect("loopback is up");
    let address = listener.local_addr().expect("bound").to_string();
    let mut jobs: Vec<(Job, bool)> = (0..20)
        .map(|number| {
            let scene = Scene::new();
            let (inside, outside) =
                (text(&scene.root().join("file")), text(&scene.outside().join("file")));
            let (words, clean) = match number % 4 {
                0 => (vec!["open-write", &inside], true),
                1 => (vec!["unlink", &outside], false),
                2 => (vec!["self-connect", "4"], true),
                _ => (vec!["connect", &address], false),
            };
            (Job::start(&daemon, &format!("job-{number}"), scene, &words), clean)
        })
        .collect();

    let listed = daemon.job_json(&["list"]);
    assert_eq!(listed.len(), 20, "{listed:?}");

    for (job, _) in &mut jobs {
        job.release();
    }
    for (job, _) in &mut jobs {
        job.wait();
    }
    for (job, clean) in &jobs {
        let (code, verdict) = job.finish(&daemon);
        let own = text(job.scene.path());
        let violations = verdict["violations"].as_array().expect("a list");
        if *clean {
            assert_eq!((code, record::text(&verdict["verdict"])), (0, "pass"), "{verdict:#}");
            assert!(violations.is_empty(), "{verdict:#}");
        } else {
            assert_eq!((code, record::text(&verdict["verdict"])), (120, "fail"), "{verdict:#}");
            for violation in violations {
                let object = record::text(&violation["object"]);
                let about_own = object.starts_with(&own);
                let about_address = object == format!("tcp {address}");
                assert!(about_own || about_address, "another job's effect: {violation:#}");
            }
        }
    }
    assert_eq!(daemon.job_json(&["list"]), Vec::<serde_json::Value>::new());

    let text = daemon.metrics();
    let samples = metrics::parse(&text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
    let verdicts = |verdict| {
        samples
            .iter()
            .filter(|sample| sample.name.contains("verdict"))
            .filter(|sample| sample.labels.get("verdict").is_some_and(|own| own == verdict))
            .map(|sample| sample.value)
            .sum::<f64>()
    };
    assert_eq!(verdicts("pass"), 10.0, "{text}");
    assert_eq!(verdicts("fail"), 10.0, "{text}");
}

/// What joins a job's cgroup is part of the job.
#[test]
fn process_that_joins_later() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let file = text(&scene.outside().join("file"));
    let mut job = Job::start_then_join(&daemon, "joined", scene, &["open-write", &file]);
    job.release();
    job.wait();
    let (code, verdict) = job.finish(&daemon);
    assert_eq!(code, 120, "{verdict:#}");
    let violation = &verdict["violations"][0];
    assert_eq!(record::text(&violation["object"]), file, "{verdict:#}");
    assert_eq!(record::text(&violation["program"]), text(&gate::trigger()), "{verdict:#}");
}

#[test]
fn status_while_it_runs_and_after() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let file = text(&scene.root().join("file"));
    let mut job = Job::start(&daemon, "status", scene, &["open-write", &file]);
    let before = daemon.job_json(&["status", &job.id]);
    assert!(before.iter().any(|status| status.to_string().contains("status")), "{before:?}");
    job.release();
    job.wait();
    let (code, verdict) = job.finish(&daemon);
    assert_eq!(code, 0, "{verdict:#}");
    let again = daemon.job(&["finish", &job.id]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
}

/// The evidence of a job is the same as that of a run.
#[test]
fn evidence_of_each_job() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let file = text(&scene.outside().join("file"));
    let mut job = Job::start(&daemon, "evidence", scene, &["open-write", &file]);
    job.release();
    job.wait();
    let (_, verdict) = job.finish(&daemon);
    let logs = find(&daemon.state(), "events.jsonl");
    assert_eq!(logs.len(), 1, "{logs:?}");
    let directory = logs[0].parent().expect("a directory");
    let kept = std::fs::read(directory.join("verdict.json")).expect("a verdict");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&kept).expect("JSON"), verdict);
    let output = Command::new(gate::binary())
        .arg("replay")
        .arg(&logs[0])
        .arg("--envelope")
        .arg(job.scene.envelope())
        .args(["--format", "json"])
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let again: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(again["violations"], verdict["violations"]);
}

/// With the daemon's key: whoever has the public half can verify it.
#[test]
fn evidence_of_each_job_is_signed() {
    let house = Scene::new();
    let (private, public) = keys::make(house.path());
    let daemon = Daemon::start_in(house, &serde_json::json!({ "sign_key": private }));
    let scene = Scene::new();
    let file = text(&scene.outside().join("file"));
    let mut job = Job::start(&daemon, "signed", scene, &["open-write", &file]);
    job.release();
    job.wait();
    let (code, verdict) = job.finish(&daemon);
    assert_eq!(code, 120, "{verdict:#}");
    let output = Command::new(gate::binary())
        .args(["verify", "--format", "json", "--key"])
        .arg(public)
        .arg(daemon.state().join("jobs/signed"))
        .output()
        .expect("the binary can be started");
    assert!(output.status.success(), "{output:?}");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["verdict"], verdict);
    assert!(said["signed_by"].is_string(), "{said}");
}

fn find(directory: &std::path::Path, name: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(find(&path, name));
        } else if path.file_name().is_some_and(|own| own == name) {
            found.push(path);
        }
    }
    found
}

#[test]
fn bad_requests_are_refused() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let envelope = text(&scene.envelope());
    let refused = |words: &[&str], code: i32| {
        let output = daemon.job(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        assert!(!output.stderr.is_empty(), "{words:?}: no word about it");
    };
    refused(&["start", "--cgroup", "/nonexistent", "--envelope", &envelope], 122);
    refused(&["finish", "no-such-job"], 2);
    refused(&["status", "no-such-job"], 2);
    scene.write_envelope_text("{}");
    let cgroup = effectgate_tests::cgroup::Cgroup::new();
    refused(&["start", "--cgroup", &text(cgroup.path()), "--envelope", &envelope], 122);
}

/// Only root and the daemon's own user may ask it to watch.
#[test]
fn strangers_are_refused() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let binary = scene.copy_of(&gate::binary());
    let output = Command::new(binary)
        .args(["job", "list"])
        .env("EFFECTGATE_SOCKET", daemon.socket())
        .uid(65534)
        .gid(65534)
        .output()
        .expect("the binary can be started");
    assert!(!output.status.success(), "{output:?}");
    assert!(!output.stderr.is_empty(), "no word about it");
}

#[test]
fn without_a_daemon() {
    let output = Command::new(gate::binary())
        .args(["job", "list", "--socket", "/nonexistent/effectgate.sock"])
        .output()
        .expect("the binary can be started");
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("/nonexistent/effectgate.sock"), "{said}");
}

/// A daemon that is asked to end ends its logs, and leaves the jobs alone: who
/// started them ends them.
#[test]
fn ended_in_the_middle() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let file = text(&scene.root().join("file"));
    let mut job = Job::start(&daemon, "unfinished", scene, &["open-write", &file]);
    wait::signal(daemon.pid(), libc::SIGTERM);
    let socket = daemon.socket();
    let (status, house, log) = daemon.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!socket.exists(), "the socket is still there");
    let logs = find(&house.path().join("state"), "events.jsonl");
    assert_eq!(logs.len(), 1, "{logs:?}\n{log}");
    let events = record::read_log(&logs[0]);
    let last = events.last().expect("a record").to_string();
    assert!(last.contains("indeterminate"), "the log is not closed: {last}");
    job.release();
    job.wait();
}
