//! From inputs to verdicts: what passes, what fails, what stays open.

mod common;

use common::*;
use effectgate_core::input::*;
use effectgate_core::judge::Decision;
use effectgate_core::replay::replay;
use effectgate_core::{Outcome, State, Verdict, step};

fn inside() -> Input {
    write("/srv/repo/a", RootMatch::Below(1))
}

fn outside() -> Input {
    write("/etc/passwd", RootMatch::Outside)
}

fn verdict(inputs: Vec<Input>) -> Verdict {
    job(started(), inputs).1
}

#[test]
fn a_clean_job_passes() {
    let (lines, verdict) =
        job(started(), vec![exec(42, 5, "/bin/sh"), env(&["PATH", "CI"]), inside()]);
    assert_eq!(verdict.verdict, Outcome::Pass);
    assert!(verdict.reasons.is_empty() && verdict.violations.is_empty());
    assert_eq!(verdict.to_string(), "verdict: pass (0 violations, 0 lost)");
    assert_eq!(verdict.log.records, lines.len() as u64);
    let counted: u64 = verdict.counts.values().flat_map(|by| by.values()).sum();
    assert_eq!(counted, verdict.log.records);
    let last = json(lines.last().unwrap());
    assert_eq!(last["hash"], verdict.log.head);
    assert_eq!((&last["action"], &last["object"]["verdict"]), (&"verdict".into(), &"pass".into()));
}

#[test]
fn a_violation_fails_and_says_who_did_what() {
    let verdict = verdict(vec![exec(42, 5, "/bin/sh"), outside(), outside(), inside()]);
    assert_eq!(verdict.verdict, Outcome::Fail);
    assert_eq!(verdict.to_string(), "verdict: fail (1 violation, 0 lost)");
    let violation = &verdict.violations[0];
    assert_eq!(violation.count, 2);
    assert_eq!(
        violation.to_string(),
        "file open_write /etc/passwd by /bin/sh: allowed_roots (envelope.json:3) (2x)"
    );
    assert_eq!(violation.process.as_ref().unwrap().pid, 42);
}

#[test]
fn a_violations_line_is_one_line() {
    let verdict = verdict(vec![write("/etc/a\n\u{1b}[31mb", RootMatch::Outside)]);
    assert!(!verdict.violations[0].to_string().contains(['\n', '\u{1b}']));
}

#[test]
fn what_may_have_gone_unseen_leaves_it_open() {
    let note = |notice| Input::Notice { job: JOB, ts: T0, notice };
    let gap = Input::Gap { job: JOB, ts: T0, stage: Stage::Ring, lost: vec![(Class::File, 3)] };
    let unplaced = write("/srv/repo/a", RootMatch::Unknown);
    let unread = event(What::Env { names: vec![], complete: false });
    let canary = Input::Canary { job: JOB, ts: T0, seen: vec![], missing: vec![Class::Net] };
    let low = event(What::File {
        op: FileOp::OpenWrite,
        object: object("/srv/repo/a", RootMatch::Below(1)),
        other: None,
        coverage: Coverage::Argument,
    });
    for (input, reason) in [
        (gap, "records were lost: file 3"),
        (unplaced, "could not be placed"),
        (unread, "could not be read whole"),
        (canary, "the canary missed effects of class net"),
        (low, "coverage of class file"),
        (event(What::Guard(Guard::Unknown { kind: 1, op: 2 })), "unknown kind"),
        (note(Notice::CanaryFailed { why: "silence".into() }), "silence"),
        (note(Notice::Stopped { why: "time limit".into() }), "time limit"),
        (note(Notice::Killed { pid: None, violation: 3 }), "killed it for a violation"),
        (note(Notice::Killed { pid: Some(9), violation: 3 }), "killed it for a violation"),
    ] {
        let open = verdict(vec![input.clone()]);
        assert_eq!(open.verdict, Outcome::Indeterminate, "{reason}");
        assert!(open.reasons.iter().any(|r| r.contains(reason)), "{reason}: {:?}", open.reasons);
        let failed = verdict(vec![input, outside()]);
        assert_eq!(failed.verdict, Outcome::Fail, "a violation outweighs: {reason}");
    }
    let killed = verdict(vec![note(Notice::Leftovers { killed: 2 })]);
    assert_eq!(killed.verdict, Outcome::Pass);
    let counts = vec![(Class::File, 2), (Class::Net, 1), (Class::File, 3)];
    let repeated = verdict(vec![note(Notice::Repeated { counts })]);
    assert_eq!(repeated.verdict, Outcome::Pass);
    assert_eq!(repeated.repeated, [(Class::File, 5), (Class::Net, 1)].into());
}

