//! Processes that join a job from outside, with what they bring along.

use std::ffi::CString;
use std::path::Path;
use std::process::Command;

use effectgate_tests::daemon::Daemon;
use effectgate_tests::{Scene, cgroup, gate, record, wait};
use serde_json::Value;

use crate::house::{Job, trigger};

const FOREIGN: &str = "EFFECTGATE_TEST_FOREIGN";

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn join(daemon: &Daemon, scene: Scene, mut command: Command) -> Job {
    let child = command.spawn().expect("the trigger can be started");
    let job = Job::join(daemon, "guest", scene, child);
    // What it holds has to be asked of it while it lives.
    wait::until("the daemon knows the guest", || {
        let entered = |event: &Value| record::kind(event) == "guard/entered";
        log(daemon).iter().any(entered).then_some(())
    });
    job
}

fn log(daemon: &Daemon) -> Vec<Value> {
    record::read_log(&daemon.state().join("jobs/guest/events.jsonl"))
}

/// To its end, with this verdict.
fn judged(daemon: &Daemon, mut job: Job, code: i32) -> (Value, Vec<Value>) {
    job.release();
    job.wait();
    finished(daemon, &job, code)
}

fn finished(daemon: &Daemon, job: &Job, code: i32) -> (Value, Vec<Value>) {
    let (ended, verdict) = job.finish(daemon);
    let events = log(daemon);
    let lines: Vec<_> = events.iter().map(record::line).collect();
    assert_eq!(ended, code, "{verdict:#}\n{}", lines.join("\n"));
    (verdict, events)
}

fn of_rule<'a>(verdict: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = verdict["violations"].as_array().expect("a list").iter();
    all.filter(|violation| violation["rule"]["name"] == rule).collect()
}

/// All of a process's threads come with it.
#[test]
fn second_thread() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let (ready, file) = (scene.root().join("ready"), text(&scene.outside().join("file")));
    let words = ["thread-after-line", &text(&ready), "open-write", &file];
    let child = trigger(&words, &scene).spawn().expect("the trigger can be started");
    wait::until("the second thread runs", || ready.exists().then_some(()));
    let job = Job::join(&daemon, "guest", scene, child);
    let (verdict, _) = judged(&daemon, job, 120);
    let violations = of_rule(&verdict, "allowed_roots");
    assert_eq!(violations.len(), 1, "{verdict:#}");
    assert_eq!(record::text(&violations[0]["object"]), file, "{verdict:#}");
}

/// In a hierarchy that is not the jobs' own (cgroup version 1), whoever looks
/// after it moves processes as it likes.
#[test]
fn moved_in_another_hierarchy() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let Some(other) = Hierarchy::new(scene.outside()) else {
        println!("not tested: this kernel has one hierarchy of cgroups");
        return;
    };
    let command = trigger(&["after-line", "open-write", "file"], &scene);
    let job = join(&daemon, scene, command);
    let moved = std::fs::write(other.0.join("a/cgroup.procs"), job.pid().to_string());
    moved.expect("it may be moved");
    let (verdict, _) = judged(&daemon, job, 0);
    assert!(of_rule(&verdict, "escaped").is_empty(), "{verdict:#}");
}

/// A hierarchy without controllers, with the cgroup `a`.
struct Hierarchy(std::path::PathBuf);

impl Hierarchy {
    fn new(at: std::path::PathBuf) -> Option<Hierarchy> {
        let path = CString::new(text(&at)).expect("no NUL");
        let name = format!("none,name=effectgate-{}", std::process::id());
        let options = CString::new(name).expect("no NUL");
        let kind = c"cgroup".as_ptr();
        // SAFETY: the strings live across the call.
        let mounted = unsafe { libc::mount(kind, path.as_ptr(), kind, 0, options.as_ptr().cast()) };
        if mounted != 0 {
            return None;
        }
        std::fs::create_dir(at.join("a")).expect("mkdir");
        Some(Hierarchy(at))
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        // Who was in it is gone by now.
        let _ = std::fs::remove_dir(self.0.join("a"));
        let path = CString::new(text(&self.0)).expect("no NUL");
        // SAFETY: the string lives across the call.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

/// Whatever it does or leaves undone, what it holds came from outside.
#[test]
fn keys_that_nobody_listed() {
    let own = text(&gate::trigger());
    for (words, within) in [
        // Acts itself.
        (["after-line", "open-write", "file"], false),
        (["after-line", "fork", "1"], false),
        // Does nothing but read, and ends.
        (["after-line", "open-read", "file"], false),
        // Hands its environment on, or nothing of it: then nobody gets to see it.
        (["after-line", "exec", &own], false),
        (["after-line", "exec-without-env", &own], true),
    ] {
        let daemon = Daemon::start();
        let scene = Scene::new();
        let mut command = trigger(&words, &scene);
        if words[1].starts_with("exec") {
            command.arg("true");
        }
        command.env(FOREIGN, "1");
        let job = join(&daemon, scene, command);
        let (verdict, _) = judged(&daemon, job, if within { 0 } else { 120 });
        let violations = of_rule(&verdict, "allowed_env");
        assert_eq!(violations.is_empty(), within, "{words:?}: {verdict:#}");
        for violation in violations {
            assert_eq!(violation["action"], "inherit", "{violation:#}");
            assert!(violation["object"].to_string().contains(FOREIGN), "{violation:#}");
        }
    }
}

#[test]
fn keys_that_are_listed() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let mut command = trigger(&["after-line", "open-write", "file"], &scene);
    command.env("RUN_ID", "1").env("LC_ALL", "C");
    let job = join(&daemon, scene, command);
    judged(&daemon, job, 0);
}

/// It never does anything at all, and is ended with the job.
#[test]
fn keys_of_one_that_only_waits() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let mut command = trigger(&["after-line", "true"], &scene);
    command.env(FOREIGN, "1");
    let job = join(&daemon, scene, command);
    let (verdict, _) = finished(&daemon, &job, 120);
    assert!(!of_rule(&verdict, "allowed_env").is_empty(), "{verdict:#}");
}

/// Who is in already does not join.
#[test]
fn joining_twice() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let command = trigger(&["after-line", "open-write", "file"], &scene);
    let job = join(&daemon, scene, command);
    job.cgroup.add(job.pid());
    let (_, events) = judged(&daemon, job, 0);
    let entered = events.iter().filter(|event| record::kind(event) == "guard/entered");
    assert_eq!(entered.count(), 1, "{events:#?}");
}

/// Coming back does not undo that it left.
#[test]
fn leaving_and_joining_again() {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let command = trigger(&["after-line", "open-write", "file"], &scene);
    let job = join(&daemon, scene, command);
    let elsewhere = cgroup::Cgroup::new();
    elsewhere.add(job.pid());
    job.cgroup.add(job.pid());
    let (verdict, _) = judged(&daemon, job, 120);
    assert_eq!(of_rule(&verdict, "escaped").len(), 1, "{verdict:#}");
}
