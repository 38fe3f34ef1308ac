//! A daemon, and jobs under one manifest that asks about everything: what is
//! read, written and run, and who is spoken to.

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::daemon::{Daemon, documents};
use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Scene, attached, gate};
use serde_json::{Value, json};

/// Directories between the root and the file that is opened.
const DEPTH: usize = 7;

/// What the measured program works on.
pub struct Place {
    pub scene: Scene,
    /// Somebody to speak to.
    peer: UdpSocket,
    pub program: PathBuf,
    /// Where files are written.
    directory: PathBuf,
}

impl Place {
    /// In the scene, with a program of its own and a directory to write to, both
    /// as the manifest will name them.
    pub fn new(program: PathBuf, written: &str) -> Result<Place> {
        let scene = Scene::new();
        let root = scene.root().join(written);
        let directory = (1..=DEPTH).fold(root, |path, level| path.join(format!("level-{level}")));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("file"), "x")?;
        let program = scene.root().join(program);
        if let Some(parent) = program.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(gate::trigger(), &program)?;
        Ok(Place { scene, peer: UdpSocket::bind("127.0.0.1:0")?, program, directory })
    }

    pub fn host(&self) -> Result<String> {
        Ok(self.peer.local_addr()?.to_string())
    }

    /// What `trigger measure WHAT` works on.
    pub fn argument(&self, what: &str) -> Result<String> {
        Ok(match what {
            "create" => self.directory.join("made").display().to_string(),
            "connect" => self.host()?,
            _ => self.directory.join("file").display().to_string(),
        })
    }

    /// The program with these words, ready to start.
    pub fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.scene.root())
            .stdin(Stdio::null());
        command
    }
}

/// A daemon with a place for its jobs.
pub struct House {
    pub daemon: Daemon,
    pub place: Place,
    jobs: AtomicU32,
}

impl House {
    /// Where operations are measured, under a short policy.
    pub fn scene() -> Result<Place> {
        let place = Place::new("tools/trigger".into(), "directory")?;
        let network = json!({ "mode": "allowlist", "hosts": [place.host()?] });
        let manifest =
            Manifest::new().set("extends", json!(["base-linux"])).set("network", network);
        place.scene.write_manifest(&manifest.text());
        Ok(place)
    }

    pub fn new() -> Result<House> {
        Ok(House::of(House::scene()?))
    }

    /// A daemon whose jobs run under the manifest of the place.
    pub fn of(place: Place) -> House {
        House { daemon: Daemon::start(), place, jobs: AtomicU32::new(0) }
    }

    /// What the program prints outside any job, while the daemon watches one.
    pub fn outside(&self, words: &[String]) -> Result<String> {
        let (cgroup, id) = self.start();
        let printed = printed(self.place.command(words));
        self.finish(&id)?;
        drop(cgroup);
        printed
    }

    /// What it prints inside a job, and the verdict.
    pub fn inside(&self, words: &[String]) -> Result<(String, Value)> {
        let (cgroup, id) = self.start();
        let mut command = self.place.command(words);
        let door = attached::enter(&mut command, &cgroup);
        let printed = printed(command);
        drop(door);
        let verdict = self.finish(&id)?;
        Ok((printed?, verdict))
    }

    /// A job of its own cgroup, and its number.
    pub fn start(&self) -> (Cgroup, String) {
        let name = format!("bench-{}", self.jobs.fetch_add(1, Ordering::Relaxed));
        let cgroup = Cgroup::new();
        let id = self.daemon.start_manifest_job(&name, &self.place.scene, &cgroup);
        (cgroup, id)
    }

    /// The verdict.
    pub fn finish(&self, id: &str) -> Result<Value> {
        let output = self.daemon.job(&["finish", id, "--format", "json"]);
        let documents = documents(&output.stdout);
        documents.into_iter().next().with_context(|| format!("no verdict: {output:?}"))
    }
}

fn printed(mut command: Command) -> Result<String> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}
