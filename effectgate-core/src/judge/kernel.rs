//! A job's tables as plain data for the kernel programs, which judge an effect
//! before it takes place. They know inodes, device numbers and addresses; what
//! takes a path, a name or arguments to judge is marked, and left to user space.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::input::{Device, FileId};
use crate::judge::Tables;
use crate::judge::exec::Word;
use crate::policy::{Entry, Host};

/// What the kernel programs are to know of a job, each thing once. What is in
/// none of the lists is outside; where a walk fails, it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTables {
    /// What is opened to be read is asked about.
    pub reads: bool,
    /// Which programs run is asked about, and what is mapped to be run.
    pub programs: bool,
    pub grants: Vec<RootGrant>,
    pub files: Vec<KnownFile>,
    /// Device numbers of the job's own terminals.
    pub terminals: Vec<Device>,
    pub hosts: Vec<KnownHost>,
}

/// What may be done below a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootGrant {
    /// The root's number.
    pub root: u32,
    pub read: bool,
    pub write: bool,
    /// What lies there may run, but its name and arguments can make it what may
    /// not: for user space to judge.
    pub exec: bool,
    /// Even credentials may be read. Where only a profile lets things be read,
    /// what lies below a name that begins with a dot is for user space to judge:
    /// paths of credentials have such a name.
    pub named: bool,
}

/// What a file means wherever it lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownFile {
    pub id: FileId,
    /// A program that may run, unless the job can write it.
    pub program: bool,
    /// Its arguments can make it one that may not: for user space to judge, as
    /// is whatever runs for a script, which has a name of its own.
    pub arguments: bool,
    /// It may be opened to be read: a stream that was handed over for it, or a
    /// program that is listed.
    pub stream_read: bool,
    /// A stream that was handed over for writing.
    pub stream_write: bool,
    /// A Unix socket that may be spoken to.
    pub unix: bool,
    /// It has a name outside the roots as well, and may not be changed.
    pub linked: bool,
}

/// Where a connection may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownHost {
    /// Canonical: IPv4-mapped IPv6 is IPv4.
    pub address: IpAddr,
    /// `None`: every one.
    pub port: Option<u16>,
    /// `IPPROTO_…`; `None`: every one.
    pub protocol: Option<u32>,
}

impl Tables {
    /// What the kernel programs are to know.
    pub fn for_kernel(&self) -> KernelTables {
        let started = &self.started;
        let mut terminals = started.terminals.clone();
        terminals.sort_unstable();
        terminals.dedup();
        KernelTables {
            reads: started.policy.roots.reads.is_some(),
            programs: started.policy.binaries.is_some(),
            grants: self.grants(),
            files: self.known_files(),
            terminals,
            hosts: self.known_hosts(),
        }
    }

    fn grants(&self) -> Vec<RootGrant> {
        let mut roots: Vec<u32> = self.started.roots.iter().map(|root| root.id).collect();
        roots.sort_unstable();
        roots.dedup();
        let grant = |root: u32| {
            // Records know roots by their paths, and so are they judged.
            let shown = self.place(self.place(root)?.first)?;
            let rights = shown.rights;
            let named = shown.cited.named.is_some() || shown.tmpdir;
            Some(RootGrant {
                root,
                read: rights.read,
                write: rights.write,
                exec: rights.exec,
                named,
            })
        };
        roots.into_iter().filter_map(grant).collect()
    }

    fn known_files(&self) -> Vec<KnownFile> {
        let mut files = Files::default();
        let started = &self.started;
        for stream in &started.streams {
            let file = files.at(stream.id());
            file.stream_read |= stream.read;
            file.stream_write |= stream.write;
        }
        let mut words: BTreeMap<FileId, Word> = BTreeMap::new();
        for program in &started.binaries {
            let word = self.word(program);
            let worst = words.entry(program.id()).or_insert(word);
            *worst = word.max(*worst);
        }
        for (id, word) in words {
            let file = files.at(id);
            file.stream_read = true;
            file.program = word != Word::Never;
            file.arguments = word == Word::ByArguments;
        }
        for socket in &started.sockets {
            files.at(socket.id()).unix = true;
        }
        for file in &started.linked {
            files.at(file.id()).linked = true;
        }
        files.known()
    }

    fn known_hosts(&self) -> Vec<KnownHost> {
        let known = |(address, entry): (IpAddr, &Entry<Host>)| KnownHost {
            address,
            port: entry.value.port,
            protocol: entry.value.protocol.map(|protocol| protocol.number()),
        };
        let mut hosts: Vec<KnownHost> = self.all_hosts().map(known).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

/// By what they are.
#[derive(Default)]
struct Files(BTreeMap<FileId, KnownFile>);

impl Files {
    fn at(&mut self, id: FileId) -> &mut KnownFile {
        let new = || KnownFile { id, ..KnownFile::default() };
        self.0.entry(id).or_insert_with(new)
    }

    /// Without those that have no inode.
    fn known(self) -> Vec<KnownFile> {
        self.0.into_values().filter(|file| file.id.ino != 0).collect()
    }
}
