//! Processes that join a job while it runs, and the keys they bring along.

mod common;

use common::*;
use effectgate_core::Outcome::{self, Fail, Indeterminate, Pass};
use effectgate_core::input::*;
use effectgate_core::replay::replay;

const A: u32 = 50;
const B: u32 = 60;

/// Moved into the cgroup by a process that is not of the job.
fn enter(pid: u32, env: Option<&[&str]>) -> Input {
    let process = Known { pid, ppid: 1, start: 5, exe: b"/bin/sh".to_vec(), comm: b"sh".to_vec() };
    by(1, What::Guard(Guard::Entered { process, env: env.map(keys) }))
}

fn run_program(pid: u32, names: &[&str]) -> Vec<Input> {
    let read = by(pid, file(FileOp::OpenRead));
    vec![read, exec(pid, 5, "/bin/cat"), by(pid, What::Env { names: keys(names), complete: true })]
}

fn file(op: FileOp) -> What {
    let object = object("/srv/repo/a", RootMatch::Below(1));
    What::File { op, object, other: None, coverage: Coverage::Object }
}

fn write(pid: u32) -> Input {
    by(pid, file(FileOp::OpenWrite))
}

fn exit(pid: u32) -> Input {
    by(pid, What::Exit { code: 0 })
}

fn fork(pid: u32, child: u32) -> Input {
    by(pid, What::Fork { pid: child, ppid: pid, start: 6 })
}

/// The outcome and its reasons; the log says the same when it is read back.
fn judge(inputs: &[Vec<Input>]) -> (Outcome, String) {
    let (lines, verdict) = job(started(), inputs.concat());
    let replayed = replay(&log(&lines)[..], policy()).unwrap();
    assert_eq!((replayed.disagreement, &replayed.verdict), (None, &verdict));
    (verdict.verdict, verdict.reasons.join("; "))
}

fn outcome(inputs: &[Vec<Input>]) -> Outcome {
    judge(inputs).0
}

#[test]
fn what_joins_and_executes_shows_its_keys() {
    for foreign in [None, Some(&["EDITOR"][..])] {
        let enter = |pid| vec![enter(pid, foreign)];
        let clean = |pid| run_program(pid, &["PATH", "CI"]);
        let dirty = |pid| run_program(pid, &["PATH", "EDITOR"]);
        let end = || vec![exit(A)];
        assert_eq!(outcome(&[enter(A), clean(A), end()]), Pass);
        assert_eq!(outcome(&[enter(A), dirty(A), end()]), Fail);
        // Whenever it comes.
        assert_eq!(outcome(&[enter(A), clean(A), end(), enter(B), clean(B)]), Pass);
        assert_eq!(outcome(&[enter(A), clean(A), end(), enter(B), dirty(B)]), Fail);
        // What it sets later is made inside.
        assert_eq!(outcome(&[enter(A), clean(A), dirty(A)]), Pass);
        // A key that was made inside may still not be brought along.
        assert_eq!(outcome(&[enter(A), clean(A), dirty(A), enter(B), dirty(B)]), Fail);
    }
}

#[test]
fn what_joins_and_acts_holds_what_it_came_with() {
    for acts in [vec![write(A)], vec![exit(A)], vec![fork(A, B)], vec![]] {
        let with = |env| judge(&[vec![enter(A, env)], acts.clone()]);
        assert_eq!(with(Some(&["PATH", "CI"])).0, Pass, "{acts:?}");
        let (outcome, reasons) = with(None);
        assert_eq!(outcome, Indeterminate, "{acts:?}");
        assert!(reasons.contains("could not be read"), "{reasons}");
        let worst = if acts.is_empty() { Indeterminate } else { Fail };
        assert_eq!(with(Some(&["EDITOR"])).0, worst, "{acts:?}");
    }
}

#[test]
fn it_is_judged_once() {
    let inputs = vec![enter(A, Some(&["EDITOR"])), write(A), write(A), exit(A)];
    let (lines, verdict) = job(started(), inputs);
    assert_eq!(verdict.violations[0].count, 1);
    let actions: Vec<&str> = lines[3..].iter().map(|line| line.action).collect();
    assert_eq!(actions, ["entered", "open_write", "inherit", "open_write", "exit", "verdict"]);
    assert_eq!(verdict.violations[0].process.as_ref().unwrap().pid, A);
}

#[test]
fn its_children_hold_what_it_holds() {
    let shell = |names: &[&str]| {
        let enter = vec![enter(A, Some(&["PATH"])), fork(A, B)];
        outcome(&[enter, run_program(B, names), vec![exit(B), exit(A)]])
    };
    assert_eq!(shell(&["PATH", "CI"]), Pass);
    assert_eq!(shell(&["PATH", "EDITOR"]), Fail, "exported before it joined");
    // After an exec inside, children are the job's own.
    let inputs = [vec![enter(A, None)], run_program(A, &["PATH"]), vec![fork(A, B)]];
    let inputs = [inputs.concat(), run_program(B, &["EDITOR"])];
    assert_eq!(outcome(&inputs), Pass);
}

#[test]
fn a_pid_given_again_is_no_guest() {
    let first = [vec![enter(A, None)], run_program(A, &["PATH"])].concat();
    let second = vec![enter(B, Some(&["PATH"])), write(B)];
    // B's end was not seen.
    let again = [vec![fork(A, B)], run_program(B, &["EDITOR"])].concat();
    assert_eq!(outcome(&[first, second, again]), Pass);
    // Cloned into the cgroup: it enters, and then its fork is told by a stranger.
    let cloned = vec![enter(A, None), by(1, What::Fork { pid: A, ppid: 1, start: 5 })];
    assert_eq!(outcome(&[cloned.clone(), run_program(A, &["EDITOR"])]), Fail);
    assert_eq!(outcome(&[cloned, vec![write(A)]]), Indeterminate);
}
