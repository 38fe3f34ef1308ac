//! Kernel events: each is brought into the form in which it is written, judged
//! and recorded.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;

use super::{Draft, Job, guests};
use crate::escape::escape;
use crate::input::{
    Bytes, Class, Coverage, Decided, Event, Exec, FileObject, FileOp, Guard, Namespace, NetOp,
    UnixNanos, UnixPeer, What,
};
use crate::judge::{self, Doubt, Finding, Judgement, Origin, Peer, Rule, Tables};
use crate::process::Process;
use crate::record::{self, Action, EnvAction, GuardAction, ProcessAction};
use crate::step::Line;

/// Environment keys remembered of one job.
const KEYS: usize = 65_536;

impl Job {
    pub(super) fn event(&mut self, event: Event, out: &mut Vec<Line>) {
        let Event { ts, pid, tid, uid, comm, kernel, what, .. } = event;
        let who = Who { ts, pid, tid, uid, comm, kernel };
        let acts = self.launched && guests::acts(&what);
        let child =
            if let What::Fork { pid, start, .. } = what { Some((pid, start)) } else { None };
        let exits = matches!(what, What::Exit { .. });
        self.effect(&who, what, out);
        // After the event's own record: replay finds an input in the first
        // record that it gave.
        if acts && let Some(env) = self.guests.acted(who.pid) {
            self.came_with(&who, env, out);
        }
        if let Some((pid, start)) = child {
            self.guests.fork(who.pid, pid, start);
        }
        if exits {
            self.guests.exit(who.pid);
        }
    }

    fn effect(&mut self, who: &Who, what: What, out: &mut Vec<Line>) {
        let known = || Judgement::recorded("processes");
        match what {
            What::Fork { pid, ppid, start } => {
                self.processes.fork(pid, ppid, start, &who.comm);
                self.process_event(
                    who,
                    ProcessAction::Fork,
                    record::fork(pid, ppid, start),
                    known(),
                    out,
                );
            }
            What::Exec(exec) => self.exec(who, exec, out),
            What::Exit { code } => {
                // Bit 7 of wait(2)'s status: the kernel wrote a core file,
                // which passes no hook here.
                let judgement = if code & 0x80 == 0 {
                    known()
                } else {
                    Judgement {
                        rule: Rule::of_every_policy("core-dump"),
                        finding: Finding::RecordedWithDoubt(Doubt::CoreDump),
                    }
                };
                self.process_event(who, ProcessAction::Exit, record::exit(code), judgement, out);
                self.processes.exit(who.pid);
            }
            What::Env { names, complete } => self.env(who, names, complete, out),
            What::File { op, mut object, mut other, coverage } => {
                self.tables.settle(&mut object);
                if let Some(other) = &mut other {
                    self.tables.settle(other);
                }
                self.file(who, op, &object, other.as_ref(), coverage, out);
            }
            What::Net { op, address, port, protocol, own, namespace } => {
                let address = address.to_canonical();
                let peer = Peer { address, port, protocol, own, namespace };
                self.net(who, op, peer, out);
            }
            What::Unix { op, mut peer, own } => {
                if let UnixPeer::File(file) = &mut peer {
                    self.tables.settle(file);
                }
                self.unix(who, op, &peer, own, out);
            }
            What::Guard(guard) => self.guard(who, guard, out),
        }
    }

    fn exec(&mut self, who: &Who, mut exec: Exec, out: &mut Vec<Line>) {
        if exec.asked.is_empty() {
            exec.asked.clone_from(&exec.file.path);
        }
        self.tables.settle(&mut exec.file);
        // What was denied did not become the process. Logs from before this was
        // told apart do not say that such a program's arguments are missing.
        if who.kernel != Some(Decided::Denied) || exec.argv_complete {
            self.guests.exec(who.pid);
            self.processes.exec(who.pid, exec.ppid, exec.start, &exec.file.path, &who.comm);
        }
        let found = judge::exec(&self.tables, &exec);
        let what = found.what.map(|what| format!(" ({what})")).unwrap_or_default();
        self.write(
            Draft {
                ts: who.ts,
                action: Action::Process(ProcessAction::Exec),
                object: record::exec(&self.tables, &exec),
                shown: vec![format!("{}{what}", escape(&exec.file.path))],
                process: Some(self.describe(who)),
                judgement: self.judged(|_| found.judgement),
                kernel: who.kernel,
                coverage: Some(self.tables.started.coverage.exec),
            },
            out,
        );
    }

