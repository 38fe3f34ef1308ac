//! Where a recorded file stands under the policy that replays the log.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;

use crate::host;
use crate::input::{Bytes, FileObject, Found, Root, RootMatch, Started};
use crate::judge::{ancestors, grant_rights, is_kernel_file};
use crate::policy::{HostName, Policy, Rights};
use crate::record::read::{JOB, OpenRoot, Opening, Read};
use crate::redact;

/// The roots of the log, and those of the policy that judges it, by path.
pub(crate) struct Places {
    logged: HashSet<Bytes>,
    roots: HashMap<Bytes, u32>,
    same_policy: bool,
}

/// The start of the replay: the log's surroundings under the policy given.
pub(crate) fn stage(opening: Opening, policy: Policy, same_policy: bool) -> (Started, Places) {
    let roots = if same_policy {
        opening.roots.iter().map(old_root).collect()
    } else {
        new_roots(&opening, &policy)
    };
    let binaries = if same_policy {
        opening.binaries.into_iter().map(|(_, found)| found).collect()
    } else {
        new_binaries(&opening.binaries, &policy, &roots)
    };
    let sockets = if same_policy {
        opening.sockets.into_iter().map(|(_, found)| found).collect()
    } else {
        new_sockets(&opening.sockets, &policy)
    };
    let hosts = if same_policy {
        opening.hosts.into_iter().map(|(_, addresses)| addresses).collect()
    } else {
        new_hosts(&opening.hosts, &policy)
    };
    let mut by_path = HashMap::with_capacity(roots.len());
    for root in &roots {
        by_path.entry(root.path.clone()).or_insert(root.id);
    }
    let logged = opening.roots.into_iter().map(|old| old.path).collect();
    let places = Places { logged, roots: by_path, same_policy };
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
        judged: opening.judged && same_policy,
        programs: opening.programs,
        argv: opening.argv,
        cgroup: opening.cgroup,
        workspace: opening.workspace,
        home: opening.home,
        roots,
        binaries,
        sockets,
        linked: opening.linked,
        digests_hold: same_policy,
        own: opening.own,
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
            let id = self.roots.get(path).ok_or("root")?;
            return Ok(RootMatch::Below(*id));
        }
        Ok(self.anew(file, root))
    }

    /// By paths, as far as they say what the kernel would have found.
    fn anew(&self, file: &FileObject, root: Option<&[u8]>) -> RootMatch {
        let around = |path: &[u8]| self.nearest(path).map(|(_, id)| RootMatch::Below(id));
        match root {
            // The kernel's word on the root holds where the path says
            // otherwise, or is not whole. What lies nearer to the file grants
            // at least as much.
            Some(old) if file.path_cut || !ancestors(&file.path).any(|above| above == old) => {
                if let Some(found) = around(old) {
                    return found;
                }
            }
            Some(_) => {}
            // The kernel saw that it is not where its path says it is.
            None if ancestors(&file.path).any(|above| self.logged.contains(above)) => {
                return RootMatch::Outside;
            }
            None => {}
        }
        if file.path_cut {
            return RootMatch::Unknown;
        }
        let said = |path: &[u8]| root.is_some_and(|old| old.starts_with(path));
        match self.nearest(&file.path) {
            // Another path can have had other words there.
            Some((path, _)) if redact::is_in(path) && !said(path) => RootMatch::Unknown,
            Some((_, id)) => RootMatch::Below(id),
            None => RootMatch::Outside,
        }
    }

    fn nearest<'a>(&self, path: &'a [u8]) -> Option<(&'a [u8], u32)> {
        ancestors(path).find_map(|above| Some((above, *self.roots.get(above)?)))
    }
}

fn old_root(old: &OpenRoot) -> Root {
    Root { id: old.id, path: old.path.clone(), entry: old.entry, rights: old.rights }
}

