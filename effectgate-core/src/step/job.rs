//! One job from its start to its verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::Value;

use crate::chain::{self, Chain};
use crate::input::{
    Bytes, Class, Coverage, Event, Exit, FileObject, FileOp, Guard, Input, JobId, NetOp, Notice,
    RootMatch, Stage, Started, UnixNanos, What,
};
use crate::judge::{self, Doubt, Finding, Judgement, Listeners, Origin, Rule};
use crate::process::{Process, Table};
use crate::record::{self, Record};
use crate::redact;
use crate::step::Line;
use crate::verdict::{Tally, Verdict, Violation};

#[derive(Debug)]
pub(super) struct Job {
    started: Started,
    chain: Chain,
    processes: Table,
    listeners: Listeners,
    /// Keys already seen in the job.
    keys: BTreeSet<Bytes>,
    /// The next environment is the one that was given from outside.
    inherits: bool,
    canary: bool,
    launched: bool,
    tally: Tally,
}

/// A record in the making.
struct Draft {
    ts: UnixNanos,
    class: Class,
    action: &'static str,
    object: Value,
    /// The object in a violation's line.
    shown: String,
    process: Option<Process>,
    judgement: Judgement,
    coverage: Option<Coverage>,
}

impl Job {
    pub fn open(mut started: Started, out: &mut Vec<Line>) -> Job {
        tidy(&mut started);
        let mut job = Job {
            chain: Chain::new(chain::genesis(&started)),
            processes: Table::default(),
            listeners: Listeners::new(),
            keys: BTreeSet::new(),
            inherits: true,
            canary: false,
            launched: false,
            tally: Tally::default(),
            started,
        };
        for known in &job.started.processes {
            job.processes.known(known);
        }
        let object = record::opening(&job.started);
        job.write(own(job.started.ts, "start", object, Finding::Recorded), out);
        job.doubt_coverage();
        if !job.started.env.is_empty() {
            let names = job.started.env.clone();
            let ts = job.started.ts;
            job.inherited(ts, None, names, true, out);
        }
        job
    }

    /// False when the input changes nothing.
    pub fn take(&mut self, input: Input, out: &mut Vec<Line>) -> bool {
        match input {
            Input::Canary { ts, seen, missing, .. } => self.canary(ts, &seen, &missing, out),
            Input::Launched { ts, .. } => return self.launch(ts, out),
            Input::Event(event) => self.event(event, out),
            Input::Gap { ts, stage, lost, .. } => self.gap(ts, stage, lost, out),
            Input::Notice { ts, notice, .. } => self.notice(ts, &notice, out),
            Input::Started(_) | Input::Finished { .. } => return false,
        }
        true
    }

    pub fn close(mut self, ts: UnixNanos, exit: Option<Exit>, out: &mut Vec<Line>) -> Verdict {
        if !self.launched {
            self.tally.doubt(&Doubt::NeverLaunched);
        }
        // The closing record counts itself: counts and records must agree.
        self.tally.count(Class::Guard, judge::Decision::Recorded);
        let mut verdict = std::mem::take(&mut self.tally).close(&self.started, ts, exit);
        let object = record::closing(&verdict, exit);
        self.write(own(ts, "verdict", object, Finding::Recorded), out);
        verdict.log.records = self.chain.next;
        verdict.log.head.clone_from(&self.chain.head);
        verdict
    }

    fn doubt_coverage(&mut self) {
        let (coverage, least) = (self.started.coverage, self.started.min_coverage);
        for (class, has) in [
            (Class::File, coverage.file),
            (Class::Exec, coverage.exec),
            (Class::Env, coverage.env),
            (Class::Net, coverage.net),
        ] {
            if has < least {
                self.tally.doubt(&Doubt::Coverage(class));
            }
        }
    }

    fn canary(&mut self, ts: UnixNanos, seen: &[Class], missing: &[Class], out: &mut Vec<Line>) {
        self.canary = true;
        for class in missing {
            self.tally.doubt(&Doubt::CanaryMissed(*class));
        }
        self.write(own(ts, "canary", record::canary(seen, missing), Finding::Recorded), out);
    }

    fn launch(&mut self, ts: UnixNanos, out: &mut Vec<Line>) -> bool {
        if self.launched {
            return false;
        }
        self.launched = true;
        let finding = match self.canary {
            true => Finding::Recorded,
            false => Finding::RecordedWithDoubt(Doubt::NoCanary),
        };
        let object = serde_json::json!({ "what": "the command is about to start" });
        self.write(own(ts, "launch", object, finding), out);
        true
    }

    fn gap(&mut self, ts: UnixNanos, stage: Stage, lost: Vec<(Class, u64)>, out: &mut Vec<Line>) {
        let mut sums: BTreeMap<Class, u64> = BTreeMap::new();
        for (class, count) in lost {
            let sum = sums.entry(class).or_default();
            *sum = sum.saturating_add(count);
        }
        self.tally.lost(&sums);
        self.write(own(ts, "gap", record::gap(stage, &sums), Finding::Recorded), out);
    }

