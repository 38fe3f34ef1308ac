//! One job from its start to its verdict.

mod effects;
mod guests;

use std::collections::BTreeMap;

use guests::Guests;
use serde_json::Value;

use crate::chain::{self, Chain};
use crate::input::{
    Bytes, Class, Coverage, Decided, Exit, Input, JobId, Limited, Notice, Stage, Started, UnixNanos,
};
use crate::judge::{self, Doubt, Finding, Judgement, Origin, Rule, Tables};
use crate::process::{Process, Table};
use crate::record::{self, Action, GuardAction, ProcessAction, Record};
use crate::step::Line;
use crate::verdict::{Log, Tally, Verdict, Violation};

#[derive(Debug)]
pub(super) struct Job {
    tables: Tables,
    chain: Chain,
    processes: Table,
    /// Keys already seen in the job, and whether from outside.
    keys: BTreeMap<Bytes, Origin>,
    /// Nothing was given from outside yet: the first environment is.
    inherits: bool,
    guests: Guests,
    canary: bool,
    launched: bool,
    /// A record says that a program started.
    started_one: bool,
    /// When the launch was, and when the job was last seen to act.
    times: Option<(UnixNanos, UnixNanos)>,
    /// It was stopped at a bound.
    limited: bool,
    tally: Tally,
}

/// A record in the making.
struct Draft {
    ts: UnixNanos,
    action: Action,
    object: Value,
    /// The object in a violation's line.
    shown: Vec<String>,
    process: Option<Process>,
    judgement: Judgement,
    /// What the kernel programs came to.
    kernel: Option<Decided>,
    coverage: Option<Coverage>,
}

impl Job {
    pub fn open(mut started: Started, out: &mut Vec<Line>) -> Job {
        tidy(&mut started);
        let mut job = Job {
            chain: Chain::new(chain::genesis(&started)),
            processes: Table::default(),
            keys: BTreeMap::new(),
            inherits: true,
            guests: Guests::default(),
            canary: false,
            launched: false,
            started_one: false,
            times: None,
            limited: false,
            tally: Tally::default(),
            tables: Tables::new(started),
        };
        let started = &job.tables.started;
        for known in &started.processes {
            job.processes.known(known);
        }
        let object = record::opening(started);
        let (ts, env) = (started.ts, started.env.clone());
        job.write(own(ts, GuardAction::Start, object, Finding::Recorded), out);
        job.doubt_coverage();
        if !env.is_empty() {
            job.inherited(ts, None, env, true, out);
        }
        job
    }

    /// False when the input changes nothing.
    pub fn take(&mut self, input: Input, out: &mut Vec<Line>) -> bool {
        match input {
            Input::Canary { ts, seen, missing, .. } => self.canary(ts, &seen, &missing, out),
            Input::Launched { ts, .. } => return self.launch(ts, out),
            Input::Event(event) => {
                let (ts, before) = (event.ts, out.len());
                self.event(event, out);
                // What left no record, replay cannot know.
                if let Some((_, last)) = &mut self.times
                    && out.len() > before
                {
                    *last = ts.max(*last);
                }
            }
            Input::Gap { ts, stage, lost, .. } => self.gap(ts, stage, &lost, out),
            Input::Notice { ts, notice, .. } => self.notice(ts, &notice, out),
            Input::Started(_) | Input::Finished { .. } => return false,
        }
        true
    }

    pub fn log(&self) -> Log {
        self.chain.log()
    }

    pub fn close(mut self, ts: UnixNanos, exit: Option<Exit>, out: &mut Vec<Line>) -> Verdict {
        if !self.launched {
            self.tally.doubt(&Doubt::NeverLaunched);
        }
        // A command that ended was a program once: who missed its start may
        // have missed everything.
        if self.launched && exit.is_some() && !self.started_one {
            self.tally.doubt(&Doubt::NoProgram);
        }
        self.doubt_guests();
        self.judge_length();
        // The closing record counts itself: counts and records must agree.
        self.tally.count(Class::Guard, judge::Decision::Recorded);
        let mut verdict = std::mem::take(&mut self.tally).close(&self.tables.started, ts, exit);
        let object = record::closing(&verdict, exit);
        self.write(own(ts, GuardAction::Verdict, object, Finding::Recorded), out);
        verdict.log = self.chain.log();
        verdict
    }

    /// Guests that still sit there hold their keys. The closing record leaves
    /// no room for records about them: what is not clean is doubted.
    fn doubt_guests(&mut self) {
        for env in std::mem::take(&mut self.guests).rest() {
            let clean = env.is_some_and(|names| {
                judge::env(&self.tables, Origin::Inherited, &names, true).outside.is_empty()
            });
            if !clean {
                self.tally.doubt(&Doubt::EnvUnread);
            }
        }
    }

    /// A log that is judged under another policy can be of a job that went on
    /// beyond that one's bound, where nobody stopped it.
    fn judge_length(&mut self) {
        let limit = Limited::WallClock;
        let Some((from, to)) = self.times.filter(|_| !self.limited) else { return };
        let value = to.saturating_sub(from) / crate::time::SECOND;
        let judgement = judge::limit(&self.tables, limit, value);
        if judgement.is_violation() {
            self.tally.violation(&Violation {
                class: Class::Limit,
                action: limit.name(),
                object: value.to_string(),
                program: None,
                decision: judgement.decision(None),
                rule: judgement.rule,
                coverage: None,
                seq: self.chain.next,
                count: 1,
                process: None,
            });
        }
    }

