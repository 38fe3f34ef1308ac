//! `effectgate check`

use effectgate_core::policy;
use serde_json::json;

use super::{policy as policy_file, print, print_json};
use crate::{
    cli::{Check, Format},
    exit::{self, Failure, Outcomes},
};

pub fn check(args: &Check, format: Format) -> Outcomes {
    let mut code = exit::HOLDS;
    let mut results = Vec::new();
    let mut unreadable = Vec::new();
    for file in &args.files {
        let name = file.to_string_lossy();
        let bytes = match policy_file::bounded(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                // The other files are checked all the same.
                unreadable.push(format!("{error:#}"));
                continue;
            }
        };
        let (faults, policy) = match policy::parse(&name, &bytes, &policy_file::today()) {
            Ok(policy) => (Vec::new(), Some(policy)),
            Err(faults) => (faults, None),
        };
        if !faults.is_empty() {
            code = exit::DOES_NOT_HOLD;
        }
        if format == Format::Text {
            for fault in &faults {
                print(&format!("{fault}\n"));
            }
            if let Some(policy) = &policy {
                print(&format!(
                    "{name}: holds: envelope {}, sha256 {}\n",
                    policy.id, policy.sha256
                ));
            }
        }
        results.push(json!({
            "file": name,
            "holds": policy.is_some(),
            "id": policy.as_ref().map(|policy| &policy.id),
            "sha256": policy.as_ref().map(|policy| &policy.sha256),
            "faults": faults.iter().map(|fault| json!({
                "rule": fault.rule, "line": fault.line, "column": fault.column,
                "message": fault.message, "help": fault.help,
            })).collect::<Vec<_>>(),
        }));
    }
    if format == Format::Json {
        print_json(&results)?;
    }
    if !unreadable.is_empty() {
        return Err(Failure { code: exit::USAGE, error: anyhow::anyhow!(unreadable.join("\n")) });
    }
    Ok(code)
}