    fn notice(&mut self, ts: UnixNanos, notice: &Notice, out: &mut Vec<Line>) {
        let (action, finding) = match notice {
            Notice::Leftovers { .. } => ("leftovers", Finding::Recorded),
            // What the job would still have done is not known.
            Notice::Stopped { why } => {
                ("stopped", Finding::RecordedWithDoubt(Doubt::Stopped(why.clone())))
            }
            Notice::CanaryFailed { why } => {
                ("canary_failed", Finding::RecordedWithDoubt(Doubt::CanaryFailed(why.clone())))
            }
        };
        self.write(own(ts, action, record::notice(notice), finding), out);
    }

    fn event(&mut self, event: Event, out: &mut Vec<Line>) {
        let Event { ts, pid, tid, uid, comm, what, .. } = event;
        let who = Who { ts, pid, tid, uid, comm };
        match what {
            What::Fork { pid, ppid, start } => {
                self.processes.fork(pid, ppid, start, &who.comm);
                self.process_event(&who, "fork", record::fork(pid, ppid, start), out);
            }
            What::Exec(mut exec) => {
                exec.argv = redact::argv(&exec.argv);
                settle(&self.started, &mut exec.file);
                self.processes.exec(who.pid, exec.ppid, exec.start, &exec.file.path, &who.comm);
                self.process_event(&who, "exec", record::exec(&self.started, &exec), out);
            }
            What::Exit { code } => {
                self.process_event(&who, "exit", record::exit(code), out);
                self.processes.exit(who.pid);
            }
            What::Env { names, complete } => self.env(&who, names, complete, out),
            What::File { op, mut object, mut other, coverage } => {
                settle(&self.started, &mut object);
                if let Some(other) = &mut other {
                    settle(&self.started, other);
                }
                self.file(&who, op, &object, other.as_ref(), coverage, out);
            }
            What::Net { op, address, port, protocol } => {
                self.net(&who, op, address.to_canonical(), port, protocol, out);
            }
            What::Guard(guard) => self.guard(&who, &guard, out),
        }
    }

    fn process_event(
        &mut self,
        who: &Who,
        action: &'static str,
        object: Value,
        out: &mut Vec<Line>,
    ) {
        let judgement = self.judged(|_| Judgement::recorded("processes"));
        self.write(
            Draft {
                ts: who.ts,
                class: Class::Exec,
                action,
                object,
                shown: String::new(),
                process: Some(self.describe(who)),
                judgement,
                coverage: Some(self.started.coverage.exec),
            },
            out,
        );
    }

    fn env(&mut self, who: &Who, names: Vec<Bytes>, complete: bool, out: &mut Vec<Line>) {
        let names: Vec<Bytes> = names.iter().map(|name| redact::text(name)).collect();
        let process = Some(self.describe(who));
        if !self.launched {
            let held = judge::EnvJudgement {
                judgement: Judgement::recorded("setup"),
                outside: Vec::new(),
            };
            self.write_env(who.ts, "hold", process, &names, complete, held, out);
        } else if self.inherits {
            self.inherited(who.ts, process, names, complete, out);
        } else {
            let new = self.unseen(names);
            // Nothing new and nothing missing: nothing to say.
            if !new.is_empty() || !complete {
                let found = judge::env(&self.started, Origin::Made, &new, complete);
                self.write_env(who.ts, "make", process, &new, complete, found, out);
            }
        }
    }

    fn inherited(
        &mut self,
        ts: UnixNanos,
        process: Option<Process>,
        names: Vec<Bytes>,
        complete: bool,
        out: &mut Vec<Line>,
    ) {
        self.inherits = false;
        let new = self.unseen(names);
        let found = judge::env(&self.started, Origin::Inherited, &new, complete);
        self.write_env(ts, "inherit", process, &new, complete, found, out);
    }

