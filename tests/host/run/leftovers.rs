//! Nothing of a job outlives it: no process, no cgroup.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use effectgate_tests::gate::Running;
use effectgate_tests::{Gate, Outcome, Scene, cgroup, record, wait};

fn unique(scene: &Scene) -> String {
    scene.path().file_name().expect("a name").to_str().expect("UTF-8").to_owned()
}

fn cgroup_of(path: &str) -> PathBuf {
    cgroup::mount().join(path.trim_start_matches('/'))
}

#[test]
fn the_cgroup_is_removed() {
    let outcome = Gate::new(&Scene::new()).trigger(["print-cgroup"]);
    outcome.assert_pass();
    let printed = outcome.stdout();
    let path = printed.lines().next().expect("a path").to_owned();
    let own = std::fs::read_to_string("/proc/self/cgroup").expect("/proc is mounted");
    assert!(!own.contains(&format!("0::{path}\n")), "the job shares this test's cgroup");
    assert!(!cgroup_of(&path).exists(), "{path} is still there");
}

/// A process that forked twice, left its session and closed its output.
#[test]
fn a_daemon_is_killed() {
    for mode in ["observe", "kill", "enforce"] {
        let scene = Scene::new();
        let word = unique(&scene);
        let outcome = Gate::new(&scene).option(["--mode", mode]).trigger(["daemon", &word]);
        assert!([0, 121].contains(&outcome.code()), "{mode}{}", outcome.story());
        assert!(wait::processes_with(&word).is_empty(), "left over{}", outcome.story());
        let left = outcome.events.iter().find(|event| record::kind(event) == "guard/leftovers");
        assert!(left.is_some(), "not said under {mode}{}", outcome.story());
    }
}

#[test]
fn many_daemons_are_killed() {
    let scene = Scene::new();
    let word = unique(&scene);
    let trigger = effectgate_tests::gate::trigger();
    let script = format!(
        "i=0; while [ $i -lt 20 ]; do {} daemon {word}; i=$((i+1)); done",
        trigger.display()
    );
    let outcome = Gate::new(&scene).run(["/bin/sh", "-c", &script]);
    assert!([0, 121].contains(&outcome.code()), "{}", outcome.story());
    assert!(wait::processes_with(&word).is_empty(), "left over{}", outcome.story());
}

/// What a daemon did before it was killed counts.
#[test]
fn a_leftover_is_judged() {
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let trigger = effectgate_tests::gate::trigger();
    let script = format!(
        "{0} daemon {1}; {0} open-write {2} & exit 0",
        trigger.display(),
        unique(&scene),
        file.display()
    );
    let outcome = Gate::new(&scene).run(["/bin/sh", "-c", &script]);
    assert!([0, 120, 121].contains(&outcome.code()), "{}", outcome.story());
    assert!(wait::processes_with(&unique(&scene)).is_empty(), "left over{}", outcome.story());
}

/// A command that ignores signals, and runs.
fn started(scene: &Scene) -> (Running, PathBuf) {
    started_with(Gate::new(scene), scene)
}

fn started_with(gate: Gate, scene: &Scene) -> (Running, PathBuf) {
    let ready = scene.root().join("ready");
    let running = gate.start_trigger([Path::new("stubborn"), &ready, Path::new(&unique(scene))]);
    wait::until("the command runs", || ready.exists().then_some(()));
    let pid = wait::until("the command is found", || {
        let found = wait::processes_with(&unique(scene));
        found.into_iter().find(|pid| *pid != running.pid())
    });
    let table = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    let path = table.lines().find_map(|line| line.strip_prefix("0::")).expect("cgroup v2");
    (running, cgroup_of(path))
}

fn assert_ended_early(scene: &Scene, outcome: &Outcome, cgroup: &Path) {
    outcome.assert_indeterminate();
    assert!(wait::processes_with(&unique(scene)).is_empty(), "left over{}", outcome.story());
    assert!(!cgroup.exists(), "{} is still there", cgroup.display());
    let last = outcome.events.last().expect("a log");
    assert!(
        last.to_string().contains("indeterminate"),
        "the last record does not close the log{}",
        outcome.story()
    );
    let why = outcome.verdict()["reasons"].to_string().to_lowercase();
    assert!(why.contains("signal") || why.contains("sig") || why.contains("stopped"), "{why}");
}

#[test]
fn interrupted_in_the_middle() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let scene = Scene::new();
        let (running, cgroup) = started(&scene);
        wait::signal(running.pid(), signal);
        assert_ended_early(&scene, &running.end(), &cgroup);
    }
}

/// Before the command runs there is a cgroup already, and a temporary directory.
#[test]
fn interrupted_while_it_starts() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let scene = Scene::new();
        let ready = scene.root().join("ready");
        let temporary = scene.path().join("temporary");
        std::fs::create_dir(&temporary).expect("mkdir");
        let running = Gate::new(&scene)
            .env("TMPDIR", &temporary)
            .start_trigger([Path::new("stubborn"), &ready]);
        let pid = running.pid();
        wait::until("its cgroup is there", || {
            (!cgroups_of(pid).is_empty() || ready.exists()).then_some(())
        });
        wait::signal(pid, signal);
        let outcome = running.end();
        assert!([121, 122].contains(&outcome.code()), "{}", outcome.story());
        assert!(cgroups_of(pid).is_empty(), "{:?} are left{}", cgroups_of(pid), outcome.story());
        let left = std::fs::read_dir(&temporary).expect("the directory").count();
        assert_eq!(left, 0, "files are left{}", outcome.story());
    }
}

