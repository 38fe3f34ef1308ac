//! What is looked up while judging, made once for a job: each question costs
//! the same, however long the policy is.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::host;
use crate::input::{Bytes, FileId, FileObject, Found, Root, RootMatch, Started};
use crate::judge::Rule;
use crate::judge::file::PROC;
use crate::path::{OF_KERNEL, contains};
use crate::policy::{Entry, Host, HostName, Key, Policy, Rights, RootRule};
use crate::time;

/// A job's start, and its tables.
#[derive(Debug)]
pub struct Tables {
    pub started: Started,
    /// The day on which the job started, `YYYY-MM-DD`.
    pub today: String,
    roots: HashMap<u32, Place>,
    /// Entries that are matched by path: index in the policy's roots.
    kernel_files: HashMap<Bytes, usize>,
    /// Indices in the policy's hosts, in its order.
    hosts: HashMap<IpAddr, Vec<usize>>,
    /// Indices in the policy's programs.
    files: HashMap<FileId, Vec<usize>>,
    /// Those of files that are known by nothing but their paths.
    paths: HashMap<Bytes, Vec<usize>>,
    sockets: Sockets,
    /// By what they are, and by path, those of files with names elsewhere.
    linked: HashSet<FileId>,
    linked_paths: HashSet<Bytes>,
}

/// Indices in the policy's Unix sockets.
#[derive(Debug, Default)]
struct Sockets {
    files: HashMap<FileId, usize>,
    /// Those that are known by nothing but their paths.
    paths: HashMap<Bytes, usize>,
}

/// What a root means.
#[derive(Debug)]
pub(super) struct Place {
    /// Index in the job's roots.
    at: usize,
    /// The first root of the same path: records know roots by their paths.
    pub first: u32,
    pub rights: Rights,
    pub tmpdir: bool,
    pub cited: Cited,
}

/// The nearest entries at or above a root that grant something, by their
/// indices in the policy's roots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cited {
    /// Not of a profile.
    pub named: Option<usize>,
    pub profile: Option<usize>,
    pub write: Option<usize>,
    pub exec: Option<usize>,
}

impl Tables {
    pub fn new(started: Started) -> Self {
        let policy = &started.policy;
        let mut files: HashMap<_, Vec<usize>> = HashMap::new();
        let mut paths: HashMap<_, Vec<usize>> = HashMap::new();
        for found in &started.binaries {
            if found.ino == 0 {
                paths.entry(found.path.clone()).or_default().push(found.entry);
            } else {
                files.entry(found.id()).or_default().push(found.entry);
            }
        }
        let mut kernel_files = HashMap::new();
        for (index, entry) in policy.roots.entries.iter().enumerate() {
            if is_kernel_file(entry) {
                kernel_files.entry(entry.path.clone().into_bytes()).or_insert(index);
            }
        }
        Tables {
            today: time::day(started.ts),
            roots: places(policy, &started.roots),
            kernel_files,
            hosts: hosts(&started),
            files,
            paths,
            sockets: Sockets::of(&started.sockets),
            linked: started.linked.iter().map(|file| file.id()).collect(),
            linked_paths: started.linked.iter().map(|file| file.path.clone()).collect(),
            started,
        }
    }

    /// A root by its number.
    pub(super) fn place(&self, id: u32) -> Option<&Place> {
        self.roots.get(&id)
    }

    pub(crate) fn root_path(&self, id: u32) -> Option<&[u8]> {
        let root = self.started.roots.get(self.roots.get(&id)?.at)?;
        Some(&root.path)
    }

    /// The entry for a file of the kernel's own, which no root holds.
    pub(super) fn kernel_file(&self, object: &FileObject) -> Option<usize> {
        if object.path_cut || !is_of_kernel(&object.path, object.magic) {
            return None;
        }
        ancestors(&object.path).find_map(|path| self.kernel_files.get(path).copied())
    }

    /// The entries of the policy's hosts that mean this address.
    pub(super) fn hosts(&self, address: IpAddr) -> &[usize] {
        self.hosts.get(&address).map(Vec::as_slice).unwrap_or_default()
    }