    /// The names that no process of the job held before, each once, in order.
    fn unseen(&mut self, names: Vec<Bytes>) -> Vec<Bytes> {
        names.into_iter().filter(|name| self.keys.insert(name.clone())).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "one record's parts, named by its three callers")]
    fn write_env(
        &mut self,
        ts: UnixNanos,
        action: &'static str,
        process: Option<Process>,
        names: &[Bytes],
        complete: bool,
        found: judge::EnvJudgement,
        out: &mut Vec<Line>,
    ) {
        let shown: Vec<String> =
            found.outside.iter().map(|name| crate::escape::escape(name)).collect();
        self.write(
            Draft {
                ts,
                class: Class::Env,
                action,
                object: record::env(names, &found.outside, complete),
                shown: shown.join(" "),
                process,
                judgement: found.judgement,
                coverage: Some(self.started.coverage.env),
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
        let judgement = self.judged(|started| judge::file(started, who.pid, op, object, other));
        if self.launched && coverage < self.started.min_coverage {
            self.tally.doubt(&Doubt::Coverage(Class::File));
        }
        let mut shown = crate::escape::escape(&object.path);
        if let Some(other) = other {
            shown = format!("{shown} -> {}", crate::escape::escape(&other.path));
        }
        self.write(
            Draft {
                ts: who.ts,
                class: Class::File,
                action: op.name(),
                object: record::file(&self.started, op, object, other),
                shown,
                process: Some(self.describe(who)),
                judgement,
                coverage: Some(coverage),
            },
            out,
        );
    }

    fn net(
        &mut self,
        who: &Who,
        op: NetOp,
        address: IpAddr,
        port: u16,
        protocol: u32,
        out: &mut Vec<Line>,
    ) {
        let mut name = None;
        let listeners = std::mem::take(&mut self.listeners);
        let judgement = self.judged(|started| {
            let found = judge::net(started, &listeners, op, address, port, protocol);
            name = found.name;
            found.judgement
        });
        self.listeners = listeners;
        let binds = self.launched && op == NetOp::Bind && port != 0;
        if binds && judge::listens_on_loopback(address) {
            self.listeners.insert((protocol, port));
        }
        let peer = std::net::SocketAddr::new(address, port);
        let named = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        self.write(
            Draft {
                ts: who.ts,
                class: Class::Net,
                action: op.name(),
                object: record::net(op, name.as_deref(), address, port, protocol),
                shown: format!("{} {peer}{named}", record::protocol_name(protocol)),
                process: Some(self.describe(who)),
                judgement,
                coverage: Some(self.started.coverage.net),
            },
            out,
        );
    }

    fn guard(&mut self, who: &Who, guard: &Guard, out: &mut Vec<Line>) {
        let action = match guard {
            Guard::IoUring => "io_uring",
            Guard::CompatSyscall { .. } => "compat_syscall",
            Guard::Entered { process } => {
                self.processes.known(process);
                "entered"
            }
            Guard::Escaped { .. } => "escaped",
            Guard::Unknown { .. } => "unknown",
        };
        let shown = match guard {
            Guard::Escaped { pid } => format!("process {pid}"),
            _ => String::new(),
        };
        let judgement = self.judged(|started| judge::guard(started, guard));
        self.write(
            Draft {
                ts: who.ts,
                class: Class::Guard,
                action,
                object: record::guard(guard),
                shown,
                process: Some(self.describe(who)),
                judgement,
                coverage: None,
            },
            out,
        );
    }

    /// What came before the launch was the observer's own setup.
    fn judged(&self, judge: impl FnOnce(&Started) -> Judgement) -> Judgement {
        if self.launched { judge(&self.started) } else { Judgement::recorded("setup") }
    }

    fn describe(&self, who: &Who) -> Process {
        self.processes.describe(who.pid, who.tid, who.uid, &who.comm)
    }

    fn write(&mut self, draft: Draft, out: &mut Vec<Line>) {
        let Draft { ts, class, action, object, shown, process, judgement, coverage } = draft;
        let decision = judgement.decision(class, self.started.mode, self.started.backend);
        let seq = self.chain.next;
        let bytes = self.chain.append(&Record {
            ts,
            job: &self.started.name,
            class,
            action,
            object,
            process: process.as_ref(),
            within: judgement.within(),
            rule: &judgement.rule,
            decision,
            coverage,
        });
        self.tally.count(class, decision);
        if let Some(doubt) = judgement.doubt() {
            self.tally.doubt(doubt);
        }
        let violation = judgement.is_violation().then(|| Violation {
            class,
            action,
            object: shown,
            program: process.as_ref().and_then(|process| process.exe.clone()),
            rule: judgement.rule,
            decision,
            coverage,
            seq,
            count: 1,
            process,
        });
        if let Some(violation) = &violation {
            self.tally.violation(violation);
        }
        let job: JobId = self.started.job;
        out.push(Line { job, seq, bytes, class, action, decision, violation });
    }
}

/// Whose event it is.
struct Who {
    ts: UnixNanos,
    pid: u32,
    tid: u32,
    uid: u32,
    comm: Bytes,
}

/// A record of the observer itself.
fn own(ts: UnixNanos, action: &'static str, object: Value, finding: Finding) -> Draft {
    Draft {
        ts,
        class: Class::Guard,
        action,
        object,
        shown: String::new(),
        process: None,
        judgement: Judgement { rule: Rule::of_every_policy("observer"), finding },
        coverage: None,
    }
}

/// The start as it is written: no secrets, and one form for one thing.
fn tidy(started: &mut Started) {
    started.argv = redact::argv(&started.argv);
    for name in &mut started.env {
        *name = redact::text(name);
    }
    for address in started.hosts.iter_mut().flatten() {
        *address = address.to_canonical();
    }
}

/// Records name a root by its path: two roots with one path are one, and a
/// root of another job is none.
fn settle(started: &Started, object: &mut FileObject) {
    let RootMatch::Below(id) = object.root else { return };
    let path = started.roots.iter().find(|root| root.id == id).map(|root| &root.path);
    let first = started.roots.iter().find(|root| Some(&root.path) == path);
    object.root = first.map_or(RootMatch::Outside, |root| RootMatch::Below(root.id));
}
