//! What happened, in order: equal effects of a program that lie close together
//! are one entry.

use std::collections::{BTreeSet, VecDeque};

use super::record::Record;
use super::words::{object_short, program_of};
use crate::time;

/// Entries that are open at once.
const OPEN: usize = 1024;
/// Processes that are counted one by one in an entry.
const COUNTED: usize = 1024;

/// Effects of one program of the same class, action and judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub job: String,
    /// Times as records write them.
    pub first: String,
    pub last: String,
    /// Number of the first record.
    pub seq: u64,
    pub program: String,
    pub class: String,
    pub action: String,
    pub decision: String,
    pub within: bool,
    pub rule: String,
    /// What the first one was about, in words.
    pub object: String,
    /// The directory that all of the paths lie in; empty where there is none.
    pub below: String,
    pub count: u64,
    pids: BTreeSet<(u32, Option<u64>)>,
    /// Unix time in nanoseconds.
    begins: u64,
}

/// Groups a log's effects; give it records in order, take entries out.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Effects of a group are less than this apart from its first, nanoseconds.
    window: u64,
    open: VecDeque<Group>,
}

impl Timeline {
    pub fn new(window: u64) -> Self {
        Timeline { window, open: VecDeque::new() }
    }

    /// The entries that nothing more can join, in the order of their begin.
    pub fn add(&mut self, record: &Record<'_>) -> Vec<Group> {
        let now = time::parse(&record.ts).unwrap_or_default();
        let mut done = Vec::new();
        let over = |group: &Group| now >= group.begins.saturating_add(self.window);
        while self.open.front().is_some_and(over) || self.open.len() >= OPEN {
            done.extend(self.open.pop_front());
        }
        let program = program_of(record);
        // What the observer says stands for itself, and ends what was before.
        if record.process.is_none() {
            done.extend(self.open.drain(..));
        } else {
            // What is outside the policy is told one by one.
            let object = (!record.within).then(|| object_short(record));
            let takes = |group: &&mut Group| group.takes(record, program, object.as_deref());
            if let Some(group) = self.open.iter_mut().rev().find(takes) {
                group.join(record);
                return done;
            }
        }
        self.open.push_back(Group::new(record, program, now));
        done
    }

    /// What is left.
    pub fn end(&mut self) -> Vec<Group> {
        self.open.drain(..).collect()
    }
}

impl Group {
    fn new(record: &Record<'_>, program: &str, begins: u64) -> Group {
        let mut group = Group {
            job: record.job.to_string(),
            first: record.ts.to_string(),
            last: record.ts.to_string(),
            seq: record.seq,
            program: program.to_owned(),
            class: record.class.to_string(),
            action: record.action.to_string(),
            decision: record.decision.to_string(),
            within: record.within,
            rule: record.rule.name.to_string(),
            object: object_short(record),
            below: record.paths().next().map(directory).unwrap_or_default().to_owned(),
            count: 1,
            pids: BTreeSet::new(),
            begins,
        };
        group.by(record);
        group
    }

    /// Processes that the effects are of; `None` when they are too many.
    pub fn processes(&self) -> Option<usize> {
        (self.pids.len() < COUNTED).then_some(self.pids.len())
    }

    /// The process, where it is one.
    pub fn pid(&self) -> Option<u32> {
        match self.pids.len() {
            1 => self.pids.first().map(|(pid, _)| *pid),
            _ => None,
        }
    }

    /// Whether it is of the same, and, where that is told apart, of one object.
    fn takes(&self, record: &Record<'_>, program: &str, object: Option<&str>) -> bool {
        self.class == *record.class
            && self.action == *record.action
            && self.within == record.within
            && self.decision == *record.decision
            && self.program == program
            && object.is_none_or(|object| self.rule == *record.rule.name && self.object == object)
    }

    fn join(&mut self, record: &Record<'_>) {
        self.count += 1;
        if self.last.as_str() < &*record.ts {
            self.last = record.ts.to_string();
        }
        let path = record.paths().next().map(directory).unwrap_or_default();
        let common = common(&self.below, path).len();
        self.below.truncate(common);
        self.by(record);
    }

    fn by(&mut self, record: &Record<'_>) {
        if let Some(process) = &record.process
            && self.pids.len() < COUNTED
        {
            self.pids.insert((process.pid, process.start.number()));
        }
    }
}

/// The directory that a path is in.
fn directory(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) => "/",
        Some(at) => &path[..at],
        None => "",
    }
}

/// The longest path that both are, or lie below.
fn common<'a>(left: &'a str, right: &str) -> &'a str {
    let mut end = 0;
    for (at, name) in left.split('/').zip(right.split('/')).scan(0, |from, (name, other)| {
        let at = *from;
        *from += name.len() + 1;
        (name == other).then_some((at, name))
    }) {
        end = at + name.len();
    }
    let both = |path: &str| path.starts_with('/');
    if end == 0 && both(left) && both(right) { "/" } else { &left[..end] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::difference::tests::line;
    use super::*;

    #[test]
    fn common_directories() {
        for (left, right, both) in [
            ("/a/b", "/a/b", "/a/b"),
            ("/a/b", "/a/bc", "/a"),
            ("/a", "/b", "/"),
            ("/", "/b", "/"),
            ("", "/b", ""),
            ("/a/b/c", "/a/b", "/a/b"),
        ] {
            assert_eq!(common(left, right), both, "{left} {right}");
        }
    }

    fn groups(effects: &[(u64, u32, &str, &str)], window: u64) -> Vec<(String, u64, String)> {
        let mut timeline = Timeline::new(window);
        let mut groups = Vec::new();
        for (at, pid, action, path) in effects {
            let process = json!({"ancestry": [], "comm": "c", "exe": "/bin/c", "pid": pid,
                "ppid": 1, "start": 1, "uid": 0});
            let line = line(*at, "file", action, &json!({ "path": path }), &process);
            groups.extend(timeline.add(&Record::of(&line).expect("a record")));
        }
        groups.extend(timeline.end());
        groups.into_iter().map(|group| (group.action, group.count, group.below)).collect()
    }

    #[test]
    fn equal_effects_that_are_close_are_one_entry() {
        let effects = [
            (0, 1, "create", "/a/b/x"),
            (1, 1, "unlink", "/a/x"),
            (2, 2, "create", "/a/c/y"),
            (9, 1, "create", "/z"),
        ];
        let text = |word: &str| word.to_owned();
        assert_eq!(
            groups(&effects, 5),
            [
                (text("create"), 2, text("/a")),
                (text("unlink"), 1, text("/a")),
                (text("create"), 1, text("/"))
            ]
        );
        assert_eq!(groups(&effects, 1).len(), 4);
        let total: u64 = groups(&effects, 100).iter().map(|(_, count, _)| count).sum();
        assert_eq!(total, 4);
    }
}