#[test]
fn a_job_without_canary_or_launch_stays_open() {
    let start = || Input::Started(Box::new(started()));
    let (_, verdict) = run(vec![start(), launched(), finished()]);
    assert_eq!(verdict.verdict, Outcome::Indeterminate);
    let (_, verdict) = run(vec![start(), launched(), canary(), finished()]);
    assert_eq!(verdict.verdict, Outcome::Indeterminate, "a canary after the launch is too late");
    let (_, verdict) = run(vec![start(), canary(), finished()]);
    assert_eq!(verdict.verdict, Outcome::Indeterminate);
}

#[test]
fn coverage_below_the_minimum_stays_open() {
    let coverage = Coverages { net: Coverage::Argument, ..started().coverage };
    let low = Started { coverage, ..started() };
    assert_eq!(job(low.clone(), vec![]).1.verdict, Outcome::Indeterminate);
    let least = Started { min_coverage: Coverage::Argument, ..low };
    assert_eq!(job(least, vec![]).1.verdict, Outcome::Pass);
}

#[test]
fn what_is_not_measured_is_said() {
    let (lines, verdict) = job(started(), vec![]);
    assert_eq!(verdict.verdict, Outcome::Pass, "no minimum binds what no backend watches");
    let json = serde_json::to_value(&verdict).unwrap();
    assert_eq!(json["coverage"]["tool"], "none");
    assert_eq!(json["disagreements"], 0);
    assert_eq!(self::json(&lines[0])["object"]["coverage"], json["coverage"]);
}

#[test]
fn setup_is_recorded_and_not_judged() {
    let start = Input::Started(Box::new(started()));
    let bind = event(What::Net {
        op: NetOp::Bind,
        address: "127.0.0.1".parse().unwrap(),
        port: 9,
        protocol: 6,
        own: false,
        namespace: Namespace::Own,
    });
    let setup = vec![start, outside(), env(&["SECRET"]), bind, canary(), launched()];
    let (lines, verdict) = run([setup.clone(), vec![finished()]].concat());
    assert_eq!(verdict.verdict, Outcome::Pass);
    assert_eq!(json(&lines[1])["rule"]["name"], "setup");
    let (_, verdict) = run([setup, vec![env(&["SECRET"]), finished()]].concat());
    assert_eq!(verdict.verdict, Outcome::Fail, "the baseline begins at the launch");
}

#[test]
fn keys_are_inherited_once_and_then_made() {
    let made = verdict(vec![env(&["PATH"]), env(&["PATH", "CARGO_HOME"]), env(&["CARGO_HOME"])]);
    assert_eq!(made.verdict, Outcome::Pass);
    assert_eq!(made.counts[&Class::Env].values().sum::<u64>(), 2, "nothing new, no record");
    assert_eq!(verdict(vec![env(&["CARGO_HOME"])]).verdict, Outcome::Fail);
    assert_eq!(verdict(vec![env(&[]), env(&["DEPLOY_TOKEN"])]).verdict, Outcome::Fail);
    let held = Started { env: vec![b"EDITOR".to_vec()], ..started() };
    let (lines, verdict) = job(held, vec![env(&["CARGO_HOME"])]);
    assert_eq!(verdict.violations[0].object, "EDITOR");
    assert_eq!(json(&lines[1])["action"], "inherit");
}

#[test]
fn the_job_reaches_its_own_listeners() {
    let connect = |address: &str, own| {
        let address = address.parse().unwrap();
        event(What::Net {
            op: NetOp::Connect,
            address,
            port: 8080,
            protocol: 6,
            own,
            namespace: Namespace::Own,
        })
    };
    let (lines, verdict) = job(started(), vec![connect("::ffff:127.0.0.1", true)]);
    assert_eq!(verdict.verdict, Outcome::Pass);
    assert_eq!(json(&lines[3])["object"]["listener"], "job");
    let (lines, verdict) = job(started(), vec![connect("127.0.0.1", false)]);
    assert_eq!(verdict.verdict, Outcome::Fail, "the host's own");
    assert!(json(&lines[3])["object"].get("listener").is_none());
    let named = event(What::Net {
        op: NetOp::Connect,
        address: "::ffff:192.0.2.1".parse().unwrap(),
        port: 443,
        protocol: 6,
        own: false,
        namespace: Namespace::Own,
    });
    let (lines, verdict) = job(started(), vec![named]);
    assert_eq!(verdict.verdict, Outcome::Pass);
    assert_eq!(json(&lines[3])["object"]["name"], "example.com");
    assert_eq!(json(&lines[3])["object"]["address"], "192.0.2.1");
}

