//! What does not bring the daemon down, and what it does not let itself in for.

use std::io::Write;
use std::net::TcpStream;

use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::daemon::{Daemon, try_get};
use effectgate_tests::{Scene, wait};
use serde_json::Value;

/// More than the daemon serves at once.
const MANY: usize = 200;

#[test]
fn idle_connections() {
    let daemon = Daemon::start();
    let connections: Vec<TcpStream> = (0..MANY)
        .map(|number| {
            let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).expect("it listens");
            if number % 2 == 0 {
                // Turned away already, or heard with patience.
                let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ");
            }
            stream
        })
        .collect();
    // Jobs do not depend on who looks at the metrics.
    assert_eq!(daemon.job_json(&["list"]), Vec::<Value>::new());
    drop(connections);
    let text = wait::until("metrics are served again", || try_get(daemon.port, "/metrics"));
    assert!(text.contains("effectgate_jobs 0"), "{text}");
    assert_eq!(daemon.job_json(&["list"]), Vec::<Value>::new());
}

fn refuse(daemon: &Daemon, scene: &Scene, cgroup: &Cgroup, why: &str) {
    let (path, envelope) = (cgroup.path().to_str(), scene.envelope());
    let (path, envelope) = (path.expect("UTF-8"), envelope.to_str().expect("UTF-8"));
    let output = daemon.job(&["start", "--cgroup", path, "--envelope", envelope]);
    assert_eq!(output.status.code(), Some(122), "{path}: {output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(why), "{path}: {said}");
}

/// A daemon that watched itself would be ended with the job.
#[test]
fn job_that_holds_the_daemon() {
    let outer = Cgroup::new();
    let inner = outer.below("daemon");
    let beside = outer.below("job");
    let daemon = Daemon::start();
    inner.add(daemon.pid());
    let scene = Scene::new();
    refuse(&daemon, &scene, &inner, "the daemon's own cgroup");
    refuse(&daemon, &scene, &outer, "the daemon's own cgroup");
    let job = daemon.start_job("beside", &scene.envelope(), &beside);
    assert!(daemon.job(&["finish", &job]).status.success(), "{}", daemon.log());
}

/// A process belongs to one job.
#[test]
fn job_in_a_job() {
    let outer = Cgroup::new();
    let inner = outer.below("inner");
    let daemon = Daemon::start();
    let scene = Scene::new();
    for (number, (first, second)) in [(&outer, &inner), (&inner, &outer)].into_iter().enumerate() {
        let job = daemon.start_job(&format!("first-{number}"), &scene.envelope(), first);
        refuse(&daemon, &scene, second, "one in the other");
        refuse(&daemon, &scene, first, "");
        assert!(daemon.job(&["finish", &job]).status.success(), "{}", daemon.log());
    }
}

/// A job whose members cannot be told is refused late; the same name can still
/// be used.
#[test]
fn refused_start_leaves_nothing() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let parent = Cgroup::new();
    let threaded = parent.below("threaded");
    std::fs::write(threaded.path().join("cgroup.type"), "threaded").expect("cgroup v2");
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (path, envelope) = (text(threaded.path()), text(&scene.envelope()));
    let words = ["start", "--cgroup", &path, "--envelope", &envelope, "--name", "again"];
    let output = daemon.job(&words);
    assert_eq!(output.status.code(), Some(122), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot tell who is in"), "{said}");
    let evidence = daemon.state().join("jobs/again");
    assert!(!evidence.exists(), "{} is there", evidence.display());
    let own = Cgroup::new();
    let id = daemon.start_job("again", &scene.envelope(), &own);
    assert_eq!(daemon.job(&["finish", &id]).status.code(), Some(0));
    assert!(evidence.join("verdict.json").exists());
}