    fn doubt_coverage(&mut self) {
        let started = &self.tables.started;
        for (class, _) in started.coverage.below(started.min_coverage) {
            self.tally.doubt(&Doubt::Coverage(class));
        }
    }

    fn canary(&mut self, ts: UnixNanos, seen: &[Class], missing: &[Class], out: &mut Vec<Line>) {
        self.canary = true;
        for class in missing {
            self.tally.doubt(&Doubt::CanaryMissed(*class));
        }
        self.write(
            own(ts, GuardAction::Canary, record::canary(seen, missing), Finding::Recorded),
            out,
        );
    }

    fn launch(&mut self, ts: UnixNanos, out: &mut Vec<Line>) -> bool {
        if self.launched {
            return false;
        }
        self.launched = true;
        self.times = Some((ts, ts));
        let finding = match self.canary {
            true => Finding::Recorded,
            false => Finding::RecordedWithDoubt(Doubt::NoCanary),
        };
        let object = serde_json::json!({ "what": "the command is about to start" });
        self.write(own(ts, GuardAction::Launch, object, finding), out);
        true
    }

    fn gap(&mut self, ts: UnixNanos, stage: Stage, lost: &[(Class, u64)], out: &mut Vec<Line>) {
        let sums = record::sums(lost);
        self.tally.lost(&sums);
        self.write(own(ts, GuardAction::Gap, record::gap(stage, &sums), Finding::Recorded), out);
    }

    fn notice(&mut self, ts: UnixNanos, notice: &Notice, out: &mut Vec<Line>) {
        let observer = |finding| Judgement { rule: Rule::of_every_policy("observer"), finding };
        let mut bound = None;
        let mut shown = Vec::new();
        let judgement = match notice {
            Notice::Leftovers { .. } => observer(Finding::Recorded),
            // What the job would still have done is not known.
            Notice::Stopped { why } => {
                observer(Finding::RecordedWithDoubt(Doubt::Stopped(why.clone())))
            }
            // Nor that, by a policy under which it would have lived on.
            Notice::Killed { .. } => observer(Finding::RecordedWithDoubt(Doubt::Killed)),
            Notice::CanaryFailed { why } => {
                observer(Finding::RecordedWithDoubt(Doubt::CanaryFailed(why.clone())))
            }
            Notice::Repeated { counts } => {
                self.tally.repeated(&record::sums(counts));
                observer(Finding::Recorded)
            }
            Notice::Limit { limit, value } => {
                self.limited = true;
                bound = self.tables.started.policy.limit(*limit).map(|bound| bound.value);
                shown.push(value.to_string());
                judge::limit(&self.tables, *limit, *value)
            }
        };
        self.write(
            Draft {
                ts,
                action: Action::of_notice(notice),
                object: record::notice(notice, bound),
                shown,
                process: None,
                judgement,
                kernel: None,
                coverage: None,
            },
            out,
        );
    }

    fn write(&mut self, draft: Draft, out: &mut Vec<Line>) {
        let Draft { ts, action, object, shown, process, judgement, kernel, coverage } = draft;
        let class = action.class();
        let decision = judgement.decision(kernel);
        self.started_one |=
            action == Action::Process(ProcessAction::Exec) && decision != judge::Decision::Denied;
        let compared = kernel.filter(|_| self.tables.started.judged && self.launched);
        let differs = compared.filter(|_| judgement.differs(compared));
        let seq = self.chain.next;
        let bytes = self.chain.append(&Record {
            ts,
            job: &self.tables.started.name,
            action,
            object,
            process: process.as_ref(),
            within: judgement.within(),
            rule: &judgement.rule,
            decision,
            kernel: differs,
            coverage,
        });
        self.tally.count(class, decision);
        if differs.is_some() {
            self.tally.disagreement();
        }
        if let Some(doubt) = judgement.doubt() {
            self.tally.doubt(doubt);
        }
        let doubted = match judgement.finding {
            Finding::Doubt(_) => process.as_ref().map(|process| process.pid),
            _ => None,
        };
        let touched = if judgement.is_violation() { shown } else { Vec::new() };
        let violations: Vec<Violation> = touched
            .into_iter()
            .map(|object| Violation {
                class,
                action: action.name(),
                object,
                program: process.as_ref().and_then(|process| process.exe.clone()),
                rule: judgement.rule.clone(),
                decision,
                coverage,
                seq,
                count: 1,
                process: process.clone(),
            })
            .collect();
        for violation in &violations {
            self.tally.violation(violation);
        }
        let job: JobId = self.tables.started.job;
        let action = action.name();
        out.push(Line { job, seq, bytes, class, action, decision, violations, doubted });
    }
}

/// A record of the observer itself.
fn own(ts: UnixNanos, action: GuardAction, object: Value, finding: Finding) -> Draft {
    Draft {
        ts,
        action: Action::Guard(action),
        object,
        shown: Vec::new(),
        process: None,
        judgement: Judgement { rule: Rule::of_every_policy("observer"), finding },
        kernel: None,
        coverage: None,
    }
}

/// The start as it is written: one form for one thing.
fn tidy(started: &mut Started) {
    // Parents before their children, so that each finds its own.
    started.processes.sort_by_key(|known| (known.start, known.pid));
    for address in started.hosts.iter_mut().flatten() {
        *address = address.to_canonical();
    }
}
