//! A trace held against a manifest, and the packet that is made of both.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const MANIFEST: &str = r#"version: 1
agent_id: docs-agent
owner: team-docs
workspace_roots: ["."]
write_roots: ["docs"]
binaries: ["git"]
network: {mode: deny}
env_allow: ["CI"]
max_steps: 2
max_wall_clock_sec: 600
max_tool_calls_per_step: 10
mcp_servers: []
"#;

const EVENT: &str = r#"{"ts": "2026-01-31T12:00:00Z", "type": "exec", "name": "git", "binary": "git", "argv": ["git", "status"], "cwd": ".", "host": null}
"#;

/// A workspace, and beside it a folder with manifest, pin and trace.
struct Run {
    place: TempDir,
}

impl Run {
    fn new(trace: &str) -> Run {
        let run = Run { place: TempDir::new().expect("a directory") };
        fs::create_dir(run.packet()).expect("a directory");
        fs::create_dir(run.workspace()).expect("a directory");
        fs::write(run.file("agent-egress.yml"), MANIFEST).expect("write");
        fs::write(run.file("trace.jsonl"), trace).expect("write");
        assert!(effectgate(&["pin", &text(&run.file("agent-egress.yml"))]).status.success());
        run
    }

    fn packet(&self) -> PathBuf {
        self.place.path().join("packet")
    }

    fn workspace(&self) -> PathBuf {
        self.place.path().join("workspace")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.packet().join(name)
    }

    fn compare(&self, more: &[&str]) -> Output {
        let (manifest, trace) = (self.file("agent-egress.yml"), self.file("trace.jsonl"));
        let (manifest, trace) = (text(&manifest), text(&trace));
        let workspace = text(&self.workspace());
        let words =
            ["compare", "--manifest", &manifest, "--trace", &trace, "--workspace", &workspace];
        effectgate(&[&words[..], more].concat())
    }

    fn assemble(&self) -> (Option<i32>, Vec<String>) {
        let workspace = text(&self.workspace());
        rules(&["packet", "--assemble", &text(&self.packet()), "--workspace", &workspace])
    }

    fn verify(&self) -> (Option<i32>, Vec<String>) {
        rules(&["packet", &text(&self.packet())])
    }
}

