//! Who did it: the job's processes, known by (pid, start), and their ancestry.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use crate::escape::escape;
use crate::input::{Bytes, Known};

/// Ancestors shown in a record.
const DEEPEST: usize = 64;
/// Ended processes that stay resolvable: children outlive their parents.
const REMEMBERED: usize = 4096;

/// A pid alone is given again to another process; with the start time it is unique.
type Key = (u32, u64);

/// The process object of a record. What is not known is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    pub pid: u32,
    pub ppid: Option<u32>,
    /// Nanoseconds of boot time.
    #[serde(serialize_with = "crate::record::serialize_start")]
    pub start: Option<u64>,
    pub uid: u32,
    /// The thread, where it is not the process's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Escaped bytes, as everywhere in records.
    pub exe: Option<String>,
    pub comm: String,
    /// Parents inside the job, nearest first, at most 64.
    pub ancestry: Vec<Ancestor>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ancestor {
    pub pid: u32,
    pub exe: Option<String>,
    pub comm: String,
}

#[derive(Debug)]
struct Entry {
    ppid: u32,
    parent: Option<Key>,
    exe: Bytes,
    comm: Bytes,
    ended: bool,
}

/// The job's process table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    entries: HashMap<Key, Entry>,
    /// The latest process of each pid.
    current: HashMap<u32, u64>,
    ended: VecDeque<Key>,
}

impl Table {
    /// A process that was there before it was watched.
    pub fn known(&mut self, known: &Known) {
        self.insert(known.pid, known.ppid, known.start, known.exe.clone(), known.comm.clone());
    }

    /// Until it executes, a child runs its parent's program.
    pub fn fork(&mut self, pid: u32, ppid: u32, start: u64, comm: &[u8]) {
        let exe = self.entry(ppid).map(|(_, parent)| parent.exe.clone()).unwrap_or_default();
        self.insert(pid, ppid, start, exe, comm.to_vec());
    }

    pub fn exec(&mut self, pid: u32, ppid: u32, start: u64, exe: &[u8], comm: &[u8]) {
        match self.entries.get_mut(&(pid, start)) {
            Some(entry) => {
                entry.exe = exe.to_vec();
                entry.comm = comm.to_vec();
            }
            None => self.insert(pid, ppid, start, exe.to_vec(), comm.to_vec()),
        }
    }

    pub fn exit(&mut self, pid: u32) {
        if let Some(&start) = self.current.get(&pid) {
            self.end((pid, start));
        }
    }

    /// The process object for something that `pid` did.
    pub fn describe(&self, pid: u32, tid: u32, uid: u32, comm: &[u8]) -> Process {
        let found = self.entry(pid);
        let mut ancestry = Vec::new();
        let mut next = found.and_then(|(_, entry)| entry.parent);
        while let Some(key) = next
            && let Some(entry) = self.entries.get(&key)
            && ancestry.len() < DEEPEST
        {
            let exe = shown(&entry.exe);
            ancestry.push(Ancestor { pid: key.0, exe, comm: escape(&entry.comm) });
            next = entry.parent;
        }
        Process {
            pid,
            ppid: found.map(|(_, entry)| entry.ppid),
            start: found.map(|((_, start), _)| start),
            uid,
            tid: (tid != pid).then_some(tid),
            exe: found.and_then(|(_, entry)| shown(&entry.exe)),
            comm: escape(comm),
            ancestry,
        }
    }

    fn entry(&self, pid: u32) -> Option<(Key, &Entry)> {
        let key = (pid, *self.current.get(&pid)?);
        Some((key, self.entries.get(&key)?))
    }

    fn insert(&mut self, pid: u32, ppid: u32, start: u64, exe: Bytes, comm: Bytes) {
        let key = (pid, start);
        if self.entries.contains_key(&key) {
            return;
        }
        // An end can be lost; a pid that is given again proves it.
        if let Some(&before) = self.current.get(&pid) {
            self.end((pid, before));
        }
        // A parent is older than its child, so that chains cannot be circles.
        let parent = self.entry(ppid).map(|(key, _)| key);
        let parent = parent.filter(|parent| parent.1 <= start && ppid != pid);
        self.entries.insert(key, Entry { ppid, parent, exe, comm, ended: false });
        self.current.insert(pid, start);
    }

    fn end(&mut self, key: Key) {
        match self.entries.get_mut(&key) {
            Some(entry) if !entry.ended => entry.ended = true,
            _ => return,
        }
        self.ended.push_back(key);
        if self.ended.len() > REMEMBERED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.entries.remove(&oldest);
            if self.current.get(&oldest.0) == Some(&oldest.1) {
                self.current.remove(&oldest.0);
            }
        }
    }
}

fn shown(exe: &[u8]) -> Option<String> {
    (!exe.is_empty()).then(|| escape(exe))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pids(process: &Process) -> Vec<u32> {
        process.ancestry.iter().map(|ancestor| ancestor.pid).collect()
    }

    #[test]
    fn children_outlive_their_parents() {
        let mut table = Table::default();
        table.exec(1, 0, 10, b"/bin/sh", b"sh");
        table.fork(2, 1, 20, b"sh");
        table.fork(3, 2, 30, b"sh");
        table.exec(3, 2, 30, b"/bin/cat", b"cat");
        table.exit(2);
        let process = table.describe(3, 3, 0, b"cat");
        assert_eq!(process.exe.as_deref(), Some("/bin/cat"));
        assert_eq!((process.ppid, process.start), (Some(2), Some(30)));
        assert_eq!(pids(&process), [2, 1]);
        assert_eq!(process.ancestry[0].exe.as_deref(), Some("/bin/sh"));
    }

    #[test]
    fn a_pid_given_again_is_another_process() {
        let mut table = Table::default();
        table.exec(1, 0, 10, b"/bin/a", b"a");
        table.fork(2, 1, 20, b"a");
        table.exec(1, 0, 99, b"/bin/b", b"b");
        assert_eq!(table.describe(1, 1, 0, b"b").exe.as_deref(), Some("/bin/b"));
        assert_eq!(table.describe(2, 2, 0, b"a").ancestry[0].exe.as_deref(), Some("/bin/a"));
    }

    #[test]
    fn the_unknown_is_null() {
        let process = Table::default().describe(7, 8, 1, b"x");
        assert_eq!((process.ppid, process.start, process.exe), (None, None, None));
        assert_eq!(process.tid, Some(8));
    }

    #[test]
    fn memory_and_ancestry_are_bounded() {
        let mut table = Table::default();
        for pid in 1..=20_000 {
            table.fork(pid, pid - 1, u64::from(pid), b"x");
            table.exit(pid);
        }
        assert!(table.entries.len() <= REMEMBERED + 1 && table.current.len() <= REMEMBERED + 1);
        assert_eq!(table.describe(20_000, 20_000, 0, b"x").ancestry.len(), DEEPEST);
    }

    #[test]
    fn no_circles() {
        let mut table = Table::default();
        table.exec(1, 2, 5, b"/a", b"a");
        table.exec(2, 1, 5, b"/b", b"b");
        table.exec(1, 2, 5, b"/a", b"a");
        table.fork(3, 3, 5, b"c");
        assert!(table.describe(3, 3, 0, b"c").ancestry.is_empty());
        assert_eq!(pids(&table.describe(2, 2, 0, b"b")), [1]);
    }
}
