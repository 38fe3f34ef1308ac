//! The cases under `policies/cases/policy`, each held against what its index
//! expects of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use effectgate_core::{policy, rules};

const TODAY: &str = "2026-01-31";

/// No case shows what only a look at the file system can tell.
const WITHOUT_CASE: [&str; 1] = ["root-leads-outside"];

struct Case {
    file: String,
    /// `LINE RULE` of every fault; empty when the file is accepted.
    faults: Vec<String>,
    /// The rules on whose good side it lies.
    near: Vec<String>,
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../policies/cases/policy")
}

fn cases() -> Vec<Case> {
    let index = fs::read_to_string(directory().join("EXPECTED")).unwrap();
    let lines = index.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(case).collect()
}

fn case(line: &str) -> Case {
    let (file, expected) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
    let list = |text: &str| text.split(", ").map(str::to_owned).collect();
    let (faults, near) = match expected.strip_prefix("holds") {
        Some("") => (Vec::new(), Vec::new()),
        Some(near) => {
            let near = near.strip_prefix(" (").and_then(|near| near.strip_suffix(')'));
            (Vec::new(), list(near.unwrap_or_else(|| panic!("{line}"))))
        }
        None => (list(expected), Vec::new()),
    };
    Case { file: file.to_owned(), faults, near }
}

#[test]
fn each_is_judged_as_expected() {
    let mut wrong = Vec::new();
    for case in cases() {
        let bytes = fs::read(directory().join(&case.file)).unwrap();
        let found = match policy::parse(&case.file, &bytes, TODAY) {
            Ok(_) => Vec::new(),
            Err(faults) => faults,
        };
        let short: Vec<String> =
            found.iter().map(|fault| format!("{} {}", fault.line, fault.rule)).collect();
        if short != case.faults {
            let said: Vec<String> = found.iter().map(ToString::to_string).collect();
            wrong.push(format!("{}: expected {:?}, found {said:#?}", case.file, case.faults));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_is_in_the_index_once() {
    let mut listed: Vec<String> = cases().into_iter().map(|case| case.file).collect();
    listed.sort();
    let files = fs::read_dir(directory()).unwrap();
    let mut files: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.retain(|file| file != "EXPECTED");
    files.sort();
    assert_eq!(listed, files);
}

#[test]
fn every_rule_is_shown_from_both_sides() {
    let cases = cases();
    let refused: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| &case.faults)
        .filter_map(|fault| Some(fault.split_once(' ')?.1))
        .collect();
    let near: BTreeSet<&str> =
        cases.iter().flat_map(|case| &case.near).map(String::as_str).collect();
    let rules: BTreeSet<&str> =
        rules::POLICY.iter().map(|(id, _)| *id).filter(|id| !WITHOUT_CASE.contains(id)).collect();
    assert_eq!(refused, rules, "refusals");
    assert_eq!(near, rules, "the other side");
    let refusals = cases.iter().filter(|case| !case.faults.is_empty()).count();
    assert!(2 * refusals >= cases.len() && cases.len() >= 60);
}

/// Every fault leads to the characters that it speaks of.
#[test]
fn every_fault_marks_a_place_in_its_file() {
    for case in cases().iter().filter(|case| !case.faults.is_empty()) {
        let bytes = fs::read(directory().join(&case.file)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for fault in policy::parse(&case.file, &bytes, TODAY).unwrap_err() {
            let line = text.lines().nth(fault.line as usize - 1).unwrap_or_default();
            let end = (fault.column - 1 + fault.width) as usize;
            // A fault may stand where something is missing: behind the last character.
            assert!(end <= line.chars().count() + 1, "{fault} marks {} in {line:?}", fault.width);
            assert!(!fault.why().is_empty() && !fault.help.is_empty(), "{fault}");
        }
    }
}