    fn process_event(
        &mut self,
        who: &Who,
        action: ProcessAction,
        object: Value,
        judgement: Judgement,
        out: &mut Vec<Line>,
    ) {
        let judgement = self.judged(|_| judgement);
        self.write(
            Draft {
                ts: who.ts,
                action: Action::Process(action),
                object,
                shown: Vec::new(),
                process: Some(self.describe(who)),
                judgement,
                kernel: who.kernel,
                coverage: Some(self.tables.started.coverage.exec),
            },
            out,
        );
    }

    fn env(&mut self, who: &Who, names: Vec<Bytes>, complete: bool, out: &mut Vec<Line>) {
        let process = Some(self.describe(who));
        if !self.launched {
            let held = judge::EnvJudgement {
                judgement: Judgement::recorded("setup"),
                outside: Vec::new(),
            };
            self.write_env(who.ts, EnvAction::Hold, process, &names, complete, held, out);
        } else if self.guests.shows_env(who.pid) || self.inherits {
            self.inherited(who.ts, process, names, complete, out);
        } else {
            let new = self.unseen(names, Origin::Made);
            // Nothing new and nothing missing: nothing to say.
            if !new.is_empty() || !complete {
                let found = judge::env(&self.tables, Origin::Made, &new, complete);
                self.write_env(who.ts, EnvAction::Make, process, &new, complete, found, out);
            }
        }
    }

    pub(super) fn inherited(
        &mut self,
        ts: UnixNanos,
        process: Option<Process>,
        names: Vec<Bytes>,
        complete: bool,
        out: &mut Vec<Line>,
    ) {
        self.inherits = false;
        let new = self.unseen(names, Origin::Inherited);
        let found = judge::env(&self.tables, Origin::Inherited, &new, complete);
        self.write_env(ts, EnvAction::Inherit, process, &new, complete, found, out);
    }

    /// What a process that joined brought along, which it still held when it acted.
    fn came_with(&mut self, who: &Who, env: Option<Vec<Bytes>>, out: &mut Vec<Line>) {
        let process = Some(self.describe(who));
        if let Some(names) = env {
            return self.inherited(who.ts, process, names, true, out);
        }
        let mut found = judge::env(&self.tables, Origin::Inherited, &[], false);
        found.judgement.finding = Finding::Doubt(Doubt::EnvUnread);
        self.write_env(who.ts, EnvAction::Inherit, process, &[], false, found, out);
    }

    /// The names not yet judged by this origin or a stricter one, each once,
    /// in order: a key that was made inside before may still not come from
    /// outside.
    fn unseen(&mut self, names: Vec<Bytes>, origin: Origin) -> Vec<Bytes> {
        let mut new = Vec::new();
        let mut once = BTreeSet::new();
        for name in names {
            let seen = self.keys.get(&name);
            let judged = seen.is_some_and(|seen| *seen == origin || *seen == Origin::Inherited);
            if judged || !once.insert(name.clone()) {
                continue;
            }
            // Beyond that, a key is said again each time rather than remembered.
            if seen.is_some() || self.keys.len() < KEYS {
                self.keys.insert(name.clone(), origin);
            }
            new.push(name);
        }
        new
    }

    #[expect(clippy::too_many_arguments, reason = "one record's parts, named by its three callers")]
    fn write_env(
        &mut self,
        ts: UnixNanos,
        action: EnvAction,
        process: Option<Process>,
        names: &[Bytes],
        complete: bool,
        found: judge::EnvJudgement,
        out: &mut Vec<Line>,
    ) {
        let shown: Vec<String> = found.outside.iter().map(|name| escape(name)).collect();
        self.write(
            Draft {
                ts,
                action: Action::Env(action),
                object: record::env(names, &found.outside, complete),
                shown,
                process,
                judgement: found.judgement,
                // Only user space looks at keys.
                kernel: None,
                coverage: Some(self.tables.started.coverage.env),
            },
            out,
        );
    }

    fn file(
        &mut self,
        who: &Who,
        op: FileOp,
        object: &FileObject,
        other: Option<&FileObject>,
        coverage: Coverage,
        out: &mut Vec<Line>,
    ) {
        let judgement = self.judged(|tables| judge::file(tables, who.pid, op, object, other));
        if self.launched && coverage < self.tables.started.min_coverage {
            self.tally.doubt(&Doubt::Coverage(Class::File));
        }
        let mut shown = escape(&object.path);
        if let Some(other) = other {
            shown = format!("{shown} -> {}", escape(&other.path));
        }
        self.write(
            Draft {
                ts: who.ts,
                action: Action::File(op),
                object: record::file(&self.tables, op, object, other),
                shown: vec![shown],
                process: Some(self.describe(who)),
                judgement,
                kernel: who.kernel,
                coverage: Some(coverage),
            },
            out,
        );
    }

