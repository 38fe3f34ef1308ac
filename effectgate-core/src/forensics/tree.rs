//! A job's processes and what each of them did.

use std::collections::{BTreeMap, HashMap};

use super::record::{Known, Record, Text};

/// Processes that are listed of one job; more are counted.
const LISTED: usize = 100_000;
/// Bytes of arguments that are kept of each.
const ARGUMENTS: usize = 4096;

/// A job's processes, in the order in which they were first heard of.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub job: String,
    nodes: Vec<Node>,
    index: HashMap<(u32, u64), usize>,
    /// The latest process of each pid.
    current: HashMap<u32, usize>,
    /// What processes beyond the listed ones did, and what the observer said.
    pub elsewhere: BTreeMap<String, u64>,
    /// Processes beyond those that are listed.
    pub unlisted: u64,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub pid: u32,
    /// Boot time in nanoseconds; `None` where it is not known.
    pub start: Option<u64>,
    /// Number among the tree's nodes.
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    /// The last program that it ran, escaped.
    pub exe: String,
    pub comm: String,
    /// Those of its last exec, as the record has them.
    pub argv: Vec<String>,
    /// There were more.
    pub argv_cut: bool,
    /// Times as records write them: when it was first and last heard of.
    pub first: String,
    pub last: String,
    /// As wait(2) gives it.
    pub exit: Option<u32>,
    /// Effects that were asked about, by class.
    pub counts: BTreeMap<String, u64>,
    /// Of them outside the policy.
    pub outside: u64,
    /// Of them denied, or paid for with the process's life.
    pub stopped: u64,
}

impl Tree {
    /// Every record of the job in order; `asked` says whether the question is
    /// about this one.
    pub fn add(&mut self, record: &Record<'_>, asked: bool) {
        if self.job.is_empty() {
            self.job = record.job.to_string();
        }
        let object = &record.object;
        for known in object.processes.iter().chain(&object.entered) {
            self.known(known, record);
        }
        let Some(process) = &record.process else {
            if asked {
                *self.elsewhere.entry(record.class.to_string()).or_default() += 1;
            }
            return;
        };
        let parent = process.ancestry.first().map(|parent| parent.pid).or(process.ppid);
        let at = self.node(process.pid, process.start.number(), parent, record);
        let Some(node) = at.and_then(|at| self.nodes.get_mut(at)) else {
            if asked {
                *self.elsewhere.entry(record.class.to_string()).or_default() += 1;
            }
            return;
        };
        node.exe = process.exe.as_deref().unwrap_or_default().to_owned();
        node.comm = process.comm.to_string();
        if asked {
            *node.counts.entry(record.class.to_string()).or_default() += 1;
            node.outside += u64::from(!record.within);
            node.stopped += u64::from(matches!(&*record.decision, "denied" | "killed"));
        }
        match (&*record.class, &*record.action) {
            ("exec", "exec") if &*record.decision != "denied" => {
                let mut left = ARGUMENTS;
                let fits = |argument: &&Text<'_>| {
                    left = left.saturating_sub(argument.len() + 1);
                    left > 0
                };
                node.argv = object.argv.iter().take_while(fits).map(ToString::to_string).collect();
                node.argv_cut = node.argv.len() < object.argv.len();
            }
            ("exec", "exit") => node.exit = object.code,
            ("exec", "fork") => {
                let (exe, comm) = (node.exe.clone(), node.comm.clone());
                if let Some(pid) = object.pid
                    && let Some(at) = self.node(pid, object.start.number(), object.ppid, record)
                {
                    let child = &mut self.nodes[at];
                    if child.exe.is_empty() {
                        (child.exe, child.comm) = (exe, comm);
                    }
                }
            }
            _ => {}
        }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Numbers of the processes whose parents are not in the tree.
    pub fn roots(&self) -> impl Iterator<Item = usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.parent.is_none()).map(|(at, _)| at)
    }

    /// For each process whether it, or one below it, did something that was
    /// asked about.
    pub fn busy(&self) -> Vec<bool> {
        let mut busy: Vec<bool> = self.nodes.iter().map(|node| !node.counts.is_empty()).collect();
        // Parents come before their children.
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                busy[parent] |= busy[at];
            }
        }
        busy
    }

    fn known(&mut self, known: &Known<'_>, record: &Record<'_>) {
        if let Some(at) = self.node(known.pid, known.start.number(), Some(known.ppid), record) {
            let node = &mut self.nodes[at];
            (node.exe, node.comm) = (known.exe.to_string(), known.comm.to_string());
        }
    }

    fn node(
        &mut self,
        pid: u32,
        start: Option<u64>,
        parent: Option<u32>,
        record: &Record<'_>,
    ) -> Option<usize> {
        let known = match start {
            Some(start) => self.index.get(&(pid, start)),
            None => self.current.get(&pid),
        };
        if let Some(at) = known.copied() {
            if self.nodes[at].last.as_str() < &*record.ts {
                self.nodes[at].last = record.ts.to_string();
            }
            return Some(at);
        }
        if self.nodes.len() == LISTED {
            self.unlisted += u64::from(!self.current.contains_key(&pid));
            return None;
        }
        let at = self.nodes.len();
        let parent = parent.and_then(|pid| self.current.get(&pid).copied());
        self.nodes.push(Node {
            pid,
            start,
            parent,
            first: record.ts.to_string(),
            last: record.ts.to_string(),
            ..Node::default()
        });
        if let Some(parent) = parent {
            self.nodes[parent].children.push(at);
        }
        self.current.insert(pid, at);
        if let Some(start) = start {
            self.index.insert((pid, start), at);
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::difference::tests::line;
    use super::*;

    fn process(pid: u32, start: u64, ppid: u32) -> Value {
        json!({"ancestry": [], "comm": "c", "exe": format!("/bin/{pid}"), "pid": pid, "ppid": ppid,
            "start": start, "uid": 0})
    }

    fn tree(lines: &[(&str, &str, Value, Value)]) -> Tree {
        let mut tree = Tree::default();
        for (seq, (class, action, object, process)) in lines.iter().enumerate() {
            let line = line(seq as u64, class, action, object, process);
            let record = Record::of(&line).expect("a record");
            tree.add(&record, *class == "file");
        }
        tree
    }

    #[test]
    fn a_pid_that_is_given_again_is_another_process() {
        let fork = |pid, start| {
            ("exec", "fork", json!({"pid": pid, "ppid": 1, "start": start}), process(1, 5, 0))
        };
        let file = |pid, start| ("file", "create", json!({"path": "/a"}), process(pid, start, 1));
        let tree = tree(&[
            fork(2, 10),
            file(2, 10),
            ("exec", "exit", json!({"code": 256}), process(2, 10, 1)),
            fork(2, 20),
            file(2, 20),
            file(2, 20),
        ]);
        let nodes = tree.nodes();
        assert_eq!(nodes.len(), 3);
        assert_eq!(tree.roots().collect::<Vec<_>>(), [0]);
        assert_eq!(nodes[0].children, [1, 2]);
        assert_eq!((nodes[1].counts["file"], nodes[2].counts["file"]), (1, 2));
        assert_eq!((nodes[1].exit, nodes[2].exit), (Some(256), None));
        assert_eq!(tree.busy(), [true, true, true]);
    }

    #[test]
    fn a_parent_that_was_never_seen_leaves_a_root() {
        let tree = tree(&[("file", "create", json!({"path": "/a"}), process(7, 1, 6))]);
        assert_eq!(tree.roots().count(), 1);
        assert_eq!(tree.nodes()[0].exe, "/bin/7");
    }
}
