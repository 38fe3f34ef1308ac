//! Where a recorded file stands under the policy that replays the log.

use std::net::IpAddr;

use crate::host;
use crate::input::{Bytes, FileObject, Root, RootMatch, Started};
use crate::policy::{HostName, Policy};
use crate::record::read::{JOB, OpenRoot, Opening, Read};
use crate::redact;

/// The roots of the log, and those of the policy that judges it.
pub(crate) struct Places {
    logged: Vec<OpenRoot>,
    roots: Vec<Root>,
    same_policy: bool,
}

/// The start of the replay: the log's surroundings under the policy given.
pub(crate) fn stage(opening: Opening, policy: Policy, same_policy: bool) -> (Started, Places) {
    let roots = if same_policy {
        let root =
            |root: &OpenRoot| Root { id: root.id, path: root.path.clone(), entry: root.entry };
        opening.roots.iter().map(root).collect()
    } else {
        new_roots(&opening.roots, &policy)
    };
    let hosts = if same_policy {
        opening.hosts.into_iter().map(|(_, addresses)| addresses).collect()
    } else {
        let resolved = |host: &host::Host| match &host.name {
            HostName::Name(name) => known_addresses(&opening, name),
            HostName::Address(_) => Vec::new(),
        };
        policy.hosts.entries().iter().map(|entry| resolved(&entry.value)).collect()
    };
    let places = Places { logged: opening.roots, roots, same_policy };
    let started = Started {
        job: JOB,
        ts: opening.ts,
        boot_offset: opening.boot_offset,
        name: opening.name,
        policy,
        // A note covers the drift to one policy only.
        note: opening.note.filter(|_| same_policy),
        host: opening.host,
        kernel: opening.kernel,
        backend: opening.backend,
        coverage: opening.coverage,
        min_coverage: opening.min_coverage,
        mode: opening.mode,
        programs: opening.programs,
        argv: opening.argv,
        cgroup: opening.cgroup,
        roots: places.roots.clone(),
        hosts,
        streams: opening.streams,
        terminals: opening.terminals,
        env: opening.env,
        processes: opening.processes,
    };
    (started, places)
}

impl Places {
    /// `file.root` says only whether the walk failed; `root` is the path of
    /// the root that the record names.
    pub fn find(&self, file: &FileObject, root: Option<&[u8]>) -> Read<RootMatch> {
        if file.root == RootMatch::Unknown {
            return Ok(RootMatch::Unknown);
        }
        if self.same_policy {
            let Some(path) = root else { return Ok(RootMatch::Outside) };
            return self.named(path).ok_or("root");
        }
        Ok(self.anew(file, root))
    }

    /// By paths, as far as they say what the kernel would have found.
    fn anew(&self, file: &FileObject, root: Option<&[u8]>) -> RootMatch {
        let around = |path: &[u8]| self.roots.iter().find(|new| contains(&new.path, path));
        let below = |new: Option<&Root>| new.map(|new| RootMatch::Below(new.id));
        match root {
            Some(old) => {
                if let Some(found) = below(around(old)) {
                    return found;
                }
            }
            // The kernel saw that it is not where its path says it is.
            None if self.logged.iter().any(|old| contains(&old.path, &file.path)) => {
                return RootMatch::Outside;
            }
            None => {}
        }
        if file.path_cut {
            return RootMatch::Unknown;
        }
        match around(&file.path) {
            // Another path can have had other words there.
            Some(root) if redact::is_in(&root.path) => RootMatch::Unknown,
            root => below(root).unwrap_or(RootMatch::Outside),
        }
    }

    fn named(&self, path: &[u8]) -> Option<RootMatch> {
        let root = self.roots.iter().find(|root| root.path == path)?;
        Some(RootMatch::Below(root.id))
    }
}

/// The policy's roots, resolved where the log knows how, and the job's TMPDIR.
fn new_roots(logged: &[OpenRoot], policy: &Policy) -> Vec<Root> {
    let resolved = |written: &str| {
        let shown = redact::path_text(written);
        let old = logged.iter().find(|old| old.written.as_ref() == Some(&shown));
        old.map_or_else(|| Bytes::from(shown), |old| old.path.clone())
    };
    let entries = policy.roots.entries.iter().enumerate();
    let written = entries.map(|(index, entry)| (resolved(&entry.path), Some(index)));
    let own = logged.iter().filter(|old| old.entry.is_none()).map(|old| (old.path.clone(), None));
    let all = written.chain(own).zip(0..);
    all.map(|((path, entry), id)| Root { id, path, entry }).collect()
}

/// What the job resolved this name to, whatever the port.
fn known_addresses(opening: &Opening, name: &str) -> Vec<IpAddr> {
    let hosts = opening.hosts.iter().filter(|(text, _)| is_name(text.as_deref(), name));
    hosts.flat_map(|(_, addresses)| addresses.iter().copied()).collect()
}

fn is_name(text: Option<&str>, name: &str) -> bool {
    text.and_then(|text| host::parse(text).ok())
        .is_some_and(|host| host.name == HostName::Name(name.to_owned()))
}

/// The directory itself, or anything below it.
fn contains(root: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