fn effectgate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_effectgate")).args(words).output().expect("effectgate")
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Exit code, and `FILE RULE` of each problem.
fn rules(words: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = effectgate(&[words, &["--format", "json"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let problems = result["problems"].as_array().expect("problems");
    let line = |problem: &Value| {
        let word = |key: &str| problem[key].as_str().expect("text").to_owned();
        format!("{} {}", word("file"), word("rule"))
    };
    (output.status.code(), problems.iter().map(line).collect())
}

#[test]
fn a_trace_holds_or_does_not() {
    let run = Run::new(EVENT);
    let output = run.compare(&[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "compare: holds (0 findings in 1 events)\n");
    assert_eq!(output.status.code(), Some(0));

    fs::write(run.file("trace.jsonl"), EVENT.replace("\"git\"", "\"nc\"")).expect("write");
    let output = run.compare(&[]);
    let said = String::from_utf8_lossy(&output.stdout);
    let parts =
        ["[binary-not-listed]: binary: \"nc\" is", "trace.jsonl:1\n", "agent-egress.yml:6,"];
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(output.status.code(), Some(1));
    let json = run.compare(&["--format", "json"]);
    let result: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(result["findings"][0]["decided"]["line"], 6);

    fs::remove_file(run.file("trace.jsonl")).expect("remove");
    assert_eq!(run.compare(&[]).status.code(), Some(1), "missing evidence");
    fs::create_dir(run.file("trace.jsonl")).expect("a directory");
    assert_eq!(run.compare(&[]).status.code(), Some(2), "what cannot be read");
    fs::remove_file(run.file("agent-egress.yml")).expect("remove");
    assert_eq!(run.compare(&[]).status.code(), Some(2));
}

#[test]
fn a_link_out_of_the_workspace_is_outside() {
    let run = Run::new(&EVENT.replace("\".\"", "\"out/x\""));
    assert_eq!(run.compare(&[]).status.code(), Some(0), "what is not there is judged as written");
    symlink("/", run.workspace().join("out")).expect("a link");
    assert_eq!(run.compare(&[]).status.code(), Some(1));
}

#[test]
fn a_packet_is_complete_or_does_not_hold() {
    let run = Run::new(EVENT);
    let missing = run.verify();
    assert_eq!(missing.0, Some(1));
    assert!(missing.1.contains(&"compare.json packet-missing-file".to_owned()), "{missing:?}");
    assert_eq!(run.assemble(), (Some(0), vec![]));
    assert_eq!(run.verify(), (Some(0), vec![]));
    assert_eq!(run.assemble(), (Some(0), vec![]), "again");

    for name in ["check.json", "compare.json", "secrets.json", "bounds.json", "MANIFEST.sha256"] {
        let whole = fs::read(run.file(name)).expect("read");
        fs::remove_file(run.file(name)).expect("remove");
        let missing = format!("{name} packet-missing-file");
        assert!(run.verify().1.contains(&missing), "{name}");
        let place = run.place.path().join("elsewhere");
        fs::write(&place, &whole).expect("write");
        symlink(&place, run.file(name)).expect("a link");
        assert!(run.verify().1.contains(&format!("{name} packet-no-file")), "{name}");
        fs::remove_file(run.file(name)).expect("remove");
        fs::write(run.file(name), [&whole[..], b" "].concat()).expect("write");
        let (code, problems) = run.verify();
        assert_eq!(code, Some(1), "{name}");
        assert!(problems.iter().any(|problem| problem.starts_with(name)), "{problems:?}");
        fs::write(run.file(name), whole).expect("write");
    }
    assert_eq!(run.verify(), (Some(0), vec![]));

    fs::write(run.file("notes.txt"), "").expect("write");
    assert_eq!(run.verify(), (Some(1), vec!["notes.txt packet-extra-file".to_owned()]));
    assert_eq!(run.assemble().0, Some(1), "and nothing is written");
}

#[test]
fn what_changed_after_the_packet_was_made_is_found() {
    let run = Run::new(EVENT);
    assert_eq!(run.assemble().0, Some(0));
    fs::write(run.file("trace.jsonl"), [EVENT, EVENT].concat()).expect("write");
    let (code, problems) = run.verify();
    assert_eq!(code, Some(1));
    assert!(problems.contains(&"compare.json packet-differs".to_owned()), "{problems:?}");
    assert!(problems.contains(&"MANIFEST.sha256 packet-digest".to_owned()), "{problems:?}");

    let run = Run::new(EVENT);
    fs::write(run.file("agent-egress.yml"), format!("{MANIFEST}# wider\n")).expect("write");
    assert_eq!(run.assemble().1, ["agent-egress.yml.sha256 packet-pin"]);

    let run = Run::new(EVENT);
    assert_eq!(run.assemble().0, Some(0));
    let forged = fs::read_to_string(run.file("compare.json")).expect("read");
    let day = forged.lines().find(|line| line.contains("\"day\"")).expect("a day");
    let forged = forged.replace(day, "  \"day\": \"2999-01-01\",");
    fs::write(run.file("compare.json"), forged).expect("write");
    assert_eq!(run.verify().1, ["compare.json packet-differs"]);
}

#[test]
fn what_does_not_hold_makes_no_packet() {
    for (trace, count) in [
        (String::new(), 1),
        (EVENT.repeat(3), 1),
        (EVENT.replace("\"host\"", "\"output\": \"ghp_0123456789abcdef\", \"host\""), 1),
        (EVENT.replace("status", "--password=hunter2"), 2),
    ] {
        let run = Run::new(&trace);
        let (code, problems) = run.assemble();
        assert_eq!(code, Some(1), "{trace}");
        assert_eq!(problems.len(), count, "{problems:?}");
        assert!(problems.iter().all(|problem| problem == "trace.jsonl packet-does-not-hold"));
        assert_eq!(run.verify(), (code, problems));
        let secrets = fs::read_to_string(run.file("secrets.json")).expect("read");
        let compared = fs::read_to_string(run.file("compare.json")).expect("read");
        assert!(!(secrets + &compared).contains("hunter2"));
    }
    let run = Run::new(EVENT);
    let broken = run.file("agent-egress.yml");
    fs::write(&broken, MANIFEST.replace("team-docs", "docs-bot")).expect("write");
    let (code, problems) = run.assemble();
    assert_eq!(code, Some(1));
    assert!(problems.contains(&"agent-egress.yml packet-does-not-hold".to_owned()), "{problems:?}");
}
