//! A job of the daemon whose process waits for a word.

use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};

use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::daemon::{Daemon, documents};
use effectgate_tests::{Scene, gate, wait};
use serde_json::Value;

/// One job of the daemon: a cgroup, and in it a process that waits for a word.
pub struct Job {
    pub scene: Scene,
    /// Removed after the process.
    pub cgroup: Cgroup,
    pub id: String,
    child: Child,
}

impl Job {
    /// The process is in the cgroup before the job starts.
    pub fn start(daemon: &Daemon, name: &str, scene: Scene, words: &[&str]) -> Job {
        let cgroup = Cgroup::new();
        let child = waiting(words, &scene);
        cgroup.add(child.id());
        let id = daemon.start_job(name, &scene.envelope(), &cgroup);
        Job { scene, cgroup, id, child }
    }

    /// The same under the scene's manifest.
    pub fn under_manifest(daemon: &Daemon, name: &str, scene: Scene, words: &[&str]) -> Job {
        let cgroup = Cgroup::new();
        let child = waiting(words, &scene);
        cgroup.add(child.id());
        let id = daemon.start_manifest_job(name, &scene, &cgroup);
        Job { scene, cgroup, id, child }
    }

    /// The process joins a job that runs.
    pub fn start_then_join(daemon: &Daemon, name: &str, scene: Scene, words: &[&str]) -> Job {
        let child = waiting(words, &scene);
        Job::join(daemon, name, scene, child)
    }

    /// This process, which waits, joins a job that runs.
    pub fn join(daemon: &Daemon, name: &str, scene: Scene, child: Child) -> Job {
        let cgroup = Cgroup::new();
        let id = daemon.start_job(name, &scene.envelope(), &cgroup);
        cgroup.add(child.id());
        Job { scene, cgroup, id, child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets its process go on.
    pub fn release(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("piped");
        stdin.write_all(b"go\n").expect("the process waits");
    }

    /// Waits for its process.
    pub fn wait(&mut self) {
        let status = self.ended();
        assert!(status.success(), "the job's process: {status}");
    }

    /// How its process ends.
    pub fn ended(&mut self) -> ExitStatus {
        wait::exit(&mut self.child, "the job's process")
    }

    /// `job finish`: exit code and verdict.
    pub fn finish(&self, daemon: &Daemon) -> (i32, Value) {
        let output = daemon.job(&["finish", &self.id, "--format", "json"]);
        let code = output.status.code().expect("an exit code");
        let mut found = documents(&output.stdout);
        assert_eq!(found.len(), 1, "job finish {}: {output:?}\n{}", self.id, daemon.log());
        (code, found.remove(0))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn waiting(words: &[&str], scene: &Scene) -> Child {
    let words = [&["after-line"], words].concat();
    trigger(&words, scene).spawn().expect("the trigger can be started")
}

/// With a pipe to tell it to go on, and an environment of `PATH` alone.
pub fn trigger(words: &[&str], scene: &Scene) -> Command {
    let mut command = Command::new(gate::trigger());
    command
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(scene.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    command
}