    /// Every address that the policy's hosts mean, with each entry that means it.
    pub(super) fn all_hosts(&self) -> impl Iterator<Item = (IpAddr, &Entry<Host>)> {
        let entries = self.started.policy.hosts.entries();
        self.hosts.iter().flat_map(move |(address, indices)| {
            indices.iter().filter_map(move |index| Some((*address, entries.get(*index)?)))
        })
    }

    /// The entries of the policy's programs that mean this file.
    pub(super) fn programs(&self, file: &FileObject) -> &[usize] {
        let by_file = self.files.get(&file.id()).filter(|_| file.ino != 0);
        let by_path = || self.paths.get(&file.path).filter(|_| !file.path_cut);
        by_file.or_else(by_path).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the file had a name outside the job's roots as well.
    pub(super) fn is_linked(&self, file: &FileObject) -> bool {
        if file.ino != 0 {
            return self.linked.contains(&file.id());
        }
        !file.path_cut && self.linked_paths.contains(&file.path)
    }

    /// The entry of the policy's Unix sockets that means this file.
    pub(super) fn socket(&self, file: &FileObject) -> Option<usize> {
        let by_file = self.sockets.files.get(&file.id()).filter(|_| file.ino != 0);
        let by_path = || self.sockets.paths.get(&file.path).filter(|_| !file.path_cut);
        by_file.or_else(by_path).copied()
    }

    /// Records name a root by its path: two roots with one path are one, and a
    /// root of another job is none.
    pub(crate) fn settle(&self, object: &mut FileObject) {
        if let RootMatch::Below(id) = object.root {
            object.root = match self.roots.get(&id) {
                Some(place) => RootMatch::Below(place.first),
                None => RootMatch::Outside,
            };
        }
    }

    /// The rule of an entry of the policy's roots; `or` where there is none.
    pub(super) fn root_rule(&self, entry: Option<usize>, or: Key) -> Rule {
        let entry = entry.and_then(|index| self.started.policy.roots.entries.get(index));
        Rule::written(&self.started, entry.map_or(or, |entry| entry.key))
    }
}

impl Sockets {
    fn of(all: &[Found]) -> Sockets {
        let mut sockets = Sockets::default();
        for found in all {
            if found.ino == 0 {
                sockets.paths.entry(found.path.clone()).or_insert(found.entry);
            } else {
                sockets.files.entry(found.id()).or_insert(found.entry);
            }
        }
        sockets
    }
}

/// Gives each root its rights: its own, and those of every root at or above it.
pub fn grant_rights(policy: &Policy, roots: &mut [Root]) {
    let mut own: HashMap<Bytes, Rights> = HashMap::with_capacity(roots.len());
    for root in &*roots {
        let rights = own.entry(root.path.clone()).or_default();
        *rights = rights.and(granted(policy, root));
    }
    for root in roots {
        let above = ancestors(&root.path).filter_map(|path| own.get(path));
        root.rights = above.fold(Rights::default(), |sum, rights| sum.and(*rights));
    }
}

/// Whether an entry is about files that the kernel makes up when they are
/// asked for (`/proc`, `/sys`): those have no lasting inodes, so they are
/// matched by path and file system, and only for reading.
pub fn is_kernel_file(entry: &RootRule) -> bool {
    let below = OF_KERNEL.iter().any(|top| contains(*top, &entry.path));
    !entry.rights.write && !entry.rights.exec && below
}

/// `SYSFS_MAGIC`, include/uapi/linux/magic.h.
const SYSFS: u64 = 0x6265_6572;
/// `CGROUP2_SUPER_MAGIC` and `CGROUP_SUPER_MAGIC`, of the same file.
const CGROUPS: [u64; 2] = [0x6367_7270, 0x0027_e0eb];

/// Whether a path lies where it says, by its file system's `s_magic`.
fn is_of_kernel(path: &[u8], magic: u64) -> bool {
    match magic {
        PROC => contains("/proc", path),
        SYSFS => contains("/sys", path),
        _ => CGROUPS.contains(&magic) && contains("/sys/fs/cgroup", path),
    }
}

/// A path and every directory above it, the nearest first, without `/`.
pub(crate) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let all = std::iter::once(path.len()).chain(ends).filter(|end| *end > 0);
    all.filter_map(|end| path.get(..end))
}

