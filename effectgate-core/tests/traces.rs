//! The traces under `policies/cases/trace`, and what is expected of each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use effectgate_core::compare::{Against, Comparison, compare, without_trace};
use effectgate_core::policy::{self, Policy};
use effectgate_core::rules::TRACE as RULES;

const TODAY: &str = "2026-01-31";
const WORKSPACE: &str = "/srv/repo";
const MANIFEST: &str = "agent-egress.yml";

struct Case {
    file: String,
    manifest: String,
    want: Want,
}

enum Want {
    /// It holds, and lies beside these rules.
    Holds(Vec<String>),
    /// `LINE RULE` of each finding.
    Findings(Vec<String>),
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/cases/trace")
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(directory().join("EXPECTED")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let words = |text: &str| text.split(", ").map(str::to_owned).collect();
    lines
        .map(|line| {
            let (file, want) = line.split_once(": ").expect(line);
            let (file, manifest) = file.split_once(" under ").unwrap_or((file, MANIFEST));
            let holds = want.strip_prefix("holds (").and_then(|rest| rest.strip_suffix(')'));
            let want = match holds {
                Some(rules) => Want::Holds(words(rules)),
                None => Want::Findings(words(want)),
            };
            Case { file: file.to_owned(), manifest: manifest.to_owned(), want }
        })
        .collect()
}

fn manifest(name: &str) -> Policy {
    let bytes = fs::read(directory().join(name)).unwrap();
    policy::parse(name, &bytes, TODAY).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"))
}

fn result(case: &Case) -> Comparison {
    let policy = manifest(&case.manifest);
    let Ok(trace) = fs::read(directory().join(&case.file)) else {
        return without_trace(&policy, WORKSPACE, TODAY);
    };
    let resolve = &mut |_: &str| None;
    let against = Against { policy: &policy, workspace: WORKSPACE, today: TODAY, resolve };
    compare(trace.as_slice(), against).unwrap()
}

#[test]
fn each_case_comes_out_as_expected() {
    for case in cases() {
        let comparison = result(&case);
        let found: Vec<String> = comparison
            .findings
            .iter()
            .map(|finding| match finding.line {
                Some(line) => format!("{line} {}", finding.rule),
                None => format!("- {}", finding.rule),
            })
            .collect();
        let want = match &case.want {
            Want::Holds(_) => Vec::new(),
            Want::Findings(want) => want.clone(),
        };
        assert_eq!(found, want, "{}: {:#?}", case.file, comparison.findings);
        assert_eq!(comparison.holds, want.is_empty(), "{}", case.file);
        for finding in &comparison.findings {
            assert!(!finding.why.is_empty() && !finding.help.is_empty(), "{}", finding.rule);
        }
    }
}

#[test]
fn every_rule_has_a_case_on_each_side() {
    let (mut kept, mut broken) = (BTreeSet::new(), BTreeSet::new());
    let cases = cases();
    for case in &cases {
        match &case.want {
            Want::Holds(rules) => kept.extend(rules.iter().map(String::as_str)),
            Want::Findings(all) => {
                broken.extend(all.iter().filter_map(|one| Some(one.split_once(' ')?.1)));
            }
        }
    }
    // Those are in `compare.rs`: they are made, not written.
    let made = |rule: &str| rule.starts_with("log-") || rule == "trace-line-too-long";
    for (rule, _) in RULES.iter().filter(|(rule, _)| !made(rule)) {
        assert!(kept.contains(rule), "no case that holds beside {rule}");
        assert!(broken.contains(rule), "no case that breaks {rule}");
    }
    let known = |rule: &&str| RULES.iter().any(|(known, _)| known == rule);
    assert!(kept.iter().chain(&broken).all(known), "a rule that is none");
    assert!(cases.len() >= 40 && broken.len() * 2 >= RULES.len());
}

#[test]
fn every_file_is_a_case() {
    let expected: BTreeSet<String> = cases().into_iter().map(|case| case.file).collect();
    for entry in fs::read_dir(directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".jsonl") || expected.contains(&name), "{name} is not expected");
    }
}
