//! `effectgate check` as people and machines see it.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

const GOOD: &str = r#"{
  "envelope_id": "docs-v1",
  "allowed_roots": ["/srv/repo"],
  "allowed_tools": [],
  "allowed_env": ["CI"],
  "allowed_hosts": [],
  "network": "deny"
}"#;

const MANIFEST: &str = r#"version: 2
agent_id: docs-agent
owner: team-docs
workspace_roots: ["docs"]
write_roots:
  - "docs"
binaries: ["git"]
network: {mode: deny}
env_allow: []
max_steps: 1
max_wall_clock_sec: 60
max_tool_calls_per_step: 1
mcp_servers: []
"#;

struct Place(TempDir);

impl Place {
    fn with(files: &[(&str, &str)]) -> Place {
        let place = Place(TempDir::new().expect("a directory"));
        for (name, text) in files {
            fs::write(place.0.path().join(name), text).expect("write");
        }
        place
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
        command.args(words).current_dir(self.0.path()).output().expect("it runs")
    }

    /// Exit code and standard output.
    fn says(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.run(words);
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    }
}

#[test]
fn every_file_is_looked_at_and_counted() {
    let bad = GOOD.replace("/srv/repo", "srv").replace("deny", "open");
    let place = Place::with(&[("good.json", GOOD), ("bad.json", &bad)]);
    let (code, said) = place.says(&["check", "good.json", "bad.json"]);
    assert_eq!(code, Some(1));
    for line in [
        "error[root-relative]: ",
        "error[network-mode]: ",
        " --> bad.json:3:21\n",
        "good.json: holds: envelope docs-v1, sha256 ",
        "bad.json: does not hold: 2 faults\n",
        "1 of 2 files hold, 2 faults\n",
        "next: mend bad.json, ",
        "`effectgate pin good.json`\n",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert!(!said.contains('\u{1b}'), "no colours where no terminal is");
    let (code, said) = place.says(&["check", "good.json", "missing.json"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("good.json: holds"), "{said}");
}

#[test]
fn machines_get_every_fault_with_its_place_and_its_reason() {
    let place = Place::with(&[("bad.json", &GOOD.replace("/srv/repo", "srv"))]);
    let (code, said) = place.says(&["check", "bad.json", "--format", "json"]);
    assert_eq!(code, Some(1));
    let files: Value = serde_json::from_str(&said).expect("JSON");
    let fault = &files[0]["faults"][0];
    assert_eq!((&fault["line"], &fault["column"]), (&json!(3), &json!(21)));
    assert_eq!(fault["width"], json!(5), "the quotes too");
    assert!(fault["why"].as_str().is_some_and(|why| !why.is_empty()));

    let (code, said) = place.says(&["check", "bad.json", "--format", "sarif"]);
    assert_eq!(code, Some(1));
    let log: Value = serde_json::from_str(&said).expect("JSON");
    let run = &log["runs"][0];
    let result = &run["results"][0];
    let physical = &result["locations"][0]["physicalLocation"];
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(run["columnKind"], "utf16CodeUnits");
    assert_eq!(physical["artifactLocation"]["uri"], "bad.json");
    assert_eq!(physical["region"], json!({"startLine": 3, "startColumn": 21, "endColumn": 26}));
    let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
}

#[test]
fn what_could_not_be_read_is_part_of_the_sarif() {
    let place = Place::with(&[("good.json", GOOD)]);
    let (code, said) = place.says(&["check", "good.json", "none.json", "--format", "sarif"]);
    assert_eq!(code, Some(2));
    let log: Value = serde_json::from_str(&said).expect("JSON");
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let notice = &invocation["toolExecutionNotifications"][0]["message"]["text"];
    assert!(notice.as_str().is_some_and(|text| text.contains("none.json")), "{notice}");
}

#[test]
fn sarif_is_for_findings_alone() {
    let place = Place::with(&[("good.json", GOOD)]);
    let output = place.run(&["pin", "good.json", "--format", "sarif"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--format json"));
}

#[test]
fn a_root_is_no_way_out_of_the_workspace() {
    let place = Place::with(&[("agent-egress.yml", MANIFEST)]);
    let check =
        |workspace: &str| place.says(&["check", "agent-egress.yml", "--workspace", workspace]);
    // What is not there yet may be what the job makes.
    assert_eq!(check(".").0, Some(0));
    let repo = place.0.path().join("repo");
    fs::create_dir(&repo).expect("a directory");
    symlink("/etc", repo.join("docs")).expect("a link");
    let (code, said) = check("repo");
    assert_eq!(code, Some(1));
    assert!(
        said.contains("error[root-leads-outside]: write_roots: \"docs\" leads to \"/etc\""),
        "{said}"
    );
    assert!(said.contains("--> agent-egress.yml:6:6\n"), "{said}");
    assert_eq!(check("nowhere").0, Some(2));
}

#[test]
fn it_says_what_is_left_to_do() {
    let place = Place::with(&[("a.json", GOOD)]);
    let next = || {
        let (code, said) = place.says(&["check", "a.json"]);
        assert_eq!(code, Some(0), "{said}");
        said.lines().nth(1).unwrap_or_default().to_owned()
    };
    assert!(next().contains("`effectgate pin a.json`"));
    assert_eq!(place.says(&["pin", "a.json"]).0, Some(0));
    assert_eq!(next(), "");
    fs::write(place.0.path().join("a.json"), GOOD.replace("docs-v1", "docs-v2")).expect("write");
    assert!(next().contains("effectgate diff OLD a.json"));
    fs::write(place.0.path().join("a.json.sha256"), "none").expect("write");
    assert!(next().contains("is no pin"));
}
