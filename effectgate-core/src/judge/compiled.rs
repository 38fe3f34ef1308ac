//! A job's tables as plain data for the kernel programs, which judge an effect
//! before it takes place. They know inodes, device numbers and addresses; what
//! takes a path or arguments to judge is marked, and left to user space.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::input::{Bytes, Device};
use crate::judge::Tables;
use crate::judge::exec::Word;
use crate::judge::file::PROC;
use crate::judge::tables::{CGROUPS, SYSFS, is_kernel_file};
use crate::path::contains;
use crate::policy::{Entry, Host};

/// What the kernel programs are to know of a job. What is in none of the lists
/// is outside; where a walk fails, it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// What is opened to be read is asked about.
    pub reads: bool,
    /// Which programs run is asked about, and what is mapped to be run.
    pub programs: bool,
    /// By the root's number.
    pub grants: BTreeMap<u32, Granted>,
    /// By device and inode.
    pub files: BTreeMap<(Device, u64), Meant>,
    /// Device numbers of the job's own terminals.
    pub terminals: BTreeSet<Device>,
    pub kernel_files: BTreeSet<KernelFile>,
    pub hosts: BTreeSet<Reachable>,
}

/// What may be done below a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    pub read: bool,
    pub write: bool,
    /// What lies there may run, whatever its name and arguments make of it:
    /// that is for user space to judge.
    pub exec: bool,
    /// Even credentials may be read. Where only a profile lets things be read,
    /// what lies below a name that begins with a dot is for user space to
    /// judge: paths of credentials have such a name.
    pub named: bool,
}

/// What a file means wherever it lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// May be opened to be read where no root says so: a listed program, or a
    /// stream that was handed over for it.
    pub read: bool,
    /// The same for writing, without listed programs.
    pub write: bool,
    /// A program that may run, unless the job can write it.
    pub runs: bool,
    /// Its arguments can still make it one that may not: for user space to
    /// judge, like everything that runs for a script.
    pub arguments: bool,
    /// A Unix socket that may be spoken to.
    pub unix: bool,
}

/// A file that the kernel makes up, or a directory of such, which may be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelFile {
    /// `super_block::s_magic`
    pub magic: u64,
    /// From the file system's root on; empty for the root itself.
    pub names: Vec<Bytes>,
}

/// Where a connection may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reachable {
    /// Canonical: IPv4-mapped IPv6 is IPv4.
    pub address: IpAddr,
    /// `None`: every one.
    pub port: Option<u16>,
    /// `IPPROTO_…`; `None`: every one.
    pub protocol: Option<u32>,
}

impl Tables {
    /// What the kernel programs are to know.
    pub fn compile(&self) -> Compiled {
        let policy = &self.started.policy;
        Compiled {
            reads: policy.roots.reads.is_some(),
            programs: policy.binaries.is_some(),
            grants: self.grants(),
            files: self.meant(),
            terminals: self.started.terminals.iter().copied().collect(),
            kernel_files: self.kernel_file_names(),
            hosts: self.reachable(),
        }
    }

    fn grants(&self) -> BTreeMap<u32, Granted> {
        let granted = |id: u32| {
            // Records know roots by their paths, and so are they judged.
            let shown = self.place(self.place(id)?.first)?;
            let rights = shown.rights;
            let named = shown.cited.named.is_some() || shown.tmpdir;
            Some(Granted { read: rights.read, write: rights.write, exec: rights.exec, named })
        };
        self.started.roots.iter().filter_map(|root| Some((root.id, granted(root.id)?))).collect()
    }

    fn meant(&self) -> BTreeMap<(Device, u64), Meant> {
        let mut files: BTreeMap<(Device, u64), Meant> = BTreeMap::new();
        let started = &self.started;
        for stream in started.streams.iter().filter(|stream| stream.ino != 0) {
            let meant = files.entry((stream.dev, stream.ino)).or_default();
            meant.read |= stream.read;
            meant.write |= stream.write;
        }
        let mut words: BTreeMap<(Device, u64), Word> = BTreeMap::new();
        for program in started.binaries.iter().filter(|found| found.ino != 0) {
            let word = self.word(program);
            let worst = words.entry((program.dev, program.ino)).or_insert(word);
            *worst = word.max(*worst);
        }
        for (file, word) in words {
            let meant = files.entry(file).or_default();
            meant.read = true;
            meant.runs = word != Word::Never;
            meant.arguments = word == Word::ByArguments;
        }
        for socket in started.sockets.iter().filter(|found| found.ino != 0) {
            files.entry((socket.dev, socket.ino)).or_default().unix = true;
        }
        files
    }

    fn kernel_file_names(&self) -> BTreeSet<KernelFile> {
        let mut files = BTreeSet::new();
        let mut add = |top: &str, magic: u64, path: &str| {
            let below = match path.get(top.len()..) {
                Some(below) if contains(top, path) => below,
                // All of the file system lies below the entry.
                _ if contains(path, top) => "",
                _ => return,
            };
            let names = below.split('/').filter(|name| !name.is_empty());
            let names = names.map(|name| name.as_bytes().to_vec()).collect();
            files.insert(KernelFile { magic, names });
        };
        let entries = self.started.policy.roots.entries.iter();
        for entry in entries.filter(|entry| is_kernel_file(entry)) {
            add("/proc", PROC, &entry.path);
            add("/sys", SYSFS, &entry.path);
            for magic in CGROUPS {
                add("/sys/fs/cgroup", magic, &entry.path);
            }
        }
        files
    }

    fn reachable(&self) -> BTreeSet<Reachable> {
        let reachable = |(address, entry): (IpAddr, &Entry<Host>)| Reachable {
            address,
            port: entry.value.port,
            protocol: entry.value.protocol.map(|protocol| protocol.number()),
        };
        self.all_hosts().map(reachable).collect()
    }
}
