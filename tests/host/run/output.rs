//! The command's input and output, and `effectgate`'s own.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use effectgate_tests::{Gate, Scene, gate, metrics, record};
use serde_json::Value;

#[test]
fn output_is_passed_on_untouched() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene).trigger(["print-both", "to stdout\n", "to stderr\n"]);
    outcome.assert_pass();
    assert!(outcome.stdout.starts_with(b"to stdout\n"), "{}", outcome.story());
    assert!(outcome.stderr.contains("to stderr\n"), "{}", outcome.story());
}

/// In JSON, what follows the command's bytes is the verdict and nothing else.
#[test]
fn output_that_is_not_text() {
    let scene = Scene::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let path = scene.outside().join("bytes");
    std::fs::write(&path, &bytes).expect("write");
    let input = std::fs::File::open(&path).expect("open");
    let outcome = Gate::new(&scene)
        .option(["--format", "json"])
        .with(|command| {
            command.stdin(Stdio::from(input));
        })
        .trigger(["copy-input"]);
    outcome.assert_pass();
    assert!(outcome.stdout.starts_with(&bytes), "{} bytes came", outcome.stdout.len());
    let verdict: Value = serde_json::from_slice(&outcome.stdout[bytes.len()..]).expect("JSON");
    assert_eq!(&verdict, outcome.verdict());
}

#[test]
fn input_is_passed_on() {
    let scene = Scene::new();
    let mut running = Gate::new(&scene)
        .with(|command| {
            command.stdin(Stdio::piped());
        })
        .start_trigger(["copy-input"]);
    running.say("through the gate");
    let outcome = running.end();
    outcome.assert_pass();
    assert!(outcome.stdout.starts_with(b"through the gate\n"), "{}", outcome.story());
}

#[test]
fn command_that_closes_its_output() {
    Gate::new(&Scene::new()).trigger(["close-output"]).assert_pass();
}

/// The verdict is the exit code, whoever reads the rest.
#[test]
fn output_that_was_closed_before() {
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let closed = |gate: Gate| {
        gate.with(|command| {
            // SAFETY: close may be called between fork and exec.
            unsafe {
                command.pre_exec(|| {
                    libc::close(1);
                    libc::close(2);
                    Ok(())
                });
            }
        })
    };
    closed(Gate::new(&scene)).trigger(["true"]).assert_pass();
    let outcome = closed(Gate::new(&scene)).trigger(["open-write", file.to_str().expect("UTF-8")]);
    outcome.assert_fail();
}

#[test]
fn verdict_is_the_last_line() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene).trigger(["print", "a line\n"]);
    outcome.assert_pass();
    assert_eq!(outcome.stdout(), "a line\nverdict: pass (0 violations, 0 lost)\n");
}

#[test]
fn each_violation_is_a_line() {
    let scene = Scene::new();
    let (from, to) = (scene.outside().join("file"), scene.outside().join("new"));
    let (from, to) = (from.to_str().expect("UTF-8"), to.to_str().expect("UTF-8"));
    let outcome = Gate::new(&scene).trigger(["rename", from, to]);
    outcome.assert_fail();
    let printed = outcome.stdout();
    let count = outcome.violations().len();
    let lines: Vec<_> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.last().expect("a line");
    let plural = if count == 1 { "" } else { "s" };
    assert_eq!(*last, format!("verdict: fail ({count} violation{plural}, 0 lost)"));
    let trigger = gate::trigger();
    let trigger = trigger.to_str().expect("UTF-8");
    let violation = lines
        .iter()
        .find(|line| ["file", "rename", from, trigger].iter().all(|word| line.contains(word)));
    assert!(violation.is_some(), "{printed}");
}

/// Nothing but the command's output is on standard output when all is well.
#[test]
fn json_alone() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene).option(["--format", "json"]).trigger(["true"]);
    outcome.assert_pass();
    let verdict: Value = serde_json::from_slice(&outcome.stdout).expect("one JSON document");
    assert_eq!(&verdict, outcome.verdict());
    assert_eq!(verdict["schema"], "effectgate.verdict/v1");
}

#[test]
fn evidence_holds_together() {
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let outcome = Gate::new(&scene).trigger(["open-write", file.to_str().expect("UTF-8")]);
    outcome.assert_fail();
    for name in ["events.jsonl", "verdict.json", "report.html", "MANIFEST.sha256"] {
        assert!(outcome.evidence.join(name).is_file(), "{name} is not there");
    }
    let sums = Command::new("sha256sum")
        .args(["-c", "MANIFEST.sha256"])
        .current_dir(&outcome.evidence)
        .output()
        .expect("sha256sum is there");
    assert!(sums.status.success(), "{sums:?}");
    let policy = std::fs::read(scene.envelope()).expect("read");
    let kept = std::fs::read_dir(&outcome.evidence)
        .expect("evidence")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("policy"))
        .any(|entry| {
            let path = entry.path();
            let path = if path.is_dir() { path.join("envelope.json") } else { path };
            std::fs::read(path).is_ok_and(|bytes| bytes == policy)
        });
    assert!(kept, "the policy is not kept byte for byte");
}

/// Sequence numbers without holes, each record bound to the one before.
#[test]
fn log_is_a_chain() {
    let outcome = Gate::new(&Scene::new()).trigger(["fork", "3"]);
    outcome.assert_pass();
    let mut before: Option<&Value> = None;
    for (number, event) in outcome.events.iter().enumerate() {
        assert_eq!(event["schema"], "effectgate.event/v1");
        assert_eq!(event["seq"], number, "{}", outcome.story());
        assert_eq!(record::text(&event["hash"]).len(), 64, "{event}");
        if let Some(before) = before {
            assert_eq!(event["prev"], before["hash"], "{event}");
        }
        before = Some(event);
    }
    let last = before.expect("a log");
    assert_eq!(outcome.verdict()["log"]["head"], last["hash"], "{}", outcome.story());
    assert_eq!(outcome.verdict()["log"]["records"], outcome.events.len(), "{}", outcome.story());
}

#[test]
fn metrics_file() {
    let scene = Scene::new();
    let path = scene.path().join("effectgate.prom");
    let file = scene.outside().join("file");
    let outcome = Gate::new(&scene)
        .option([std::ffi::OsStr::new("--metrics-file"), path.as_os_str()])
        .trigger(["open-write", file.to_str().expect("UTF-8")]);
    outcome.assert_fail();
    let text = std::fs::read_to_string(&path).expect("the metrics were written");
    let samples = metrics::parse(&text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
    assert!(!samples.is_empty());
    assert!(samples.iter().all(|sample| sample.name.starts_with("effectgate_")), "{text}");
    let with = |labels: &[(&str, &str)]| {
        samples.iter().any(|sample| {
            sample.value >= 1.0
                && labels.iter().all(|(k, v)| sample.labels.get(*k).is_some_and(|own| own == v))
        })
    };
    assert!(with(&[("verdict", "fail")]), "{text}");
    let name = scene.path().file_name().expect("a name").to_str().expect("UTF-8");
    assert!(!text.contains(name), "a path is a label:\n{text}");
}
