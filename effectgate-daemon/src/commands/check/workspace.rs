//! A manifest's roots, as they lie in the workspace: none may be a way out of it.

use std::path::Path;

use effectgate_core::policy::{self, Fault, Kind, Policy, RootRule};

use crate::commands::leads::leads_to;

/// The roots that lead out of the workspace, a path without links. A root
/// that is not there yet is no fault: the job may be what makes it.
pub fn faults(policy: &Policy, bytes: &[u8], workspace: &Path) -> Vec<Fault> {
    if policy.kind == Kind::Envelope {
        return Vec::new();
    }
    let relative = |root: &&RootRule| {
        !root.profile && !Path::new(&root.path).is_absolute() && !root.path.starts_with("~/")
    };
    let mut faults: Vec<Fault> = Vec::new();
    for root in policy.roots.entries.iter().filter(relative) {
        let said = match leads_to(&workspace.join(&root.path)) {
            Ok(place) if place.starts_with(workspace) => continue,
            Ok(place) => format!("leads to {:?}, which is outside the workspace", place),
            Err(error) => format!("cannot be followed: {error}"),
        };
        faults.push(policy::leads_outside(policy, root, &said, bytes));
    }
    // A path may be a root for writing and for reading.
    faults.sort_by_key(|fault| (fault.line, fault.column));
    faults.dedup_by_key(|fault| (fault.line, fault.column));
    faults
}
