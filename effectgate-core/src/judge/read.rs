//! Files that a job opens to read. A manifest asks about them.

use crate::input::{Bytes, Device, FileObject, RootMatch};
use crate::judge::file::{PROC, holds_nothing, is_device, own};
use crate::judge::{Doubt, Finding, Judgement, Rule, Tables};
use crate::path::contains;
use crate::policy::Key;
use crate::secret::is_credential_path;

/// Judges an open for reading by the process `pid`.
pub(super) fn read(tables: &Tables, pid: u32, object: &FileObject) -> Judgement {
    let policy = &tables.started.policy;
    if is_environment(object) && own(tables, pid, object, |_| false, |_| false).is_none() {
        return Judgement::violates(Rule::written(&tables.started, policy.env.key));
    }
    let Some(reads) = policy.roots.reads else { return Judgement::recorded("reads") };
    let of_every = |name| Judgement::within_rule(Rule::of_every_policy(name));
    let outside = || Judgement::violates(Rule::written(&tables.started, reads));
    if object.internal {
        return of_every("internal");
    }
    // A device is what its number says, wherever its node lies.
    if is_device(object) {
        return own(tables, pid, object, |stream| stream.read, gives_nothing)
            .map_or_else(outside, of_every);
    }
    if let Some(judgement) = below_root(tables, object, reads) {
        return judgement;
    }
    if let Some(name) = own(tables, pid, object, |stream| stream.read, gives_nothing) {
        return of_every(name);
    }
    if let Some(entry) = tables.kernel_file(object) {
        return Judgement::within_rule(tables.root_rule(Some(entry), reads));
    }
    if let Some(rule) = program(tables, object) {
        return Judgement::within_rule(rule);
    }
    match object.root {
        RootMatch::Unknown => {
            let rule = Rule::written(&tables.started, reads);
            Judgement { rule, finding: Finding::Doubt(Doubt::Unplaced) }
        }
        RootMatch::Outside | RootMatch::Below(_) => outside(),
    }
}

/// What `/proc` shows of a process's environment.
fn is_environment(object: &FileObject) -> bool {
    object.magic == PROC && object.path.ends_with(b"/environ")
}

/// Roots that the policy names are its own word on what lies there; a profile
/// speaks for nobody's secrets.
fn below_root(tables: &Tables, object: &FileObject, reads: Key) -> Option<Judgement> {
    let RootMatch::Below(id) = object.root else { return None };
    let place = tables.place(id).filter(|place| place.rights.read)?;
    let cited = place.cited;
    if cited.named.is_none() && place.tmpdir {
        return Some(Judgement::within_rule(Rule::of_every_policy("tmpdir")));
    }
    if cited.named.is_none() && is_private(tables, &object.path) {
        return Some(Judgement::violates(Rule::of_every_policy("credentials")));
    }
    Some(Judgement::within_rule(tables.root_rule(cited.named.or(cited.profile), reads)))
}

/// What is nobody's business who runs a program: credentials, other homes, and
/// the observer's own files.
fn is_private(tables: &Tables, path: &[u8]) -> bool {
    let started = &tables.started;
    let below = |top: &Bytes| contains(top, path);
    is_credential_path(path)
        || started.own.iter().any(below)
        || is_in_home(path) && !started.home.as_ref().is_some_and(below)
}

fn is_in_home(path: &[u8]) -> bool {
    path == b"/root" || path.starts_with(b"/root/") || path.starts_with(b"/home/")
}

/// A program that may run may also be read.
fn program(tables: &Tables, object: &FileObject) -> Option<Rule> {
    let binaries = tables.started.policy.binaries.as_ref()?;
    let index = tables.programs(object).first()?;
    let line = binaries.entries().get(*index)?.line;
    Some(Rule::written(&tables.started, Key { line, ..binaries.key }))
}

/// What is read from these says nothing of the machine: those that hold
/// nothing, and random, urandom (Documentation/admin-guide/devices.txt).
fn gives_nothing(rdev: Device) -> bool {
    holds_nothing(rdev) || matches!((rdev.major, rdev.minor), (1, 8 | 9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{object, tables};
    use crate::input::RootMatch;
    use crate::judge::Finding;

    /// An envelope asks about no reads, but about environments.
    #[test]
    fn the_environment_of_another_process_is_not_the_jobs_to_read() {
        let judge = |path: &str, magic, own_proc| {
            let file = object(path, RootMatch::Outside);
            let found = read(&tables(), 7, &FileObject { magic, own_proc, ..file });
            (found.finding, found.rule.name)
        };
        let violates = (Finding::Violation, "allowed_env");
        let recorded = (Finding::Recorded, "reads");
        assert_eq!(judge("/proc/8/environ", PROC, false), violates);
        assert_eq!(judge("/proc/8/task/9/environ", PROC, false), violates);
        assert_eq!(judge("/proc/8/environ", PROC, true), recorded);
        assert_eq!(judge("/proc/7/environ", PROC, false), recorded);
        assert_eq!(judge("/proc/8/status", PROC, false), recorded);
        assert_eq!(judge("/srv/environ", 1, false), recorded);
    }
}
