//! Roots: by containment, each right for itself.

use super::{Change, Kind};
use crate::path;
use crate::policy::{Policy, Rights, RootRule};

pub(super) fn grants(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    if old.roots.reads.is_some() && new.roots.reads.is_none() {
        let act = "read any file, since reads are not judged";
        found.push(Change::new(Kind::ReadsUnjudged, "reads", None, act));
    }
    let asked = asked(old, new);
    for (index, root) in new.roots.entries.iter().enumerate() {
        // A mounted secret is one, whatever lies around it.
        if is_mounted_secret(root) {
            continue;
        }
        let covered = old.roots.entries.iter().chain(before(new, index));
        let had = covered.fold(Rights::default(), |had, other| had.and(given(other, root)));
        for (kind, act) in missing(root, had, asked) {
            let by = if root.profile { root.key.name } else { "allowed" };
            let change = Change::new(kind, &root.path, Some(root.key.line), act);
            found.push(change.between(None, Some(by.into())));
        }
    }
}

/// What a root of the agent's mounted secrets is told by.
pub(super) fn is_mounted_secret(root: &RootRule) -> bool {
    root.key.name == "mounted_secrets"
}

/// The rights about which both policies ask. Where the old one does not, it
/// permitted all; where the new one does not, that was said already.
fn asked(old: &Policy, new: &Policy) -> Rights {
    let reads = old.roots.reads.is_some() && new.roots.reads.is_some();
    let programs = old.binaries.is_some() && new.binaries.is_some();
    Rights { read: reads, write: true, exec: programs, search: programs }
}

/// The roots of the same policy that say what this one says: those around it,
/// and the first of two that are the same.
fn before(policy: &Policy, index: usize) -> impl Iterator<Item = &RootRule> {
    let own = &policy.roots.entries[index];
    let others = policy.roots.entries.iter().enumerate();
    others
        .filter(move |(at, other)| *at < index || (*at > index && other.path != own.path))
        .map(|(_, other)| other)
}

/// What `other` gives of what `root` asks.
fn given(other: &RootRule, root: &RootRule) -> Rights {
    if !contains(&other.path, &root.path) {
        return Rights::default();
    }
    // A profile lets nobody read credentials, wherever they lie; a root that
    // the file itself lists does.
    let read = other.rights.read && (!other.profile || root.profile);
    Rights { read, ..other.rights }
}

/// Whether the root at `root` is around `path`, or is it. Both are as written:
/// absolute, relative to the workspace, or below the home.
pub(super) fn contains(root: &str, path: &str) -> bool {
    if root == "." {
        return !path.starts_with('/') && !path.starts_with("~/");
    }
    path::contains(root, path)
}

fn missing(root: &RootRule, had: Rights, asked: Rights) -> Vec<(Kind, String)> {
    let RootRule { rights, path, .. } = root;
    let below =
        if path == "." { "anywhere in the workspace".to_owned() } else { format!("below {path}") };
    let mut all = Vec::new();
    if rights.write && asked.write && !had.write {
        all.push((Kind::Write, format!("write {below}")));
    }
    if rights.exec && asked.exec && !had.exec {
        all.push((Kind::Exec, format!("run whatever lies {below}, whoever wrote it")));
    }
    if rights.search && asked.search && !had.search {
        all.push((Kind::Search, format!("run its listed programs from {below}")));
    }
    // To write or run what lies there is to read it.
    if rights.read && asked.read && !had.read && all.is_empty() {
        let kind = if root.profile { Kind::ProfileRead } else { Kind::Read };
        all.push((kind, format!("read {below}")));
    }
    all
}
