//! A daemon is killed at any moment while its job acts as fast as it can.

use std::time::{Duration, Instant};

use effectgate_tests::daemon::{Daemon, documents};
use effectgate_tests::random::Random;
use effectgate_tests::{Scene, wait};
use serde_json::{Value, json};

use crate::house::Job;
use crate::left::verified;

/// Moments, where `EFFECTGATE_KILLS` does not say how many.
const MOMENTS: u32 = 6;
/// Small, so that segments are closed and compressed all the time.
const SEGMENT: u64 = 64 << 10;
/// A job that was watched for a moment does more than this.
const BUSY: u64 = 20;
/// How long a job is watched at most before its daemon is killed.
const LONGEST: Duration = Duration::from_millis(2500);
/// How long a verdict may be under way.
const VERDICT: Duration = Duration::from_millis(400);

/// Whatever the daemon said before, of records that are durable and of a
/// verdict, is true of what it leaves; what is missing is the end.
#[test]
fn killed_at_any_moment_of_a_busy_job() {
    let moments = std::env::var("EFFECTGATE_KILLS").ok().and_then(|many| many.parse().ok());
    let mut random = Random::new();
    let mut most = 0;
    for round in 0..moments.unwrap_or(MOMENTS) {
        let busy = LONGEST.mul_f64(random.fraction());
        // Of some, the verdict was asked for.
        let verdict = (round % 3 == 2).then(|| VERDICT.mul_f64(random.fraction()));
        let left = leave(busy, verdict);
        println!("round {round}, after {busy:?} {verdict:?}: {left:?}");
        most = left.records.max(most);
    }
    assert!(most > BUSY, "a job that acts all the time did {most} things");
}

#[derive(Debug)]
#[expect(dead_code, reason = "the rest is printed")]
struct Left {
    synced: u64,
    records: u64,
    verdict: Option<Value>,
}

fn leave(busy: Duration, verdict: Option<Duration>) -> Left {
    let daemon = Daemon::start_in(Scene::new(), &json!({ "segment_bytes": SEGMENT }));
    let scene = Scene::new();
    let file = scene.root().join("again-and-again").to_string_lossy().into_owned();
    let mut job = Job::start(&daemon, "busy", scene, &["flood", "create", "1000000000", &file]);
    job.release();
    let id: u64 = job.id.parse().expect("a number");
    let pid = daemon.pid();
    let kill = |moment: Duration| {
        // The moment is what is tested: nothing waits for it to have come.
        std::thread::spawn(move || {
            std::thread::sleep(moment);
            wait::signal(pid, libc::SIGKILL);
        })
    };

    let mut synced = 0;
    let mut ask = |daemon: &Daemon| {
        let status = daemon.ask(&json!({ "request": "status", "job": id }));
        status.map(|status| synced = status["synced"].as_u64().expect("a number"))
    };
    let mut given = None;
    let killer = match verdict {
        None => {
            let killer = kill(busy);
            while ask(&daemon).is_some() {}
            killer
        }
        Some(moment) => {
            let end = Instant::now() + busy;
            while Instant::now() < end {
                ask(&daemon).expect("it is there");
            }
            let killer = kill(moment);
            let output = daemon.job(&["finish", &job.id, "--format", "json"]);
            given = documents(&output.stdout).pop();
            killer
        }
    };
    killer.join().expect("it is killed");

    let dir = daemon.state().join("jobs/busy");
    // It owns the directory that is read now.
    let (_, _house, _) = daemon.end();
    let (code, found) = verified(&dir);
    let records = found["log"]["records"].as_u64().unwrap_or_default();
    assert!(records >= synced, "{synced} were durable: {found:#}");
    match &given {
        Some(verdict) => {
            assert_eq!(code, 0, "a verdict was given: {found:#}");
            assert_eq!(found["log"]["head"], verdict["log"]["head"], "{found:#}");
        }
        // The verdict may be there before anybody heard of it.
        None if code == 0 => assert!(found["verdict"].is_string(), "{found:#}"),
        None => {
            assert_eq!(code, 1, "{found:#}");
            let what = found["flaw"]["what"].as_str().unwrap_or_default();
            let cut = ["cut off", "without its closing record", "is empty"];
            let is_end = cut.iter().any(|why| what.contains(why));
            // Between the closing record and what stands beside the log.
            let is_closed = found["flaw"].is_null() && found["verdict"].is_string();
            assert!(is_end || is_closed, "{found:#}");
        }
    }
    Left { synced, records, verdict: given.map(|verdict| verdict["verdict"].clone()) }
}
