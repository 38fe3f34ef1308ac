//! The command itself.

use std::fs::{self, File};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::bundle::{Bundle, every, everything};
use crate::common::*;

const FORMS: [&str; 8] = ["html", "markdown", "annotations", "sarif", "junit", "ocsf", "otlp", ""];

fn effectgate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_effectgate"))
        .args(words)
        .env_remove("OTEL_RESOURCE_ATTRIBUTES")
        .output()
        .expect("it runs")
}

fn bundle() -> (TempDir, Bundle) {
    let dir = TempDir::new().expect("a directory");
    let bundle = Bundle::of(started(), everything("name"));
    bundle.write(dir.path());
    (dir, bundle)
}

#[test]
fn every_form_goes_to_standard_output_and_to_a_file() {
    let (dir, _) = bundle();
    let path = dir.path().to_str().unwrap();
    let out = dir.path().join("out");
    for form in FORMS {
        let flag = format!("--{form}");
        let mut words = vec!["report", path];
        words.extend((!form.is_empty()).then_some(flag.as_str()));
        let printed = effectgate(&words);
        assert_eq!(printed.status.code(), Some(0), "{form}: {printed:?}");
        words.extend(["--output", out.to_str().unwrap()]);
        let written = effectgate(&words);
        assert_eq!(written.status.code(), Some(0), "{form}: {written:?}");
        assert!(written.stdout.is_empty());
        assert_eq!(fs::read(&out).unwrap(), printed.stdout, "{form}");
    }
}

#[test]
fn it_prints_what_the_library_makes() {
    let (dir, bundle) = bundle();
    let path = dir.path().to_str().unwrap();
    for (name, text) in every(&bundle) {
        let flag = format!("--{name}");
        let words = match name {
            "text" => vec!["report", path],
            "json" => vec!["report", path, "--format", "json"],
            // The directory and the environment of the caller are in these.
            "sarif" | "otlp" => continue,
            // Another command's.
            "verdict" => continue,
            _ => vec!["report", path, &flag],
        };
        let printed = effectgate(&words);
        assert_eq!(String::from_utf8_lossy(&printed.stdout).trim_end(), text.trim_end(), "{name}");
    }
    let by_format = effectgate(&["report", path, "--format", "sarif"]);
    assert_eq!(by_format.stdout, effectgate(&["report", path, "--sarif"]).stdout);
}

#[test]
fn what_cannot_be_told_is_said() {
    let (dir, bundle) = bundle();
    let path = dir.path().to_str().unwrap().to_owned();
    let says = |words: &[&str], expected: &str| {
        let output = effectgate(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(output.stdout.is_empty());
    };
    says(&["report", &path, "--html", "--junit"], "cannot be used with");
    says(&["report", "/nowhere"], "cannot read the bundle");
    says(&["report", &path, "--output", "/nowhere/out"], "/nowhere/out");
    let mut log = bundle.log.clone();
    log.pop();
    fs::write(dir.path().join("events.jsonl"), &log).unwrap();
    for form in ["--html", "--ocsf"] {
        says(&["report", &path, form], "the line is cut off");
    }
    fs::write(dir.path().join("events.jsonl"), "").unwrap();
    says(&["report", &path], "the log is empty");
    fs::remove_file(dir.path().join("events.jsonl")).unwrap();
    says(&["report", &path], "events.jsonl");
    fs::remove_file(dir.path().join("policy")).unwrap();
    says(&["report", &path], "policy");
}

/// Half of a result is none, and a script that only asks for the code is told so.
#[test]
fn what_cannot_be_written_is_no_result() {
    let (dir, _) = bundle();
    let path = dir.path().to_str().unwrap();
    let policy = dir.path().join("policy");
    let policy = policy.to_str().unwrap();
    for words in [
        &["report", path][..],
        &["report", path, "--html"],
        &["report", path, "--format", "json"],
        &["log", "verify", path],
        &["log", "verify", path, "--format", "json"],
        &["log", "query", path],
        &["check", policy],
        &["check", policy, "--format", "json"],
        &["completions", "bash"],
    ] {
        let run = |out: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
            command.args(words).stdout(File::create(out).unwrap()).output().unwrap()
        };
        assert_eq!(run("/dev/null").status.code(), Some(0), "{words:?}");
        let full = run("/dev/full");
        assert_eq!(full.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8_lossy(&full.stderr);
        assert!(said.contains("cannot write to standard output"), "{words:?}: {said}");
    }
}
