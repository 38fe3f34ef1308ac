//! A daemon of the tests' own, and the commands that speak to it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::{Value, json};

use crate::cgroup::Cgroup;
use crate::{Scene, gate, wait};

/// Ended when it is dropped, or else with the thread that started it.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// Files of the daemon live here.
    scene: Scene,
    pub port: u16,
}

impl Daemon {
    /// Starts it and waits until it listens.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn start() -> Daemon {
        Daemon::start_in(Scene::new(), &json!({}))
    }

    /// The same where another one was perhaps, with these members in its
    /// configuration.
    ///
    /// # Panics
    /// When it does not listen.
    #[must_use]
    pub fn start_in(scene: Scene, more: &Value) -> Daemon {
        let port = free_port();
        let mut config = json!({
            "socket": scene.path().join("effectgate.sock"),
            "metrics_listen": format!("127.0.0.1:{port}"),
            "state_dir": scene.path().join("state"),
            "backend": gate::backend(),
        });
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let path = scene.path().join("daemon.json");
        fs::write(&path, format!("{config:#}\n")).expect("write");
        let log = File::create(scene.path().join("daemon.log")).expect("create");
        let mut command = Command::new(gate::binary());
        command
            .arg("daemon")
            .arg("--config")
            .arg(path)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("dup"))
            .stderr(log);
        // SAFETY: between fork and exec one system call is made, on numbers.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let child = command.spawn().expect("the binary can be started");
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

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.scene.path().join("effectgate.sock")
    }

    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.scene.path().join("state")
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.scene.path().join("daemon.log")).unwrap_or_default()
    }

    /// `effectgate job …`
    ///
    /// # Panics
    /// When the binary cannot be started.
    #[must_use]
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
    ///
    /// # Panics
    /// When it does not work.
    #[must_use]
    pub fn job_json(&self, words: &[&str]) -> Vec<Value> {
        let output = self.job(&[words, &["--format", "json"]].concat());
        assert!(output.status.success(), "job {words:?}: {output:?}\n{}", self.log());
        documents(&output.stdout)
    }

    /// Asks over the socket, as `effectgate job` does, and gives the answer; nothing
    /// when the daemon hangs up or says nothing.
    ///
    /// # Panics
    /// When it answers with an error.
    #[must_use]
    pub fn ask(&self, request: &Value) -> Option<Value> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(wait::DEADLINE)).ok()?;
        stream.write_all(format!("{request}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let mut answer: Value = serde_json::from_str(&answer).ok()?;
        match answer["ok"].take() {
            Value::Null => panic!("{request}: {answer}\n{}", self.log()),
            found => Some(found),
        }
    }

    /// Starts to watch a cgroup; gives the job's number.
    ///
    /// # Panics
    /// When the daemon refuses.
    #[must_use]
    pub fn start_job(&self, name: &str, envelope: &Path, cgroup: &Cgroup) -> String {
        self.start_job_with(name, &["--envelope", &text(envelope)], cgroup)
    }

    /// The same under the scene's manifest, whose workspace is the root.
    ///
    /// # Panics
    /// When the daemon refuses.
    #[must_use]
    pub fn start_manifest_job(&self, name: &str, scene: &Scene, cgroup: &Cgroup) -> String {
        let (manifest, root) = (text(&scene.manifest()), text(&scene.root()));
        self.start_job_with(name, &["--manifest", &manifest, "--workspace", &root], cgroup)
    }

    /// The same with these options.
    fn start_job_with(&self, name: &str, policy: &[&str], cgroup: &Cgroup) -> String {
        let cgroup = text(cgroup.path());
        let words = [&["start", "--cgroup", &cgroup, "--name", name], policy].concat();
        let found = self.job_json(&words);
        let id = &found.first().unwrap_or_else(|| panic!("job start printed nothing"))["job"];
        id.as_str().map_or_else(|| id.to_string(), str::to_owned)
    }

    #[must_use]
    pub fn metrics(&self) -> String {
        get(self.port, "/metrics")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn end(mut self) -> (ExitStatus, Scene, String) {
        let status = wait::exit(&mut self.child, "the daemon");
        let log = self.log();
        (status, std::mem::take(&mut self.scene), log)
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
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
///
/// # Panics
/// When there is no loopback.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    listener.local_addr().expect("bound").port()
}

/// The body of an answer over HTTP.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn get(port: u16, path: &str) -> String {
    try_get(port, path).unwrap_or_else(|| panic!("no answer to {path} on port {port}"))
}

#[must_use]
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
///
/// # Panics
/// When it holds something else.
#[must_use]
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
