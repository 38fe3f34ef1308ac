//! Two runs by two runners, as the command line decides on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A place with copies of two runs: `one` and `other`, and `bad`, which violated
/// its envelope.
struct Place(TempDir);

impl Place {
    /// With these results of a property.
    fn new(one: &str, other: &str) -> Place {
        let place = Place(tempfile::tempdir().expect("a directory"));
        for (from, to) in [("pass", "one"), ("other", "other"), ("fail", "bad")] {
            place.copy(from, to);
        }
        place.properties("one", "py-3.11", one);
        // Its command ended with 1: what it says of `wording` tells why.
        place.properties("other", "py-3.12", other);
        place
    }

    fn copy(&self, from: &str, to: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles").join(from);
        fs::create_dir(self.path(to)).expect("a directory");
        for entry in fs::read_dir(from).expect("a bundle") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), self.path(to).join(entry.file_name())).expect("copy");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn properties(&self, bundle: &str, runner: &str, result: &str) {
        let text = json!({
            "schema": "effectgate.properties/v1", "runner": runner,
            "properties": {"ranking/top-10": result, "wording": "pass"},
        });
        fs::write(self.path("p.json"), text.to_string()).expect("write");
        self.run(&["bundle", bundle, "--properties", "p.json"], 0);
    }

    fn run(&self, args: &[&str], code: i32) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
        command.args(args).current_dir(self.0.path()).env_remove("EFFECTGATE_SIGN_KEY");
        let output = command.output().expect("it starts");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}\n{}{}",
            said(&output.stdout),
            said(&output.stderr)
        );
        output
    }

    fn decide(&self, sides: [&str; 2], more: &[&str], code: i32) -> Value {
        let [left, right] = sides;
        let args = [&["decide", "--left", left, "--right", right, "--format", "json"], more];
        let output = self.run(&args.concat(), code);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn freeze(&self, property: &str, sides: [&str; 2], expires: &str, code: i32) -> String {
        let [left, right] = sides;
        let mut args = vec!["freeze", "add", "--property", property, "--left", left];
        args.extend(["--right", right, "--owner", "A. Person", "--reason", "known"]);
        args.extend(["--expires", expires]);
        let output = self.run(&args, code);
        String::from_utf8(if code == 0 { output.stdout } else { output.stderr }).expect("text")
    }
}

const BOTH: [&str; 2] = ["one/verdict.json", "other"];
const FAR: &str = "2999-12-31";
const LEDGER: [&str; 2] = ["--ledger", "freeze_ledger.tsv"];

#[test]
fn a_disagreement_is_held_until_it_is_frozen_and_no_longer() {
    let place = Place::new("pass", "fail");
    let held = place.decide(BOTH, &[], 1);
    assert_eq!(held["decision"], "hold");
    assert_eq!(held["held"][0]["property"], "ranking/top-10");
    place.freeze("ranking/top-10", BOTH, FAR, 0);
    assert!(place.freeze("ranking/top-10", BOTH, FAR, 1).contains("frozen already until 2999"));
    place.run(&["freeze", "check"], 0);
    let passed = place.decide(BOTH, &LEDGER, 0);
    assert_eq!(passed["decision"], "pass");
    assert_eq!(passed["frozen"][0]["owner"], "A. Person");
    // The bundles that it rests on are in it.
    for bundle in ["one", "other"] {
        let list = fs::read(place.path(bundle).join("MANIFEST.sha256")).expect("read");
        let ledger = fs::read_to_string(place.path("freeze_ledger.tsv")).expect("read");
        assert!(ledger.contains(&effectgate_core::pin::digest(&list)));
    }
    let ledger = place.path("freeze_ledger.tsv");
    let text = fs::read_to_string(&ledger).expect("read");
    let (created, expired) = ("2020-01-01", "2020-01-31");
    let row: Vec<&str> = text.lines().nth(1).expect("a row").split('\t').collect();
    let old = text.replace(row[10], created).replace(FAR, expired);
    fs::write(&ledger, old).expect("write");
    place.run(&["freeze", "list"], 0);
    place.run(&["freeze", "check"], 1);
    let failed = place.decide(BOTH, &LEDGER, 1);
    assert_eq!(failed["decision"], "fail");
    assert!(
        failed["reasons"][0].as_str().is_some_and(|said| said.contains("expired on 2020-01-31"))
    );
    // What has expired is renewed.
    place.freeze("ranking/top-10", BOTH, FAR, 0);
    assert_eq!(place.decide(BOTH, &LEDGER, 0)["decision"], "pass");
}