    fn net(&mut self, who: &Who, op: NetOp, peer: Peer, out: &mut Vec<Line>) {
        let mut name = None;
        let judgement = self.judged(|tables| {
            let found = judge::net(tables, op, peer);
            name = found.name;
            found.judgement
        });
        let object = record::net(&self.tables, op, name.as_deref(), peer);
        let named = name.map(|name| format!(" ({name})")).unwrap_or_default();
        let address = SocketAddr::new(peer.address, peer.port);
        let place = match peer.namespace {
            Namespace::Own => "",
            Namespace::Foreign => " in a network namespace that is not the job's",
            Namespace::Unknown => " in a network namespace that may not be the job's",
        };
        let shown = format!("{} {address}{named}{place}", record::protocol_name(peer.protocol));
        self.socket(who, op, object, shown, judgement, out);
    }

    fn unix(&mut self, who: &Who, op: NetOp, peer: &UnixPeer, own: bool, out: &mut Vec<Line>) {
        let judgement = self.judged(|tables| judge::unix(tables, peer, own));
        let shown = match peer {
            UnixPeer::File(file) => format!("unix {}", escape(&file.path)),
            UnixPeer::Abstract(name) => format!("unix @{}", escape(name)),
            UnixPeer::Unnamed => "unix".to_owned(),
        };
        let object = record::unix(&self.tables, op, peer, own);
        self.socket(who, op, object, shown, judgement, out);
    }

    fn socket(
        &mut self,
        who: &Who,
        op: NetOp,
        object: Value,
        shown: String,
        judgement: Judgement,
        out: &mut Vec<Line>,
    ) {
        self.write(
            Draft {
                ts: who.ts,
                action: Action::Net(op),
                object,
                shown: vec![shown],
                process: Some(self.describe(who)),
                judgement,
                kernel: who.kernel,
                coverage: Some(self.tables.started.coverage.net),
            },
            out,
        );
    }

    fn guard(&mut self, who: &Who, mut guard: Guard, out: &mut Vec<Line>) {
        match &mut guard {
            Guard::Entered { process, .. } => self.processes.known(process),
            Guard::Reached { object: Some(object), .. } => self.tables.settle(object),
            _ => {}
        }
        let shown = shown(&guard);
        let judgement = self.judged(|tables| judge::guard(tables, &guard));
        self.write(
            Draft {
                ts: who.ts,
                action: Action::Guard(GuardAction::of_kernel(&guard)),
                object: record::guard(&self.tables, &guard),
                shown: vec![shown],
                process: Some(self.describe(who)),
                judgement,
                kernel: who.kernel,
                coverage: None,
            },
            out,
        );
        if let Guard::Entered { process, env } = guard {
            self.guests.enter(process.pid, process.start, env);
        }
    }

    /// What came before the launch was the observer's own setup.
    fn judged(&self, judge: impl FnOnce(&Tables) -> Judgement) -> Judgement {
        if self.launched { judge(&self.tables) } else { Judgement::recorded("setup") }
    }

    fn describe(&self, who: &Who) -> Process {
        self.processes.describe(who.pid, who.tid, who.uid, &who.comm)
    }
}

/// What a violation's line says of it.
fn shown(guard: &Guard) -> String {
    match guard {
        Guard::Escaped { pid } => format!("process {pid}"),
        Guard::Socket { family, kind, protocol } => {
            format!("socket of family {family}, type {kind}, protocol {protocol}")
        }
        Guard::Reached { reach, detail, pid, object } => {
            let of = match object {
                Some(object) => format!(" {}", escape(&object.path)),
                None if *pid != 0 => format!(" process {pid}"),
                None => String::new(),
            };
            format!("{} {detail}{of}", reach.name())
        }
        Guard::IoUring
        | Guard::CompatSyscall { .. }
        | Guard::Entered { .. }
        | Guard::Unknown { .. } => String::new(),
    }
}

/// Whose event it is.
struct Who {
    ts: UnixNanos,
    pid: u32,
    tid: u32,
    uid: u32,
    comm: Bytes,
    kernel: Option<Decided>,
}
