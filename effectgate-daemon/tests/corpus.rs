//! Every log that any version wrote stays readable, and says what it said: the
//! logs of `tests/logs`, each replayed under its own policy, against what is
//! written beside it. `EFFECTGATE_BLESS_LOGS=1` writes that; look at the
//! difference before you commit it.

mod common;

use std::fs;
use std::path::Path;

use effectgate_core::{policy, replay};
use effectgate_daemon::log::Log;
use serde_json::{Value, json};

#[test]
fn every_log_says_what_it_said() {
    let mut logs: Vec<_> = fs::read_dir(common::corpus())
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    logs.sort();
    assert!(!logs.is_empty());
    let bless = std::env::var_os("EFFECTGATE_BLESS_LOGS").is_some();
    let mut differing = Vec::new();
    for dir in &logs {
        let said = format!("{:#}\n", replayed(dir));
        let expected = dir.join("expected.json");
        if bless {
            fs::write(&expected, &said).expect("write");
        }
        if fs::read_to_string(&expected).unwrap_or_default() != said {
            differing.push(dir.file_name().expect("a name").to_owned());
        }
    }
    assert!(differing.is_empty(), "other verdicts than expected: {differing:?}");
}

fn replayed(dir: &Path) -> Value {
    let open = || Log::open(dir).expect("a log");
    let day = replay::day(open()).expect("it begins with an opening record");
    let bytes = fs::read(dir.join("policy")).expect("its policy");
    let policy = policy::parse("policy", &bytes, &day).expect("its policy holds");
    match replay::replay(open(), policy) {
        Ok(replayed) => {
            assert!(replayed.same_policy, "{}: the policy is not the log's own", dir.display());
            json!({
                "logged": replayed.logged.name(),
                "disagreement": replayed.disagreement,
                "verdict": replayed.verdict,
            })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}
