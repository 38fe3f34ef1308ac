//! Who watches is watched: hooks that fall silent, programs that are detached, an
//! observer that stands still void the verdict of a job that did nothing wrong.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use effectgate_tests::gate::Running;
use effectgate_tests::{Gate, Outcome, Scene, gate, record, wait};

/// A job that waits for a line, once it runs.
fn waiting(mode: &str) -> (Scene, Running) {
    let scene = Scene::new();
    let ready = scene.root().join("ready");
    let words = ["ready-then", ready.to_str().expect("UTF-8"), "after-line", "true"];
    let running = Gate::new(&scene)
        .option(["--mode", mode])
        .with(|command| {
            command.stdin(Stdio::piped());
        })
        .start_trigger(words);
    wait::until("the job runs", || ready.exists().then_some(()));
    (scene, running)
}

/// Waits until the running job's log says this of its observer, whatever else it
/// says: a slow machine can hold the observer up as well.
fn await_said(running: &Running, why: &str) {
    let log = running.evidence().join("events.jsonl");
    wait::until("the log says what is wrong", || {
        let events = record::read_log(&log);
        let failed = events.iter().filter(|event| record::kind(event) == "guard/canary_failed");
        let mut said = failed.map(|event| record::text(&event["object"]["why"]));
        said.any(|said| said.contains(why)).then_some(())
    });
}

fn assert_void(outcome: &Outcome, why: &str) {
    outcome.assert_indeterminate();
    let reasons = outcome.verdict()["reasons"].to_string();
    assert!(reasons.contains(why), "{reasons}{}", outcome.story());
}

#[test]
fn nothing_is_wrong_when_nothing_is() {
    let (_scene, mut running) = waiting("observe");
    // Some songs long.
    std::thread::sleep(Duration::from_secs(3));
    running.say("go");
    running.end().assert_pass();
}

#[test]
fn an_observer_that_stood_still() {
    let (_scene, mut running) = waiting("observe");
    wait::signal(running.pid(), libc::SIGSTOP);
    // It has to be away for so long: nothing is waited for.
    std::thread::sleep(Duration::from_secs(3));
    wait::signal(running.pid(), libc::SIGCONT);
    await_said(&running, "stood still");
    running.say("go");
    assert_void(&running.end(), "stood still");
}

#[test]
fn a_program_that_is_detached() {
    let (_scene, mut running) = waiting("observe");
    let pid = running.pid().to_string();
    let detached = Command::new(gate::trigger()).args(["detach-links", &pid]).output();
    let detached = detached.expect("the trigger can be started");
    assert!(detached.status.success(), "{detached:?}");
    await_said(&running, "was detached");
    running.say("go");
    assert_void(&running.end(), "was detached");
}

/// Whoever kills the canary gets another one.
#[test]
fn a_canary_that_is_killed() {
    let (_scene, mut running) = waiting("observe");
    let canaries = wait::processes_with("__canary");
    let own = |pid: &u32| parent(*pid) == Some(running.pid());
    let canary = canaries.into_iter().find(own).expect("it sings");
    wait::signal(canary, libc::SIGKILL);
    wait::until("another one sings", || {
        wait::processes_with("__canary").into_iter().find(|pid| *pid != canary && own(pid))
    });
    running.say("go");
    running.end().assert_pass();
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Written back whatever becomes of the test.
struct Ftrace;

const FTRACE: &str = "/proc/sys/kernel/ftrace_enabled";

impl Ftrace {
    /// `None` where the kernel refuses: from 7.3 on it keeps functions traced as
    /// long as programs hang on them.
    fn off() -> Option<Ftrace> {
        match fs::write(FTRACE, "0") {
            Ok(()) => Some(Ftrace),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => None,
            Err(error) => panic!("root may write {FTRACE}: {error}"),
        }
    }
}

impl Drop for Ftrace {
    fn drop(&mut self) {
        let _ = fs::write(FTRACE, "1");
    }
}

/// Programs that hang on functions are called no more.
#[test]
fn hooks_that_are_switched_off() {
    if gate::on_tracepoints() || std::env::var_os("EFFECTGATE_TEST_VM").is_none() {
        println!("not tested: only on a machine that is thrown away, and not with tracepoints");
        return;
    }
    let (_scene, mut running) = waiting("observe");
    let Some(ftrace) = Ftrace::off() else {
        running.say("go");
        return running.end().assert_pass();
    };
    await_said(&running, "ftrace_enabled");
    drop(ftrace);
    running.say("go");
    assert_void(&running.end(), "ftrace_enabled");
}

/// Where effects were to be denied, nothing denies them any more.
#[test]
fn a_job_that_nothing_holds_is_ended() {
    if gate::backend() != "lsm" || std::env::var_os("EFFECTGATE_TEST_VM").is_none() {
        println!("not tested: only on a machine that is thrown away, and with security modules");
        return;
    }
    let (_scene, mut running) = waiting("enforce");
    let Some(ftrace) = Ftrace::off() else {
        running.say("go");
        return running.end().assert_pass();
    };
    await_said(&running, "ftrace_enabled");
    let outcome = running.end();
    drop(ftrace);
    assert_void(&outcome, "ftrace_enabled");
    assert_eq!(outcome.verdict()["command"]["exit"]["signal"], 9, "{}", outcome.story());
}
