//! A root that is a way out of the workspace. Where a root leads is seen on a
//! machine; what is said of it is the same everywhere.

use super::{Policy, RootRule};
use crate::fault::{Fault, Faults, quoted};
use crate::tree::Pos;

/// The fault of a root that `leads` (a verb and a place) outside the
/// workspace; `bytes` are the policy's.
pub fn leads_outside(policy: &Policy, root: &RootRule, leads: &str, bytes: &[u8]) -> Fault {
    let mut faults = Faults::of(&policy.file);
    let message = format!("{}: {} {leads}", root.key.name, quoted(&root.path));
    let help = "name a directory of the repository itself, not a link";
    faults.add(place(root, bytes), "root-leads-outside", message, help);
    faults.into_vec().remove(0)
}

/// The root's path where it stands as it is, the whole entry otherwise.
fn place(root: &RootRule, bytes: &[u8]) -> Pos {
    let line = bytes.split(|byte| *byte == b'\n').nth(root.key.line.saturating_sub(1) as usize);
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    let entry = line.trim().trim_start_matches("- ");
    let text = if line.contains(&root.path) { root.path.as_str() } else { entry };
    let before = line.split_once(text).map_or("", |(before, _)| before);
    let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let column = count(before).saturating_add(1);
    Pos { line: root.key.line, column, width: count(text).max(1) }
}