/// The policy's roots, resolved where the log knows how, and the job's TMPDIR.
fn new_roots(opening: &Opening, policy: &Policy) -> Vec<Root> {
    let mut known: HashMap<&str, &Bytes> = HashMap::new();
    for old in &opening.roots {
        if let Some(written) = &old.written {
            known.entry(written).or_insert(&old.path);
        }
    }
    let text = |bytes: &Option<Bytes>| {
        bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let (workspace, home) = (text(&opening.workspace), text(&opening.home));
    let (workspace, home) = (workspace.as_deref().map(Path::new), home.as_deref().map(Path::new));
    let entries = policy.roots.entries.iter().enumerate();
    let written =
        entries.filter(|(_, entry)| !is_kernel_file(entry)).filter_map(|(index, entry)| {
            let path = match known.get(redact::path_text(&entry.path).as_str()) {
                Some(path) => Bytes::clone(path),
                None => redact::path(entry.place(workspace, home)?.to_string_lossy().as_bytes()),
            };
            Some((path, Some(index)))
        });
    let own = opening.roots.iter().filter(|old| old.entry.is_none());
    let all = written.chain(own.map(|old| (old.path.clone(), None))).zip(1..);
    let root = |((path, entry), id)| Root { id, path, entry, rights: Rights::default() };
    let mut roots: Vec<Root> = all.map(root).collect();
    grant_rights(policy, &mut roots);
    roots
}

/// The files that the policy's programs mean, as far as the log knows; the
/// others by the paths at which they would be looked for.
fn new_binaries(logged: &[(String, Found)], policy: &Policy, roots: &[Root]) -> Vec<Found> {
    let Some(binaries) = &policy.binaries else { return Vec::new() };
    let mut known: HashMap<&str, Vec<&Found>> = HashMap::new();
    for (name, found) in logged {
        known.entry(name).or_default().push(found);
    }
    let search = roots.iter().filter(|root| root.rights.search).map(|root| root.path.clone());
    let system = crate::programs::SEARCH_PATH.iter().map(|dir| dir.as_bytes().to_vec());
    let dirs: Vec<Bytes> = search.chain(system).collect();
    let writable: HashSet<&[u8]> =
        roots.iter().filter(|root| root.rights.write).map(|root| root.path.as_slice()).collect();
    let mut all = Vec::new();
    for (entry, listed) in binaries.entries().iter().enumerate() {
        let name = listed.value.name.as_str();
        match known.get(name) {
            Some(found) => all.extend(found.iter().map(|old| Found { entry, ..(*old).clone() })),
            None => all.extend(dirs.iter().map(|dir| Found {
                entry,
                path: [dir.as_slice(), b"/", name.as_bytes()].concat(),
                dev: Default::default(),
                ino: 0,
                twin: 0,
            })),
        }
    }
    all.retain(|found| !ancestors(&found.path).any(|above| writable.contains(above)));
    all
}

/// The files that the policy's sockets are bound to, as far as the log knows;
/// the others by their paths.
fn new_sockets(logged: &[(String, Found)], policy: &Policy) -> Vec<Found> {
    let known: HashMap<&str, &Found> =
        logged.iter().map(|(path, found)| (path.as_str(), found)).collect();
    let entries = policy.unix_sockets.entries().iter().enumerate();
    entries
        .map(|(entry, listed)| {
            let path = redact::path_text(&listed.value);
            match known.get(path.as_str()) {
                Some(old) => Found { entry, ..Found::clone(old) },
                None => {
                    Found { entry, path: path.into(), dev: Default::default(), ino: 0, twin: 0 }
                }
            }
        })
        .collect()
}

/// What the job resolved the policy's names to, whatever the port.
fn new_hosts(logged: &[(Option<String>, Vec<IpAddr>)], policy: &Policy) -> Vec<Vec<IpAddr>> {
    let mut known: HashMap<HostName, Vec<IpAddr>> = HashMap::new();
    for (text, addresses) in logged {
        // Without the protocol, which a manifest can name.
        let host = text.as_deref().and_then(|text| text.split('/').next());
        if let Some(host) = host.and_then(|host| host::parse(host).ok()) {
            known.entry(host.name).or_default().extend(addresses);
        }
    }
    let resolved = |name: &HostName| match name {
        HostName::Name(_) => known.get(name).cloned().unwrap_or_default(),
        HostName::Address(_) => Vec::new(),
    };
    policy.hosts.entries().iter().map(|entry| resolved(&entry.value.name)).collect()
}
