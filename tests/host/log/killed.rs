//! What survives of a log when its writer is killed at any moment.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use effectgate_daemon::log::Found;
use effectgate_tests::random::Random;

/// A log of several segments.
const RECORDS: u64 = 300;
const SEGMENT: u64 = 24 << 10;

/// Each at random moments; together they are 200.
const ROUNDS: u32 = 50;

#[test]
fn killed_while_it_begins() {
    killed_between(0.0, 0.2);
}

#[test]
fn killed_in_the_middle() {
    killed_between(0.2, 0.7);
}

#[test]
fn killed_towards_the_end() {
    killed_between(0.7, 0.95);
}

#[test]
fn killed_around_its_verdict() {
    killed_between(0.95, 1.1);
}

/// Parts of the time that a whole log takes. Whenever it is killed, nothing
/// that it called durable is lost, and no verdict that it gave.
fn killed_between(from: f64, to: f64) {
    let mut random = Random::new();
    let place = tempfile::tempdir().expect("a directory");
    let began = SystemTime::now();
    assert_eq!(written(&place.path().join("whole"), None).verdict, Some(RECORDS + 6));
    let whole = began.elapsed().expect("time goes on");
    for round in 0..ROUNDS {
        let dir = place.path().join(round.to_string());
        let moment = whole.mul_f64(from + (to - from) * random.fraction());
        let told = written(&dir, Some(moment));
        if !dir.join("events.jsonl").exists() && told.synced == 0 {
            continue;
        }
        let found = Found::of(&dir, None).expect("it can be read");
        let good = found.log.as_ref().map_or(0, |log| log.records);
        let place = format!("round {round}, after {moment:?}: {:?}", found.flaw);
        assert!(good >= told.synced, "{} were durable, {good} are there; {place}", told.synced);
        if let Some(records) = told.verdict {
            assert!(found.holds, "{place} {:?}", found.conflicts);
            assert_eq!(good, records, "{place}");
        } else if !found.holds {
            // Whatever is missing, it is the end.
            let what = found.flaw.map(|flaw| flaw.what).unwrap_or_default();
            let cut = ["cut off", "without its closing record", "is empty"];
            assert!(
                cut.iter().any(|why| what.contains(why)),
                "{what:?}; {place} {:?}",
                found.conflicts
            );
        }
    }
}

struct Told {
    synced: u64,
    verdict: Option<u64>,
}

/// Writes until it is done, or killed after so long.
fn written(dir: &Path, until: Option<Duration>) -> Told {
    let mut child = Command::new(env!("CARGO_BIN_EXE_log_writer"))
        .arg(dir)
        .args([RECORDS.to_string(), SEGMENT.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the writer");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let reader = std::thread::spawn(move || {
        let mut told = Told { synced: 0, verdict: None };
        for line in out.lines().map_while(Result::ok) {
            match line.split_once(' ').map(|(word, n)| (word, n.parse().expect("a number"))) {
                Some(("synced", n)) => told.synced = n,
                Some(("verdict", n)) => told.verdict = Some(n),
                other => panic!("{other:?}"),
            }
        }
        told
    });
    if let Some(moment) = until {
        // The moment is what is tested: nothing waits for it to have come.
        std::thread::sleep(moment);
        child.kill().expect("a child can be killed");
    }
    let status = child.wait().expect("it ends");
    assert!(status.success() || status.signal() == Some(9), "{status}");
    reader.join().expect("its output was read")
}