#[test]
fn no_mode_claims_more_than_was_done() {
    for (mode, backend) in Mode::ALL.iter().flat_map(|m| Backend::ALL.iter().map(move |b| (m, b))) {
        let started = Started { mode: *mode, backend: *backend, ..started() };
        let (lines, _) = job(started, vec![outside(), inside()]);
        let decisions = [lines[3].decision, lines[4].decision];
        assert_eq!(decisions, [Decision::Recorded, Decision::Allowed], "{mode:?} {backend:?}");
        let denied = json(&lines[0])["object"].get("denied").cloned();
        let want = match (mode, backend) {
            (Mode::Observe, _) => None,
            (Mode::Enforce, Backend::Lsm) => {
                Some(serde_json::json!(["file", "exec", "net", "guard"]))
            }
            (Mode::Kill | Mode::Enforce, _) => Some(serde_json::json!(["net"])),
        };
        assert_eq!(denied, want, "{mode:?} {backend:?}");
    }
}

#[test]
fn what_the_kernel_did_is_the_decision() {
    let denied = job(started(), vec![decided(Decided::Denied, outside())]);
    let killed = job(started(), vec![decided(Decided::Killed, outside())]);
    for ((lines, verdict), decision) in [(denied, Decision::Denied), (killed, Decision::Killed)] {
        assert_eq!((verdict.verdict, verdict.disagreements), (Outcome::Fail, Some(0)));
        assert_eq!(verdict.violations[0].decision, decision);
        assert!(json(&lines[3]).get("kernel").is_none());
    }
}

#[test]
fn where_the_kernel_disagrees_the_verdict_is_open() {
    let unplaced = || write("/srv/repo/a", RootMatch::Unknown);
    for (input, agreeing) in [
        (inside(), &[Decided::Within][..]),
        (outside(), &[Decided::Outside, Decided::Denied, Decided::Killed]),
        (unplaced(), &[Decided::Unknown, Decided::Denied]),
    ] {
        for kernel in Decided::ALL {
            let agrees = agreeing.contains(kernel);
            let inputs = vec![decided(*kernel, input.clone())];
            let (lines, verdict) = job(started(), inputs.clone());
            assert_eq!(verdict.disagreements, Some(u64::from(!agrees)), "{kernel:?}");
            let said = json(&lines[3]).get("kernel").cloned();
            assert_eq!(said, (!agrees).then(|| kernel.name().into()), "{kernel:?}");
            let open = verdict.reasons.iter().any(|it| it.contains("otherwise than user space"));
            assert_eq!(open, !agrees, "{:?}", verdict.reasons);
            let log = log(&lines);
            let replayed = replay(&log[..], policy()).unwrap();
            assert!(replayed.agrees(), "{kernel:?}");
            assert_eq!(replayed.verdict.disagreements, verdict.disagreements);
            // Nothing is compared where the kernel is not said to judge.
            let alone = job(Started { judged: false, ..started() }, inputs).1;
            assert_eq!(alone.disagreements, None);
        }
    }
}

#[test]
fn a_command_that_ended_was_a_program() {
    let table = [
        (None, vec![], true),
        (None, vec![inside()], true),
        (Some(Exit::Code(0)), vec![], false),
        (Some(Exit::Signal(9)), vec![], false),
        (Some(Exit::Code(0)), vec![inside()], false),
        (Some(Exit::Code(0)), vec![exec(42, 5, "/bin/sh")], true),
        (Some(Exit::Signal(9)), vec![exec(42, 5, "/bin/sh")], true),
    ];
    for (exit, inputs, holds) in table {
        let mut all = vec![Input::Started(Box::new(started())), canary(), launched()];
        all.extend(inputs);
        all.push(Input::Finished { job: JOB, ts: T0 + 2, exit });
        let said = format!("{:?}", &all[3..]);
        let (lines, verdict) = run(all);
        let reason = verdict.reasons.iter().any(|it| it.contains("that a program started"));
        assert_eq!(reason, !holds, "{said}");
        assert_eq!(verdict.command.exit, exit);
        let expected = if holds { Outcome::Pass } else { Outcome::Indeterminate };
        assert_eq!(verdict.verdict, expected, "{said}");
        assert!(replay(&log(&lines)[..], policy()).unwrap().agrees(), "{said}");
    }
}

