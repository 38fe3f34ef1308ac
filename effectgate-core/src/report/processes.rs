//! Who did it: the job's processes as a tree, with what each ran and how much
//! it did.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use serde_json::Value;

use crate::input::UnixNanos;
use crate::record::{Action, GuardAction, ProcessAction, read_number};

/// Processes that are kept; what those beyond did is their ancestor's.
const MOST: usize = 20_000;
/// Of a process's arguments, as they are kept, bytes.
const LONGEST: usize = 400;

/// Processes, each behind the one that started it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Processes {
    pub all: Vec<Process>,
}

/// A process, known by its number and its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    pub pid: u64,
    /// Nanoseconds of boot time; `None` where it was not seen to start.
    #[serde(serialize_with = "crate::record::serialize_start")]
    pub start: Option<u64>,
    /// The index of the process that started it, inside the job.
    pub parent: Option<usize>,
    pub exe: String,
    pub comm: String,
    /// Of its last program; cut off when it is long.
    pub argv: Vec<String>,
    pub argv_cut: bool,
    /// Of its first and its last record.
    #[serde(serialize_with = "super::moment")]
    pub first: UnixNanos,
    #[serde(serialize_with = "super::moment")]
    pub last: UnixNanos,
    /// As `wait(2)` gives it.
    pub status: Option<u64>,
    /// Records of it, but for forks and its end.
    pub effects: u64,
    /// Records that speak of a violation.
    pub violations: u64,
    /// Processes that it started and that are not kept.
    pub unlisted: u64,
}

/// The number, and the start where it is known.
type Key = (u64, Option<u64>);

#[derive(Debug, Default)]
pub(super) struct Recorder {
    all: Vec<Process>,
    index: HashMap<Key, usize>,
    /// The latest process of each number.
    current: HashMap<u64, Key>,
    /// Processes that are not kept, and count as the one that started them;
    /// the oldest of too many is forgotten.
    strays: VecDeque<Key>,
}

impl Recorder {
    /// Processes that were in the job before it was watched.
    pub fn there_before(&mut self, list: &Value) {
        for known in list.as_array().into_iter().flatten() {
            self.known(known, 0);
        }
    }

    pub fn take(&mut self, ts: UnixNanos, action: Action, record: &Value, outside: bool) {
        let object = &record["object"];
        if action == Action::Guard(GuardAction::Entered) {
            self.known(&object["entered"], ts);
        }
        let Some((key, at)) = self.actor(&record["process"], ts) else { return };
        let process = &mut self.all[at];
        let is_kept = (process.pid, process.start) == key;
        process.violations += u64::from(outside);
        if is_kept {
            process.last = process.last.max(ts);
            if let Some(comm) = record["process"]["comm"].as_str() {
                comm.clone_into(&mut process.comm);
            }
        }
        match action {
            Action::Process(ProcessAction::Fork) => {
                let (exe, comm) = (process.exe.clone(), process.comm.clone());
                let pid = object["pid"].as_u64().unwrap_or_default();
                self.add((pid, read_number(&object["start"])), Some(at), &exe, &comm, ts);
            }
            Action::Process(ProcessAction::Exec) => {
                process.effects += 1;
                if is_kept && super::ran(record) {
                    let ran = object["interpreter"].as_str().or_else(|| object["path"].as_str());
                    ran.unwrap_or_default().clone_into(&mut process.exe);
                    (process.argv, process.argv_cut) = arguments(&object["argv"]);
                }
            }
            Action::Process(ProcessAction::Exit) => {
                if is_kept {
                    process.status = object["code"].as_u64();
                }
            }
            _ => process.effects += 1,
        }
    }

    fn actor(&mut self, process: &Value, ts: UnixNanos) -> Option<(Key, usize)> {
        let pid = process["pid"].as_u64()?;
        let key = (pid, read_number(&process["start"]));
        let text = |key: &str| process[key].as_str().unwrap_or_default();
        let parent = process["ppid"].as_u64().and_then(|ppid| self.latest(ppid));
        Some((key, self.add(key, parent, text("exe"), text("comm"), ts)))
    }

    fn known(&mut self, known: &Value, ts: UnixNanos) {
        let Some(pid) = known["pid"].as_u64() else { return };
        let text = |key: &str| known[key].as_str().unwrap_or_default();
        let parent = known["ppid"].as_u64().and_then(|ppid| self.latest(ppid));
        self.add((pid, read_number(&known["start"])), parent, text("exe"), text("comm"), ts);
    }

    fn latest(&self, pid: u64) -> Option<usize> {
        self.index.get(self.current.get(&pid)?).copied()
    }

    /// The index under which a process is kept.
    fn add(
        &mut self,
        key: Key,
        parent: Option<usize>,
        exe: &str,
        comm: &str,
        ts: UnixNanos,
    ) -> usize {
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        let at = if self.all.len() < MOST {
            self.all.push(Process {
                pid: key.0,
                start: key.1,
                parent,
                exe: exe.to_owned(),
                comm: comm.to_owned(),
                first: ts,
                last: ts,
                ..Process::default()
            });
            self.all.len() - 1
        } else {
            let at = parent.unwrap_or_default();
            self.all[at].unlisted += 1;
            self.strays.push_back(key);
            self.forget();
            at
        };
        self.index.insert(key, at);
        self.current.insert(key.0, key);
        at
    }

    fn forget(&mut self) {
        if self.strays.len() > MOST
            && let Some(oldest) = self.strays.pop_front()
        {
            self.index.remove(&oldest);
            if self.current.get(&oldest.0) == Some(&oldest) {
                self.current.remove(&oldest.0);
            }
        }
    }

    pub fn finish(self) -> Processes {
        Processes { all: self.all }
    }
}

/// As many as there is room for, and whether something was left out.
fn arguments(argv: &Value) -> (Vec<String>, bool) {
    let mut room = LONGEST;
    let mut kept = Vec::new();
    for argument in argv.as_array().into_iter().flatten().filter_map(Value::as_str) {
        if argument.len() > room {
            let mut end = room;
            while !argument.is_char_boundary(end) {
                end -= 1;
            }
            kept.push(argument[..end].to_owned());
            return (kept, true);
        }
        room -= argument.len();
        kept.push(argument.to_owned());
    }
    (kept, false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::FileOp;

    #[test]
    fn what_is_not_kept_counts_as_who_started_it() {
        let mut recorder = Recorder::default();
        let count = MOST as u64 + 500;
        let process =
            |pid: u64| json!({ "pid": pid, "ppid": 1, "start": pid, "comm": "cc", "exe": "/cc" });
        for pid in 1..=count {
            let fork = json!({
                "process": process(1),
                "object": { "pid": pid + 1, "ppid": 1, "start": pid + 1 },
            });
            recorder.take(pid, Action::Process(ProcessAction::Fork), &fork, false);
            let write = json!({ "process": process(pid + 1), "object": {} });
            recorder.take(pid, Action::File(FileOp::Create), &write, pid == count);
            let exit = json!({ "process": process(pid + 1), "object": { "code": 256 } });
            recorder.take(pid, Action::Process(ProcessAction::Exit), &exit, false);
        }
        let all = recorder.finish().all;
        assert_eq!(all.len(), MOST);
        assert_eq!(all.iter().map(|process| process.effects).sum::<u64>(), count);
        assert_eq!((all[0].unlisted, all[0].violations), (501, 1));
        assert_eq!((all[0].status, all[1].status), (None, Some(256)), "its own end, not another's");
        assert!(
            all.iter().enumerate().all(|(at, process)| process.parent.is_none_or(|it| it < at))
        );
    }
}
