//! What survives of a log when its writer is killed at any moment.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use effectgate_daemon::log::Found;

/// Enough that the writer is never done before it is killed, unless it is to be.
const RECORDS: u64 = 300;
const SEGMENT: u64 = 24 << 10;

/// At 200 random moments, the verdict's own included.
#[test]
fn a_killed_writer_loses_nothing_that_it_called_durable() {
    let mut random = Random::new();
    // How long a whole one takes here, closing included.
    let whole = tempfile::tempdir().expect("a directory");
    let began = SystemTime::now();
    assert_eq!(written(&whole.path().join("ev"), None).verdict, Some(RECORDS + 6));
    let whole = began.elapsed().expect("time goes on");
    let mut closed = 0;
    for round in 0..200 {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path().join("ev");
        let moment = whole.mul_f64(random.below(1100) as f64 / 1000.0);
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
            closed += 1;
        } else if !found.holds {
            // Whatever is missing, it is the end.
            let what = found.flaw.map(|flaw| flaw.what).unwrap_or_default();
            let cut = ["cut off", "without its closing record", "is empty"];
            assert!(cut.iter().any(|why| what.contains(why)), "{what:?}; {place}");
        }
    }
    println!("{closed} of 200 had their verdict");
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

/// Repeatable: the seed is printed, and can be given.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let given = std::env::var("EFFECTGATE_SEED").ok().and_then(|seed| seed.parse().ok());
        let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = given.unwrap_or_else(|| clock().map_or(1, |now| now.as_nanos() as u64)) | 1;
        println!("EFFECTGATE_SEED={seed}");
        Random(seed)
    }

    /// xorshift64.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