/// What a root's own entry grants; the job's `TMPDIR` is to be written.
fn granted(policy: &Policy, root: &Root) -> Rights {
    match root.entry {
        None => Rights::WRITE,
        Some(index) => policy.roots.entries.get(index).map_or(Rights::default(), |e| e.rights),
    }
}

fn places(policy: &Policy, roots: &[Root]) -> HashMap<u32, Place> {
    let mut first: HashMap<&[u8], u32> = HashMap::with_capacity(roots.len());
    let mut own: HashMap<&[u8], Cited> = HashMap::with_capacity(roots.len());
    for root in roots {
        first.entry(&root.path).or_insert(root.id);
        let cited = own.entry(&root.path).or_default();
        cited.add(cites(policy, root));
    }
    let mut places: HashMap<u32, Place> = HashMap::with_capacity(roots.len());
    for (at, root) in roots.iter().enumerate() {
        let mut cited = Cited::default();
        ancestors(&root.path).filter_map(|path| own.get(path)).for_each(|own| cited.add(*own));
        match places.get_mut(&root.id) {
            // One directory under two paths has what either has.
            Some(place) => {
                place.rights = place.rights.and(root.rights);
                place.tmpdir |= root.entry.is_none();
                place.cited.add(cited);
            }
            None => {
                let first = first.get(root.path.as_slice()).copied().unwrap_or(root.id);
                let tmpdir = root.entry.is_none();
                let rights = root.rights;
                places.insert(root.id, Place { at, first, rights, tmpdir, cited });
            }
        }
    }
    // Two directories under one path (a secret was taken out of each) cannot
    // be told apart in the log, and have what both have.
    for root in roots {
        let shown = first.get(root.path.as_slice()).filter(|first| **first != root.id);
        if let Some(place) = shown.and_then(|first| places.get_mut(first)) {
            place.rights = place.rights.common(root.rights);
        }
    }
    places
}

fn cites(policy: &Policy, root: &Root) -> Cited {
    let Some((index, entry)) =
        root.entry.and_then(|index| Some((index, policy.roots.entries.get(index)?)))
    else {
        return Cited::default();
    };
    let rights = entry.rights;
    Cited {
        named: (rights.read && !entry.profile).then_some(index),
        profile: (rights.read && entry.profile).then_some(index),
        write: rights.write.then_some(index),
        exec: rights.exec.then_some(index),
    }
}

impl Cited {
    /// Takes over what is not cited yet.
    fn add(&mut self, other: Cited) {
        self.named = self.named.or(other.named);
        self.profile = self.profile.or(other.profile);
        self.write = self.write.or(other.write);
        self.exec = self.exec.or(other.exec);
    }
}

fn hosts(started: &Started) -> HashMap<IpAddr, Vec<usize>> {
    let mut hosts: HashMap<IpAddr, Vec<usize>> = HashMap::new();
    for (index, entry) in started.policy.hosts.entries().iter().enumerate() {
        match &entry.value.name {
            HostName::Address(own) => hosts.entry(*own).or_default().push(index),
            HostName::Name(name) => {
                for address in started.hosts.get(index).into_iter().flatten() {
                    // No resolver's answer lets a job reach what must be named.
                    if host::must_be_named(*address) && !host::is_metadata_name(name) {
                        continue;
                    }
                    hosts.entry(*address).or_default().push(index);
                }
            }
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_those_above_it() {
        let all = |path: &str| -> Vec<String> {
            let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
            ancestors(path.as_bytes()).map(text).collect()
        };
        assert_eq!(all("/a/b/c"), ["/a/b/c", "/a/b", "/a"]);
        assert_eq!(all("/a"), ["/a"]);
        assert_eq!(all("a"), ["a"]);
        assert!(all("").is_empty());
    }
}
