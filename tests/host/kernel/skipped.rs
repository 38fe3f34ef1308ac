//! The kernel does not run a program while a run of it has not ended on the same
//! processor. What goes unseen then is made up for, or counted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use effectgate_tests::daemon::Daemon;
use effectgate_tests::{Outcome, Scene, attached, gate, record};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] =
    &["task_fork_again", "task_exec_again", "task_exit_again", "cgroup_move_again"];

/// Programs that are run while others on that processor are about to be.
const PROGRAMS: usize = 200;

/// A kernel that takes the processor away from whatever runs; before 7.0 most only
/// do so where it says that it can wait.
struct Preemptive {
    debug: Scene,
    before: Option<String>,
}

impl Preemptive {
    fn new() -> Preemptive {
        let debug = Scene::new();
        mount(&["-t", "debugfs", "debugfs"], &debug);
        let mut kernel = Preemptive { debug, before: None };
        let known = fs::read_to_string(kernel.switch()).expect("such a kernel can be switched");
        kernel.before = known.split(['(', ')']).nth(1).map(str::to_owned);
        fs::write(kernel.switch(), "full").expect("written");
        kernel
    }

    fn switch(&self) -> PathBuf {
        self.debug.root().join("sched/preempt")
    }
}

impl Drop for Preemptive {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = fs::write(self.switch(), before);
        }
        let _ = Command::new("umount").arg(self.debug.root()).status();
    }
}

fn mount(what: &[&str], at: &Scene) {
    let status = Command::new("mount").args(what).arg(at.root()).status();
    assert!(status.is_ok_and(|status| status.success()), "{what:?} cannot be mounted");
}

/// How often the daemon's programs were skipped so far.
fn skipped(daemon: &Daemon) -> u64 {
    let said = fs::read_dir(format!("/proc/{}/fdinfo", daemon.pid())).expect("the daemon runs");
    let said = said.filter_map(|file| fs::read_to_string(file.expect("listed").path()).ok());
    said.filter_map(|said| {
        let count = said.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
        count.trim().parse::<u64>().ok()
    })
    .sum()
}

/// Has the job done, again and again, until programs were skipped.
fn until_skipped() -> Outcome {
    let daemon = Daemon::start();
    let count = PROGRAMS.to_string();
    for _ in 0..5 {
        let before = skipped(&daemon);
        let scene = Scene::new();
        let words = ["preempted-programs", &count];
        let mut command = attached::command(&gate::trigger(), words, &scene, Vec::new());
        let (_, outcome) =
            attached::run(&daemon, &scene, &scene.envelope(), "observe", &mut command, true);
        let outcome = outcome.unwrap_or_else(|| panic!("no verdict\n{}", daemon.log()));
        let times = skipped(&daemon) - before;
        if times > 0 {
            println!("skipped {times} times\n{}", daemon.log());
            return outcome;
        }
        outcome.assert_pass();
    }
    panic!("no program was skipped\n{}", daemon.log());
}

fn count(outcome: &Outcome, kind: &str) -> usize {
    outcome.events.iter().filter(|event| record::kind(event) == kind).count()
}

/// From 7.0 on processes and programs are told twice: none is missed.
#[test]
fn programs_of_who_is_preempted() {
    if gate::backend() != "lsm" || gate::kernel() < (7, 0) {
        println!(
            "not tested: only programs that are told can be skipped, on tracepoints since 7.0"
        );
        return;
    }
    let outcome = until_skipped();
    outcome.assert_pass();
    let all = 2 * PROGRAMS + 1;
    assert_eq!(count(&outcome, "exec/exec"), all, "{}", outcome.story());
    assert_eq!(count(&outcome, "exec/fork"), all, "{}", outcome.story());
    assert_eq!(count(&outcome, "exec/exit"), all + 1, "{}", outcome.story());
}

/// What is told once is counted when it is not told.
#[test]
fn effects_of_who_is_preempted() {
    if std::env::var_os("EFFECTGATE_TEST_VM").is_none() {
        println!("not tested: this would change how the machine's own kernel schedules");
        return;
    }
    let skips = match gate::backend().as_str() {
        "fentry" => true,
        "tracepoint" => gate::kernel() >= (7, 0),
        _ => false,
    };
    if !skips {
        println!("not tested: here such programs are run all the same, or not preempted");
        return;
    }
    let kernel = Preemptive::new();
    let outcome = until_skipped();
    drop(kernel);
    outcome.assert_indeterminate();
    let gaps = outcome.events.iter().filter(|event| record::kind(event) == "guard/gap");
    let mut stages = gaps.map(|event| record::text(&event["object"]["stage"]));
    assert!(stages.any(|stage| stage == "hook"), "{}", outcome.story());
}
