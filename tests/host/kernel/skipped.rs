//! The kernel does not run a program while a run of it has not ended on the same
//! processor. What goes unseen then is made up for, or counted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use effectgate_tests::daemon::Daemon;
use effectgate_tests::{Outcome, Scene, attached, gate, record};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &["task_fork_again", "task_exec_again", "task_exit_again"];

/// Programs that are run while others on that processor are about to be.
const PROGRAMS: usize = 200;

/// A machine whose kernel takes the processor away from whatever runs: others do so
/// only where it can wait. It is a machine of the tests' own: `lsm` and `fentry` are
/// nowhere else.
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
        let _ = Command::new("umount").arg("-l").arg(self.debug.root()).status();
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

/// A job that runs programs while others on that processor are about to be, and how
/// often the daemon's programs were skipped meanwhile.
fn preempted(daemon: &Daemon) -> (Outcome, u64) {
    let before = skipped(daemon);
    let scene = Scene::new();
    let words = ["preempted-programs", &PROGRAMS.to_string()];
    let mut command = attached::command(&gate::trigger(), words, &scene, Vec::new());
    let (_, outcome) =
        attached::run(daemon, &scene, &scene.envelope(), "observe", &mut command, true);
    let outcome = outcome.unwrap_or_else(|| panic!("no verdict\n{}", daemon.log()));
    (outcome, skipped(daemon) - before)
}

fn of_kind<'a>(outcome: &'a Outcome, kind: &str) -> Vec<&'a serde_json::Value> {
    outcome.events.iter().filter(|event| record::kind(event) == kind).collect()
}

/// Whether the log says that a program was skipped.
fn says_so(outcome: &Outcome) -> bool {
    let gaps = of_kind(outcome, "guard/gap");
    gaps.iter().any(|gap| record::text(&gap["object"]["stage"]) == "hook")
}

/// Who is asked is not skipped, and of processes and programs the kernel programs
/// are told twice.
#[test]
fn nothing_is_missed() {
    if gate::backend() != "lsm" {
        println!("not tested: this backend's programs are skipped for good");
        return;
    }
    let _kernel = Preemptive::new();
    let daemon = Daemon::start();
    let told_twice = gate::kernel() >= (7, 0);
    // What is told twice can be missed twice; that is rare, and said.
    for _ in 0..10 {
        let (outcome, times) = preempted(&daemon);
        if told_twice && (times == 0 || says_so(&outcome)) {
            assert_eq!(times == 0, !says_so(&outcome), "{}", outcome.story());
            continue;
        }
        outcome.assert_pass();
        let all = 2 * PROGRAMS + 1;
        for (kind, count) in [("exec/exec", all), ("exec/fork", all), ("exec/exit", all + 1)] {
            assert_eq!(of_kind(&outcome, kind).len(), count, "{kind}{}", outcome.story());
        }
        assert_eq!(times > 0, told_twice, "{}", daemon.log());
        return;
    }
    panic!("never was a program skipped once\n{}", daemon.log());
}

/// What is told once is counted when it is not told.
#[test]
fn what_is_missed_is_counted() {
    let skips = match gate::backend().as_str() {
        "fentry" => true,
        "tracepoint" => gate::kernel() >= (7, 0),
        _ => false,
    };
    if !skips {
        println!("not tested: here programs are not skipped");
        return;
    }
    let _kernel = Preemptive::new();
    let daemon = Daemon::start();
    for _ in 0..10 {
        let (outcome, times) = preempted(&daemon);
        if times == 0 {
            outcome.assert_pass();
            continue;
        }
        outcome.assert_indeterminate();
        assert!(says_so(&outcome), "{}", outcome.story());
        return;
    }
    panic!("never was a program skipped\n{}", daemon.log());
}
