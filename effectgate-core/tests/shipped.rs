//! The shipped policies: examples that somebody starts from.

use std::fs;
use std::path::{Path, PathBuf};

use effectgate_core::{pin, policy};

/// Exceptions expire; the examples hold for years from here.
const TODAY: &str = "2026-11-30";

#[test]
fn every_shipped_policy_holds_and_is_pinned() {
    let policies = policies();
    assert!(policies.len() >= 5, "{policies:?}");
    for path in policies {
        let name = path.to_string_lossy();
        let bytes = fs::read(&path).unwrap();
        let policy = policy::parse(&name, &bytes, TODAY).unwrap_or_else(|faults| {
            panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>())
        });
        let beside = format!("{name}.sha256");
        let pinned = pin::read_pin(&beside, &fs::read(&beside).unwrap_or_default())
            .unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(policy.sha256, pinned, "run `effectgate pin {name}`");
    }
}

#[test]
fn every_shipped_manifest_says_for_whom_it_is() {
    for path in policies().iter().filter(|path| path.extension().is_some_and(|e| e == "yml")) {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("# For "), "{}", path.display());
    }
}

fn policies() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
    let is_policy = |path: &PathBuf| {
        path.is_file() && path.extension().is_some_and(|end| end == "yml" || end == "json")
    };
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_policy).collect()
}
