//! A daemon of the test's own, and the commands that speak to it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::{Scene, gate, wait};
use serde_json::{Value, json};

/// Ended with the test.
pub struct Daemon {
    child: Child,
    /// Files of the daemon live here.
    scene: Scene,
    pub port: u16,
}

impl Daemon {
    /// Starts it and waits until it listens.
    pub fn start() -> Daemon {
        let scene = Scene::new();
        let port = free_port();
        let config = json!({
            "socket": scene.path().join("effectgate.sock"),
            "metrics_listen": format!("127.0.0.1:{port}"),
            "state_dir": scene.path().join("state"),
            "backend": gate::backend(),
        });
        let path = scene.path().join("daemon.json");
        fs::write(&path, format!("{config:#}\n")).expect("write");
        let log = File::create(scene.path().join("daemon.log")).expect("create");
        let child = Command::new(gate::binary())
            .arg("daemon")
            .arg("--config")
            .arg(path)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("dup"))
            .stderr(log)
            .spawn()
            .expect("the binary can be started");
        let mut daemon = Daemon { child, scene, port };
        let socket = daemon.socket();
        let mut ended = None;
        wait::until("the daemon listens", || {
            ended = daemon.child.try_wait().expect("a child");
            (ended.is_some() || UnixStream::connect(&socket).is_ok()).then_some(())
        });
        assert!(ended.is_none(), "the daemon ended: {ended:?}\n{}", daemon.log());
        daemon
    }

    pub fn socket(&self) -> PathBuf {
        self.scene.path().join("effectgate.sock")
    }

    pub fn state(&self) -> PathBuf {
        self.scene.path().join("state")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.scene.path().join("daemon.log")).unwrap_or_default()
    }

    /// `effectgate job …`
    pub fn job(&self, words: &[&str]) -> Output {
        Command::new(gate::binary())
            .arg("job")
            .args(words)
            .env("EFFECTGATE_SOCKET", self.socket())
            .stdin(Stdio::null())
            .output()
            .expect("the binary can be started")
    }

    /// The same, for what has to work; gives its documents.
    pub fn job_json(&self, words: &[&str]) -> Vec<Value> {
        let output = self.job(&[words, &["--format", "json"]].concat());
        assert!(output.status.success(), "job {words:?}: {output:?}\n{}", self.log());
        documents(&output.stdout)
    }

    pub fn metrics(&self) -> String {
        get(self.port, "/metrics")
    }

    /// Waits for its end.
    pub fn end(mut self) -> (std::process::ExitStatus, Scene, String) {
        let status = wait::exit(&mut self.child, "the daemon");
        let log = self.log();
        (status, std::mem::take(&mut self.scene), log)
    }
}

impl Drop for Daemon {
    /// Asked to end, so that it removes what it made.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            wait::signal(self.child.id(), libc::SIGTERM);
            let child = &mut self.child;
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                wait::exit(child, "the daemon");
            }));
            if ended.is_err() {
                eprintln!("the daemon had to be killed");
            }
        }
    }
}

/// A port that nobody has now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    listener.local_addr().expect("bound").port()
}

/// The body of an answer over HTTP.
pub fn get(port: u16, path: &str) -> String {
    try_get(port, path).unwrap_or_else(|| panic!("no answer to {path} on port {port}"))
}

pub fn try_get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(wait::DEADLINE)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?;
    (status == "200").then(|| body.to_owned())
}

/// Every JSON document in an output, and the members of a list as documents.
pub fn documents(bytes: &[u8]) -> Vec<Value> {
    serde_json::Deserializer::from_slice(bytes)
        .into_iter::<Value>()
        .map(|value| {
            value.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
        })
        .flat_map(|value| match value {
            Value::Array(list) => list,
            Value::Object(map) if map.len() == 1 && map.contains_key("jobs") => {
                map["jobs"].as_array().cloned().unwrap_or_default()
            }
            other => vec![other],
        })
        .collect()
}

/// One job of the daemon: a cgroup, and in it a process that waits for a word.
pub struct Job {
    pub scene: Scene,
    /// Removed after the process.
    _cgroup: Cgroup,
    pub id: String,
    child: Child,
}

impl Job {
    /// The process is in the cgroup before the job starts.
    pub fn start(daemon: &Daemon, name: &str, scene: Scene, words: &[&str]) -> Job {
        let cgroup = Cgroup::new();
        let child = waiting(words, &scene);
        cgroup.add(child.id());
        let id = start(daemon, name, &scene, &cgroup);
        Job { scene, _cgroup: cgroup, id, child }
    }

    /// The process joins a job that runs.
    pub fn start_then_join(daemon: &Daemon, name: &str, scene: Scene, words: &[&str]) -> Job {
        let cgroup = Cgroup::new();
        let id = start(daemon, name, &scene, &cgroup);
        let child = waiting(words, &scene);
        cgroup.add(child.id());
        Job { scene, _cgroup: cgroup, id, child }
    }

    /// Lets its process go on.
    pub fn release(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("piped");
        stdin.write_all(b"go\n").expect("the process waits");
    }

    /// Waits for its process.
    pub fn wait(&mut self) {
        let status = wait::exit(&mut self.child, "the job's process");
        assert!(status.success(), "the job's process: {status}");
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
    Command::new(gate::trigger())
        .arg("after-line")
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(scene.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the trigger can be started")
}

fn start(daemon: &Daemon, name: &str, scene: &Scene, cgroup: &Cgroup) -> String {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let found = daemon.job_json(&[
        "start",
        "--cgroup",
        &text(cgroup.path()),
        "--envelope",
        &text(&scene.envelope()),
        "--name",
        name,
    ]);
    let id = &found.first().unwrap_or_else(|| panic!("job start printed nothing"))["job"];
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