#[test]
fn a_violation_is_never_frozen_and_no_ledger_excuses_it() {
    let place = Place::new("pass", "fail");
    place.freeze("ranking/top-10", BOTH, FAR, 0);
    for sides in [["one", "bad"], ["bad", "other"]] {
        let failed = place.decide(sides, &LEDGER, 1);
        assert_eq!(failed["decision"], "fail");
        assert_eq!(failed["frozen"], json!([]));
        let said = place.freeze("wording", sides, FAR, 1);
        assert!(said.contains("what an envelope covers is never frozen"), "{said}");
    }
}

/// A bundle can be completed again, and signed again by whoever signed it; the
/// run that it is of stays one.
#[test]
fn one_run_is_not_two_runners() {
    let place = Place::new("pass", "pass");
    place.copy("pass", "again");
    place.properties("again", "py-3.12", "fail");
    let sides = ["one", "again"];
    let failed = place.decide(sides, &[], 1);
    assert_eq!(failed["reasons"][0], "both bundles are of one and the same run");
    let said = place.freeze("ranking/top-10", sides, FAR, 1);
    assert!(said.contains("both bundles are of one and the same run"), "{said}");
}

#[test]
fn what_may_not_be_frozen_is_refused_with_every_reason() {
    let place = Place::new("pass", "fail");
    for (property, expires, says) in [
        ("wording", FAR, "both results are the same"),
        ("nothing", FAR, "neither runner says anything of"),
        ("command", FAR, "neither runner says anything of"),
        ("ranking/top-10", "2020-01-01", "is past"),
        ("ranking/top-10", "2999-02-30", "is no calendar day"),
        ("ranking/top-10", "soon", "is no calendar day"),
    ] {
        let said = place.freeze(property, BOTH, expires, 1);
        assert!(said.contains(says), "{property} {expires}: {said}");
    }
    assert!(!place.path("freeze_ledger.tsv").exists());
}

#[test]
fn a_ledger_edited_by_hand_fails_with_its_place() {
    let place = Place::new("pass", "fail");
    place.freeze("ranking/top-10", BOTH, FAR, 0);
    let ledger = place.path("freeze_ledger.tsv");
    let good = fs::read_to_string(&ledger).expect("read");
    for (from, to, at) in [
        ("\tpass\t", "\tPASS\t", "freeze_ledger.tsv:2:24"),
        (FAR, "2999-13-31", "freeze_ledger.tsv:2:"),
        ("\tA. Person\t", "\t\t", "freeze_ledger.tsv:2:"),
        ("property\t", "properties\t", "freeze_ledger.tsv:1:1"),
        ("ranking/top-10", "net", "freeze_ledger.tsv:2:1"),
    ] {
        fs::write(&ledger, good.replacen(from, to, 1)).expect("write");
        let output = place.run(&["freeze", "check"], 1);
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.contains(at), "{to}: {said}");
        let failed = place.decide(BOTH, &LEDGER, 1);
        assert_eq!(failed["decision"], "fail", "{to}");
        assert_ne!(failed["ledger_faults"], json!([]), "{to}");
        place.freeze("ranking/top-10", BOTH, FAR, 1);
    }
    place.decide_cannot(&["--ledger", "nowhere.tsv"]);
}