/// A line that stands for several says that they were denied only if all were.
#[test]
fn what_was_denied_each_time_is_said_to_be() {
    let denied = || decided(Decided::Denied, outside());
    for (inputs, count, says) in [
        (vec![denied()], 1, true),
        (vec![denied(), denied()], 2, true),
        (vec![denied(), outside()], 2, false),
        (vec![outside(), denied()], 2, false),
    ] {
        let violations = verdict(inputs).violations;
        assert_eq!((violations.len(), violations[0].count), (1, count));
        assert_eq!(violations[0].to_string().ends_with(", denied"), says, "{}", violations[0]);
    }
}

/// Who is kept from a program goes on as what it was.
#[test]
fn what_was_denied_is_not_what_acts() {
    let Input::Event(Event { what: What::Exec(program), .. }) = exec(42, 5, "/bin/evil") else {
        panic!("an exec")
    };
    let program = Exec { argv: Vec::new(), argv_complete: false, ..program };
    let denied = decided(Decided::Denied, by(42, What::Exec(program)));
    let inputs = vec![exec(42, 5, "/bin/sh"), denied, outside(), env(&["HOME"])];
    let (lines, verdict) = job(started(), inputs);
    let programs = verdict.violations.iter().map(|violation| violation.program.as_deref());
    let last = programs.into_iter().next_back().flatten();
    assert_eq!(last, Some("/bin/sh"), "{:?}", verdict.violations);
    let held = lines.iter().map(json).find(|record| record["class"] == "env").expect("keys");
    assert_eq!(held["action"], "inherit", "{held}");
    assert!(replay(&log(&lines)[..], policy()).unwrap().agrees());
}

#[test]
fn violations_are_bounded_and_counted() {
    let many = (0..1500).map(|n| write(&format!("/etc/{n}"), RootMatch::Outside)).collect();
    let verdict = verdict(many);
    assert_eq!((verdict.violations.len(), verdict.violations_unlisted), (1000, 500));
    assert_eq!(verdict.to_string(), "verdict: fail (1500 violations, 0 lost)");
}

#[test]
fn strangers_are_ignored_and_jobs_kept_apart() {
    let mut state = State::new();
    for input in [canary(), launched(), inside(), finished()] {
        let output = step(&mut state, input);
        assert!(output.ignored && output.records.is_empty() && output.verdict.is_none());
    }
    assert_eq!(state.ignored(), 4);
    let other = Started { job: 4, name: "job-4".into(), ..started() };
    for input in [Input::Started(Box::new(started())), Input::Started(Box::new(other))] {
        assert!(!step(&mut state, input).ignored);
    }
    assert!(step(&mut state, Input::Started(Box::new(started()))).ignored, "started twice");
    step(&mut state, canary());
    step(&mut state, launched());
    assert!(step(&mut state, launched()).ignored, "launched twice");
    assert_eq!(step(&mut state, outside()).records[0].seq, 3);
    assert_eq!(step(&mut state, finished()).verdict.unwrap().verdict, Outcome::Fail);
    let end = Input::Finished { job: 4, ts: T0, exit: None };
    assert!(step(&mut state, end).verdict.unwrap().violations.is_empty());
    assert_eq!(state.watched().count(), 0);
}

#[test]
fn secrets_stay_out_of_the_log() {
    let (lines, verdict) = job(started(), vec![exec(42, 5, "/bin/sh")]);
    let log = log(&lines);
    assert!(!log.windows(7).any(|window| window == b"hunter2"));
    assert!(!serde_json::to_string(&verdict).unwrap().contains("hunter2"));
}

#[test]
fn records_have_the_documented_members() {
    let (lines, verdict) = job(started(), vec![exec(42, 5, "/bin/sh"), inside()]);
    for line in &lines {
        let record = json(line);
        let keys: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
        let want =
            "action class coverage decision hash job object prev process rule schema seq ts within";
        assert_eq!(keys.join(" "), want);
        assert_eq!(record["schema"], "effectgate.event/v1");
    }
    let verdict = serde_json::to_value(&verdict).unwrap();
    for key in [
        "schema",
        "job",
        "verdict",
        "reasons",
        "policy",
        "backend",
        "coverage",
        "command",
        "started",
        "ended",
        "counts",
        "repeated",
        "lost",
        "violations",
        "disagreements",
        "log",
    ] {
        assert!(verdict.get(key).is_some(), "{key}");
    }
}
