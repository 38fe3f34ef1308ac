//! The documents say what the code does: every rule is described, and every
//! example holds.

use std::fs;
use std::path::Path;

use effectgate_core::compare::{self, Against};
use effectgate_core::input::Class;
use effectgate_core::judge::Doubt;
use effectgate_core::{policy, rules};

#[test]
fn every_rule_of_policies_is_described() {
    let described = read("docs/manifest.md") + &read("docs/envelope.md");
    let missing: Vec<&str> = rules::POLICY
        .iter()
        .map(|(rule, _)| *rule)
        .filter(|rule| !described.contains(&format!("`{rule}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_key_of_manifests_is_described() {
    let described = read("docs/manifest.md");
    let faults = policy::parse("m.yml", b"version: 2\nno_such_key: 1\n", "2026-11-30").unwrap_err();
    let unknown = faults.iter().find(|fault| fault.rule == "unknown-key").unwrap();
    let keys = unknown.help.trim_start_matches("the keys are ").split(", ");
    let missing: Vec<&str> =
        keys.filter(|key| !described.contains(&format!("| `{key}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}: {}", unknown.help);
}

#[test]
fn every_whole_manifest_that_is_shown_holds() {
    for document in ["docs/manifest.md", "docs/policies.md"] {
        let shown = read(document);
        let manifests = shown.split("```yaml\n").skip(1).map(|rest| rest.split("```").next());
        let whole: Vec<&str> =
            manifests.flatten().filter(|text| text.starts_with("version:")).collect();
        assert!(!whole.is_empty(), "{document}");
        for text in whole {
            if let Err(faults) = policy::parse(document, text.as_bytes(), "2026-11-30") {
                panic!("{text}{faults:#?}");
            }
        }
    }
}

#[test]
fn the_trace_that_is_shown_holds_under_the_manifest_that_is_shown() {
    let block = |document: &str, fence: &str| {
        let text = read(document);
        let (_, rest) = text.split_once(fence).unwrap();
        rest.split("```").next().unwrap().to_owned()
    };
    let manifest = block("docs/manifest.md", "```yaml\n");
    let trace = block("docs/trace.md", "```\n");
    let against = Against {
        policy: &policy::parse("m.yml", manifest.as_bytes(), "2026-11-30").unwrap(),
        workspace: "/srv/repo",
        today: "2026-11-30",
        resolve: &mut |path| Some(path.to_owned()),
    };
    let comparison = compare::compare(trace.as_bytes(), against).unwrap();
    assert!(comparison.holds && comparison.events > 3, "{comparison:#?}");
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

#[test]
fn every_reason_for_indeterminate_is_listed() {
    let text = read("docs/evidence.md");
    let (_, listed) = text.split_once("## Reasons for `indeterminate`").unwrap();
    for doubt in std::iter::successors(Some(Doubt::NoCanary), following) {
        let said = doubt.to_string().replace("class file", "class …");
        assert!(listed.contains(&format!("`{said}`")), "{said}");
    }
}

/// Leads through all of them: one that is new must be put somewhere.
fn following(doubt: &Doubt) -> Option<Doubt> {
    let dots = || "…".to_owned();
    Some(match doubt {
        Doubt::NoCanary => Doubt::CanaryMissed(Class::File),
        Doubt::CanaryMissed(_) => Doubt::CanaryFailed(dots()),
        Doubt::CanaryFailed(_) => Doubt::NeverLaunched,
        Doubt::NeverLaunched => Doubt::NoProgram,
        Doubt::NoProgram => Doubt::Coverage(Class::File),
        Doubt::Coverage(_) => Doubt::Unplaced,
        Doubt::Unplaced => Doubt::ArgumentsCut,
        Doubt::ArgumentsCut => Doubt::DigestUnknown,
        Doubt::DigestUnknown => Doubt::EnvIncomplete,
        Doubt::EnvIncomplete => Doubt::EnvUnread,
        Doubt::EnvUnread => Doubt::IoUring,
        Doubt::IoUring => Doubt::CompatSyscall,
        Doubt::CompatSyscall => Doubt::OthersIpc,
        Doubt::OthersIpc => Doubt::Namespace,
        Doubt::Namespace => Doubt::CoreDump,
        Doubt::CoreDump => Doubt::Disagreement,
        Doubt::Disagreement => Doubt::UnknownRecord,
        Doubt::UnknownRecord => Doubt::Killed,
        Doubt::Killed => Doubt::Stopped(dots()),
        Doubt::Stopped(_) => return None,
    })
}