impl Place {
    /// Something that is asked for is not there.
    fn decide_cannot(&self, more: &[&str]) {
        self.run(&[&["decide", "--left", "one", "--right", "other"], more].concat(), 2);
    }
}

#[test]
fn evidence_that_does_not_hold_decides_nothing() {
    let place = Place::new("pass", "fail");
    assert_eq!(place.decide(BOTH, &[], 1)["decision"], "hold");
    let file = place.path("other/properties.json");
    let text = fs::read_to_string(&file).expect("read");
    fs::write(&file, text.replace("fail", "pass")).expect("write");
    let failed = place.decide(BOTH, &[], 1);
    assert_eq!(failed["decision"], "fail");
    assert_eq!(failed["problems"][0]["file"], "other/properties.json");
    place.freeze("wording", BOTH, FAR, 1);
    // One bundle is no two.
    assert_eq!(place.decide(["one", "one"], &[], 1)["decision"], "fail");
    place.run(&["decide", "--left", "one", "--right", "nowhere"], 2);
}

/// A run that is said to have failed by nothing but its exit code has failed.
#[test]
fn an_exit_code_counts_where_no_property_tells_why() {
    let place = Place::new("pass", "pass");
    let list = |name| fs::read_to_string(place.path(name).join("verdict.json")).expect("read");
    assert!(list("other").contains("\"code\": 1"), "the second run failed");
    let reasons = json!(["py-3.12: the command failed, and no property tells why"]);
    assert_eq!(place.decide(BOTH, &[], 1)["reasons"], reasons);
}

/// Who says that there are two runners, when neither is named? The exit code is
/// a runner's word too, once it has a name.
#[test]
fn a_runner_without_a_name_may_be_the_other_one() {
    let place = Place::new("pass", "pass");
    for (from, to) in [("pass", "nobody"), ("other", "also")] {
        place.copy(from, to);
    }
    let failed = place.decide(["nobody", "also"], &[], 1);
    assert_eq!(failed["decision"], "fail");
    let reasons = failed["reasons"].to_string();
    assert!(reasons.contains("left: its bundle names no runner"), "{reasons}");
    assert!(reasons.contains("right: its bundle names no runner"), "{reasons}");
    place.run(&["bundle", "nobody", "--runner", "py-3.10"], 0);
    let named = place.decide(["nobody", "also"], &[], 1);
    assert!(!named["reasons"].to_string().contains("left: its bundle"), "{named}");
    // Which runs were decided on is said.
    assert_eq!(named["runs"][0]["side"], "left");
    assert!(named["runs"][1]["bundle"].as_str().is_some_and(|digest| digest.len() == 64));
}

/// The runner chooses the name, and somebody copies the line.
#[test]
fn what_is_suggested_can_be_copied_into_a_shell() {
    let place = Place(tempfile::tempdir().expect("a directory"));
    let name = "rank$(touch PWNED)`touch PWNED` 'x'";
    for (from, to, result) in [("pass", "one", "pass"), ("other", "the other", "fail")] {
        place.copy(from, to);
        let text = json!({
            "schema": "effectgate.properties/v1", "runner": to, "properties": {name: result},
        });
        fs::write(place.path("p.json"), text.to_string()).expect("write");
        place.run(&["bundle", to, "--properties", "p.json"], 0);
    }
    let output = place.run(&["decide", "--left", "one", "--right", "the other"], 1);
    let said = String::from_utf8(output.stderr).expect("text");
    let (_, line) = said.split_once("to freeze it: effectgate ").expect("a line to copy");
    let script = format!("for word in {}; do printf '%s\\n' \"$word\"; done", line.trim());
    let shell = Command::new("sh").args(["-c", &script]).current_dir(place.0.path()).output();
    let words = String::from_utf8(shell.expect("a shell").stdout).expect("text");
    let words: Vec<&str> = words.lines().collect();
    assert_eq!(words[..6], ["freeze", "add", "--property", name, "--left", "one"]);
    assert_eq!(words[7], "the other");
    assert!(!place.path("PWNED").exists());
}
