//! `effectgate check`

mod next;
mod workspace;

use std::path::Path;

use anyhow::Context;
use effectgate_core::policy::{self, Kind, Policy};
use serde_json::{Value, json};

use super::{policy as policy_file, print, print_json, print_sarif};
use crate::{
    cli::{Check, Wanted},
    clock,
    diagnose::{self, Finding, Look, counted, visible},
    exit::{self, Code, Failure, Outcomes},
};

/// One file, looked at.
struct Checked<'a> {
    path: &'a Path,
    name: String,
    findings: Vec<Finding>,
    /// `None` when it cannot be used.
    policy: Option<Policy>,
}

pub fn check(args: &Check, wanted: Wanted) -> Outcomes {
    let workspace = std::fs::canonicalize(&args.workspace)
        .with_context(|| format!("cannot find the workspace {}", args.workspace.display()))
        .code(exit::USAGE)?;
    let mut checked = Vec::new();
    let mut unread = Vec::new();
    for file in &args.files {
        match look_at(file, &workspace) {
            Ok(file) => checked.push(file),
            // The other files are checked all the same.
            Err(error) => unread.push(format!("{error:#}")),
        }
    }
    match wanted {
        Wanted::Text => print(&text(&checked, Look::of(&std::io::stdout()))),
        Wanted::Json => print_json(&checked.iter().map(document).collect::<Vec<_>>())?,
        Wanted::Sarif => {
            let findings: Vec<Finding> =
                checked.iter().flat_map(|file| file.findings.iter().cloned()).collect();
            print_sarif(&findings, &unread)?;
        }
    }
    if !unread.is_empty() {
        return Err(Failure { code: exit::USAGE, error: anyhow::anyhow!(unread.join("\n")) });
    }
    let holds = checked.iter().all(|file| file.policy.is_some());
    Ok(if holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

fn look_at<'a>(file: &'a Path, workspace: &Path) -> anyhow::Result<Checked<'a>> {
    let name = file.to_string_lossy().into_owned();
    let bytes = policy_file::bounded(file)?;
    let (faults, policy) = match policy::parse(&name, &bytes, &clock::today()) {
        Ok(policy) => {
            let faults = workspace::faults(&policy, &bytes, workspace);
            let holds = faults.is_empty();
            (faults, Some(policy).filter(|_| holds))
        }
        Err(faults) => (faults, None),
    };
    Ok(Checked { path: file, name, findings: diagnose::of_file(faults, &bytes), policy })
}

/// What is wrong, then a line for each file, then what to do next.
fn text(checked: &[Checked<'_>], look: Look) -> String {
    let mut text = String::new();
    for file in checked {
        text += &diagnose::text(&file.findings, look);
    }
    for file in checked {
        let name = visible(&file.name);
        match &file.policy {
            Some(policy) => {
                let (kind, id) = (kind(policy.kind), visible(&policy.id));
                text += &format!("{name}: holds: {kind} {id}, sha256 {}\n", policy.sha256);
            }
            None => text += &format!("{name}: does not hold: {}\n", counted(file.findings.len())),
        }
    }
    if checked.len() > 1 {
        let hold = checked.iter().filter(|file| file.policy.is_some()).count();
        let found = checked.iter().map(|file| file.findings.len()).sum();
        text += &format!("{hold} of {} files hold, {}\n", checked.len(), counted(found));
    }
    text + &next::steps(checked)
}

fn document(file: &Checked<'_>) -> Value {
    json!({
        "file": file.name,
        "holds": file.policy.is_some(),
        "id": file.policy.as_ref().map(|policy| &policy.id),
        "sha256": file.policy.as_ref().map(|policy| &policy.sha256),
        "faults": file.findings.iter().map(diagnose::json).collect::<Vec<_>>(),
    })
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Envelope => "envelope",
        Kind::Manifest => "manifest",
    }
}