/// Cgroups beside this test's own that bear the process's number.
fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").expect("/proc is mounted");
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).expect("cgroup v2");
    let end = format!("-{pid}");
    std::fs::read_dir(cgroup_of(own))
        .expect("this test's own cgroup")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && path.to_string_lossy().ends_with(&end))
        .collect()
}

/// Impatient people press the keys again.
#[test]
fn interrupted_twice() {
    let scene = Scene::new();
    let (running, cgroup) = started(&scene);
    wait::signal(running.pid(), libc::SIGINT);
    wait::signal(running.pid(), libc::SIGINT);
    assert_ended_early(&scene, &running.end(), &cgroup);
}

/// The job's own leader goes, and others of the job stay for the observer to end.
#[test]
fn command_killed_from_outside() {
    let scene = Scene::new();
    let (running, cgroup) = started(&scene);
    let pids = wait::processes_with(&unique(&scene));
    for pid in pids.into_iter().filter(|pid| *pid != running.pid()) {
        wait::signal(pid, libc::SIGKILL);
    }
    let outcome = running.end();
    outcome.assert_code(128 + libc::SIGKILL);
    assert!(!cgroup.exists(), "{} is still there", cgroup.display());
}

/// Nobody watches a job whose observer is dead, so it does not go on.
#[test]
fn observer_killed() {
    let scene = Scene::new();
    let (running, cgroup) = started_with(Gate::new(&scene).env("TMPDIR", scene.path()), &scene);
    let observer = running.pid();
    wait::signal(observer, libc::SIGKILL);
    let outcome = running.end();
    outcome.assert_code(128 + libc::SIGKILL);
    assert!(!outcome.has_verdict());
    wait::until("the command is gone", || {
        wait::processes_with(&unique(&scene)).is_empty().then_some(())
    });
    // Nobody is left who could remove them.
    for left in [vec![cgroup], cgroups_of(observer)].concat() {
        wait_removed(&left);
    }
}

/// Another run beside this one may be the first to do it.
fn wait_removed(cgroup: &Path) {
    wait::until("the cgroup is empty", || {
        (std::fs::remove_dir(cgroup).is_ok() || !cgroup.exists()).then_some(())
    });
}

/// Killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What dead observers left behind is removed, unless something lives in it:
/// whoever starts next, and whoever starts after that, is not bothered.
#[test]
fn started_twice_beside_leftovers() {
    let own = std::fs::read_to_string("/proc/self/cgroup").expect("/proc is mounted");
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).expect("cgroup v2");
    // No process has these numbers: they are beyond what the kernel gives.
    let number = 1_000_000_000 + std::process::id();
    let [empty, full] = [number, number + 500_000_000]
        .map(|number| cgroup_of(own).join(format!("effectgate-run-{number}")));
    for cgroup in [&empty, &full] {
        std::fs::create_dir(cgroup).unwrap_or_else(|error| panic!("{}: {error}", cgroup.display()));
    }
    let mut sleeper = Command::new(effectgate_tests::gate::trigger());
    sleeper.arg("after-line").arg("true").stdin(Stdio::piped());
    let mut sleeper = Killed(sleeper.spawn().expect("the trigger can be started"));
    std::fs::write(full.join("cgroup.procs"), sleeper.0.id().to_string()).expect("it lives");

    for _ in 0..2 {
        let outcome = Gate::new(&Scene::new()).trigger(["true"]);
        outcome.assert_pass();
        assert!(!empty.exists(), "the empty one is still there{}", outcome.story());
        assert!(full.exists(), "somebody's cgroup was removed{}", outcome.story());
        let ended = sleeper.0.try_wait().expect("a child");
        assert!(ended.is_none(), "a stranger was killed: {ended:?}{}", outcome.story());
    }
    drop(sleeper);
    wait_removed(&full);
}

/// The fork bomb's little brother: processes start while the job is ended.
#[test]
fn forks_while_it_is_ended() {
    let scene = Scene::new();
    let word = unique(&scene);
    let ready = scene.root().join("ready");
    let trigger = effectgate_tests::gate::trigger();
    let script = format!(
        "{0} create {1}; while :; do {0} daemon {word}; done",
        trigger.display(),
        ready.display()
    );
    let running = Gate::new(&scene).start(["/bin/sh", "-c", &script]);
    wait::until("the command runs", || ready.exists().then_some(()));
    wait::signal(running.pid(), libc::SIGTERM);
    let outcome = running.end();
    outcome.assert_indeterminate();
    assert!(wait::processes_with(&word).is_empty(), "left over{}", outcome.story());
    let closed = outcome.events.last().map(record::kind);
    assert!(closed.is_some(), "no log{}", outcome.story());
}
