//! Somebody who has read nothing: from an empty file, doing only what the
//! messages of `check` say.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

#[test]
fn an_empty_file_becomes_a_pinned_manifest() {
    let place = TempDir::new().expect("a directory");
    let file = place.path().join("agent-egress.yml");
    fs::write(&file, "").expect("write");
    // Each round does what is said, and nothing else.
    let mut rounds = 0;
    while !holds(&file) {
        rounds += 1;
        assert!(rounds < 5, "{}", text(&file));
        for fault in faults(&file) {
            follow(&file, &fault);
        }
    }
    let next = text(&file);
    assert!(next.contains("holds: manifest docs-agent"), "{next}");
    let command = quoted(next.lines().last().expect("a line")).expect("a command").to_owned();
    assert!(command.starts_with("effectgate pin "), "{next}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(effectgate(&words).status.success());
    assert!(effectgate(&["pin", file.to_str().expect("UTF-8"), "--verify"]).status.success());
    assert!(!text(&file).contains("next:"), "all is done");
}

#[test]
fn an_empty_object_becomes_an_envelope() {
    let place = TempDir::new().expect("a directory");
    let file = place.path().join("envelope.json");
    fs::write(&file, "{}").expect("write");
    let members: Vec<String> = faults(&file)
        .iter()
        .map(|fault| fault["help"].as_str().and_then(quoted).expect("a member").to_owned())
        .collect();
    fs::write(&file, format!("{{{}}}", members.join(","))).expect("write");
    assert!(holds(&file), "{}", text(&file));
}

/// Every fault that a first attempt tends to have is mended by its own help.
#[test]
fn each_message_says_what_to_write_instead() {
    let good = r#"version: 2
agent_id: docs-agent
owner: team-docs
workspace_roots: ["."]
write_roots: ["docs"]
binaries: ["git"]
network:
  mode: deny
env_allow: ["CI"]
max_steps: 100
max_wall_clock_sec: 600
max_tool_calls_per_step: 10
mcp_servers: []
"#;
    for (line, rule, mended) in [
        ("agent_id: tmp", "agent-id", "agent_id: docs-agent"),
        ("owner: docs-bot", "owner-bot", "owner: team-docs"),
        ("write_roots: [\"../docs\"]", "root-climbs", "write_roots: [\"docs\"]"),
        ("write_roots: [\"/srv/docs\"]", "root-absolute", "write_roots: [\"docs\"]"),
        ("binaries: [\"/usr/bin/git\"]", "binary-path", "binaries: [\"git\"]"),
        ("binaries: [\"bash\"]", "binary-shell", "binaries: [\"git\"]"),
        ("max_steps: 0", "count", "max_steps: 100"),
        ("env_allow: CI", "type", "env_allow: [\"CI\"]"),
    ] {
        let place = TempDir::new().expect("a directory");
        let file = place.path().join("agent-egress.yml");
        let key = line.split(':').next().expect("a key");
        let of_key = |text: &&str| text.starts_with(key);
        let old = good.lines().find(of_key).expect("the key");
        fs::write(&file, good.replace(old, line)).expect("write");
        let faults = faults(&file);
        assert!(faults.iter().any(|fault| fault["rule"] == rule), "{line}: {faults:?}");
        for fault in &faults {
            let help = fault["help"].as_str().expect("help");
            assert!(!help.is_empty() && !help.ends_with('.'), "{fault}");
        }
        fs::write(&file, good.replace(old, mended)).expect("write");
        assert!(holds(&file), "{}", text(&file));
    }
}

/// Writes what the help shows in backquotes, at the end of the file.
fn follow(file: &Path, fault: &Value) {
    let help = fault["help"].as_str().expect("every fault has a help");
    let write = quoted(help).unwrap_or_else(|| panic!("what is to be written? {fault}"));
    let text = fs::read_to_string(file).expect("read");
    fs::write(file, format!("{text}{write}\n")).expect("write");
}

fn quoted(text: &str) -> Option<&str> {
    text.split('`').nth(1)
}

fn holds(file: &Path) -> bool {
    effectgate(&["check", file.to_str().expect("UTF-8")]).status.success()
}

fn text(file: &Path) -> String {
    let output = effectgate(&["check", file.to_str().expect("UTF-8")]);
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn faults(file: &Path) -> Vec<Value> {
    let output = effectgate(&["check", "--format", "json", file.to_str().expect("UTF-8")]);
    let files: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    files[0]["faults"].as_array().expect("faults").clone()
}

fn effectgate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_effectgate")).args(words).output().expect("it runs")
}
