//! Running the binary under test, and what came of it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::record;
use crate::scene::Scene;
use crate::wait;

/// What a job's processes may hold without being listed.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The binary under test.
///
/// # Panics
/// When `EFFECTGATE_BIN` is not set or names no file.
#[must_use]
pub fn binary() -> PathBuf {
    let path = std::env::var_os("EFFECTGATE_BIN").map(PathBuf::from).unwrap_or_else(|| {
        panic!(
            "EFFECTGATE_BIN is not set: these tests run the built binary. \
             `cargo xtask test` builds it and sets the variable"
        )
    });
    path.canonicalize().unwrap_or_else(|error| panic!("EFFECTGATE_BIN={}: {error}", path.display()))
}

/// The `trigger` program: `EFFECTGATE_TRIGGER`, or the one that cargo built
/// beside the tests.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn trigger() -> PathBuf {
    let path = std::env::var_os("EFFECTGATE_TRIGGER").map(PathBuf::from).unwrap_or_else(|| {
        let own = std::env::current_exe().expect("the test's own path");
        // Tests lie in target/debug/deps, programs in target/debug.
        let beside = own.ancestors().skip(1).take(2).map(|place| place.join("trigger"));
        beside.clone().find(|path| path.is_file()).or(beside.last()).unwrap_or_default()
    });
    path.canonicalize().unwrap_or_else(|error| {
        panic!("the trigger program is not at {}: {error}; set EFFECTGATE_TRIGGER", path.display())
    })
}

/// The backend under test.
#[must_use]
pub fn backend() -> String {
    std::env::var("EFFECTGATE_TEST_BACKEND").unwrap_or_else(|_| "tracepoint".to_owned())
}

/// Whether the backend under test sees system-call tracepoints only.
#[must_use]
pub fn on_tracepoints() -> bool {
    backend() == "tracepoint"
}

/// The running kernel's version.
///
/// # Panics
/// When it does not look like one.
#[must_use]
pub fn kernel() -> (u8, u8) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => panic!("kernel release {release:?}"),
    }
}

/// One `effectgate run` of the future.
#[derive(Debug)]
pub struct Gate {
    command: Command,
    /// The option that names the policy's format, and its file.
    policy: (&'static str, PathBuf),
    evidence: PathBuf,
    replayed: bool,
}

impl Gate {
    /// `run` under the scene's envelope and the backend under test, with an
    /// environment of `PATH` alone.
    #[must_use]
    pub fn new(scene: &Scene) -> Gate {
        Gate::of(&binary(), scene)
    }

    /// The same with another copy of the binary.
    #[must_use]
    pub fn of(binary: &Path, scene: &Scene) -> Gate {
        Gate::under(binary, scene, ("--envelope", scene.envelope()))
    }

    /// `run` under the scene's manifest, with its root as the workspace.
    #[must_use]
    pub fn manifest(scene: &Scene) -> Gate {
        Gate::under(&binary(), scene, ("--manifest", scene.manifest()))
    }

    fn under(binary: &Path, scene: &Scene, policy: (&'static str, PathBuf)) -> Gate {
        let mut command = Command::new(binary);
        command
            .arg("run")
            .arg(policy.0)
            .arg(&policy.1)
            .args(["--backend", &backend()])
            .env_clear()
            .env("PATH", PATH)
            .current_dir(scene.root())
            .stdin(Stdio::null());
        Gate { command, policy, evidence: scene.new_evidence(), replayed: true }
    }

    /// An option of `run`.
    #[must_use]
    pub fn option<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Gate {
        self.command.args(words);
        self
    }

    /// Another place for the evidence than a new one in the scene.
    #[must_use]
    pub fn evidence(mut self, path: &Path) -> Gate {
        self.evidence = path.to_owned();
        self
    }

    /// A variable in `effectgate`'s own environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Gate {
        self.command.env(name, value);
        self
    }

    /// Whatever else `Command` can do.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Command)) -> Gate {
        change(&mut self.command);
        self
    }

    /// Does not replay the log afterwards: there is none, or it is cut.
    #[must_use]
    pub fn without_replay(mut self) -> Gate {
        self.replayed = false;
        self
    }

    /// Runs `trigger` with these words.
    pub fn trigger<S: AsRef<OsStr>>(self, words: impl IntoIterator<Item = S>) -> Outcome {
        self.start_trigger(words).end()
    }

    /// Runs a command.
    pub fn run<S: AsRef<OsStr>>(self, command: impl IntoIterator<Item = S>) -> Outcome {
        self.start(command).end()
    }

    pub fn start_trigger<S: AsRef<OsStr>>(self, words: impl IntoIterator<Item = S>) -> Running {
        let mut command = vec![trigger().into_os_string()];
        command.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self.start(command)
    }

    /// # Panics
    /// When the binary cannot be started.
    pub fn start<S: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = S>) -> Running {
        let words: Vec<OsString> =
            command.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self.command.arg("--evidence").arg(&self.evidence).arg("--").args(words);
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self
            .command
            .spawn()
            .unwrap_or_else(|error| panic!("{:?}: {error}", self.command.get_program()));
        Running {
            shown: format!("{:?}", self.command),
            stdin: child.stdin.take(),
            stdout: Some(read(child.stdout.take().expect("piped"))),
            stderr: Some(read(child.stderr.take().expect("piped"))),
            child,
            policy: self.policy,
            evidence: self.evidence,
            replayed: self.replayed,
        }
    }
}

pub(crate) fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// A run that has not ended.
#[derive(Debug)]
pub struct Running {
    child: Child,
    shown: String,
    stdin: Option<ChildStdin>,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    policy: (&'static str, PathBuf),
    evidence: PathBuf,
    replayed: bool,
}

impl Running {
    /// The process id of `effectgate` itself.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its log is written.
    #[must_use]
    pub fn evidence(&self) -> &Path {
        &self.evidence
    }

    /// Gives the command a line of input. Standard input has to be a pipe.
    ///
    /// # Panics
    /// When the command does not read it.
    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("standard input is a pipe");
        writeln!(stdin, "{line}").expect("the command reads its input");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end, or its log replays to another verdict.
    pub fn end(mut self) -> Outcome {
        drop(self.stdin.take());
        let status = wait::exit(&mut self.child, &self.shown);
        let bytes = |thread: &mut Option<JoinHandle<Vec<u8>>>| {
            thread.take().expect("taken once").join().expect("the reader ends with the pipe")
        };
        let stdout = bytes(&mut self.stdout);
        let stderr = bytes(&mut self.stderr);
        let outcome = Outcome {
            shown: std::mem::take(&mut self.shown),
            status,
            command: None,
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            verdict: json(&self.evidence.join("verdict.json")),
            events: record::read_log(&self.evidence.join("events.jsonl")),
            evidence: self.evidence.clone(),
        };
        if self.replayed && outcome.verdict.is_some() {
            outcome.assert_replays(self.policy.0, &self.policy.1);
        }
        outcome
    }
}

impl Drop for Running {
    /// A test that panics in the middle leaves nothing behind.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn json(path: &Path) -> Option<Value> {
    let bytes = fs::read(path).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        panic!("{}: {error}:\n{}", path.display(), String::from_utf8_lossy(&bytes))
    }))
}

/// A run, or a job of a daemon, that has ended.
#[derive(Debug)]
pub struct Outcome {
    shown: String,
    /// Of `run`; of a daemon's job as `job finish` would end.
    pub status: ExitStatus,
    /// Of the command, where `status` says nothing of it.
    command: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// `verdict.json` of the evidence, where there is one.
    verdict: Option<Value>,
    /// Every line of `events.jsonl`.
    pub events: Vec<Value>,
    pub evidence: PathBuf,
}

impl Outcome {
    /// Of a daemon's job whose command ended so.
    pub(crate) fn of_job(
        shown: String,
        command: ExitStatus,
        stdout: Vec<u8>,
        stderr: &[u8],
        evidence: PathBuf,
    ) -> Outcome {
        let verdict = json(&evidence.join("verdict.json"));
        let code = match verdict.as_ref().map(|verdict| record::text(&verdict["verdict"])) {
            Some("pass") => 0,
            Some("fail") => 120,
            Some("indeterminate") => 121,
            _ => 125,
        };
        Outcome {
            shown,
            status: ExitStatus::from_raw(code << 8),
            command: Some(command),
            stdout,
            stderr: String::from_utf8_lossy(stderr).into_owned(),
            verdict,
            events: record::read_log(&evidence.join("events.jsonl")),
            evidence,
        }
    }

    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// # Panics
    /// When the run wrote no verdict.
    #[must_use]
    pub fn verdict(&self) -> &Value {
        self.verdict.as_ref().unwrap_or_else(|| panic!("no verdict was written{}", self.story()))
    }

    #[must_use]
    pub fn has_verdict(&self) -> bool {
        self.verdict.is_some()
    }

    /// The log's records of the violations that the verdict lists.
    ///
    /// # Panics
    /// When verdict and log do not agree.
    #[must_use]
    pub fn violations(&self) -> Vec<&Value> {
        let listed = self.verdict()["violations"].as_array().expect("a list");
        let event = |violation: &Value| {
            let seq = violation["seq"].as_u64()?;
            let event = self.events.get(usize::try_from(seq).ok()?)?;
            let agree = ["class", "action", "rule", "decision", "process"]
                .iter()
                .all(|key| event[key] == violation[key])
                && event["seq"] == seq
                && event["within"] == false
                && violation["program"] == event["process"]["exe"];
            agree.then_some(event)
        };
        listed
            .iter()
            .map(|violation| {
                event(violation).unwrap_or_else(|| {
                    panic!("no such record in the log: {violation}{}", self.story())
                })
            })
            .collect()
    }

    /// # Panics
    /// When the exit code is another one.
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.code(), code, "exit code{}", self.story());
    }

    /// # Panics
    /// When exit code or verdict say anything else than `pass`, or something is
    /// listed as a violation.
    pub fn assert_pass(&self) {
        self.assert_code(0);
        assert!(self.command.is_none_or(|command| command.success()), "{}", self.story());
        assert_eq!(self.verdict()["verdict"], "pass", "{}", self.story());
        assert!(self.violations().is_empty(), "violations{}", self.story());
    }

    /// # Panics
    /// When exit code or verdict say anything else than `fail`.
    pub fn assert_fail(&self) {
        self.assert_code(120);
        assert_eq!(self.verdict()["verdict"], "fail", "{}", self.story());
        assert!(!self.violations().is_empty(), "no violation{}", self.story());
    }

    /// # Panics
    /// When exit code or verdict say anything else than `indeterminate`.
    pub fn assert_indeterminate(&self) {
        self.assert_code(121);
        assert_eq!(self.verdict()["verdict"], "indeterminate", "{}", self.story());
    }

    /// # Panics
    /// When the run was not refused before it began.
    pub fn assert_refused(&self) {
        self.assert_code(122);
        assert!(!self.stderr.trim().is_empty(), "refused without a word{}", self.story());
    }

    /// The log says what happened, and judged again it says the same.
    pub(crate) fn assert_replays(&self, option: &str, policy: &Path) {
        let output = Command::new(binary())
            .arg("replay")
            .arg(self.evidence.join("events.jsonl"))
            .arg(option)
            .arg(policy)
            .args(["--format", "json"])
            .stdin(Stdio::null())
            .output()
            .expect("the binary under test can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        let again: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            let stdout = String::from_utf8_lossy(&output.stdout);
            panic!("replay printed no verdict: {error}: {stdout:?} {said}{}", self.story())
        });
        let live = self.verdict();
        for key in ["verdict", "reasons", "violations", "counts", "lost", "coverage", "log"] {
            assert_eq!(
                again[key],
                live[key],
                "{key} of the replay, then live; {said}{}",
                self.story()
            );
        }
        let holds = i32::from(live["verdict"] != "pass");
        assert_eq!(
            output.status.code(),
            Some(holds),
            "exit code of the replay; {said}{}",
            self.story()
        );
    }

    /// Everything, for a message.
    #[must_use]
    pub fn story(&self) -> String {
        let mut story = format!(
            "\n  of {}\n  which ended with {}\n--- stdout\n{}\n--- stderr\n{}\n--- verdict\n{}\n--- events\n",
            self.shown,
            match self.command {
                Some(command) => format!("{command}, and whose job ended with {}", self.status),
                None => self.status.to_string(),
            },
            self.stdout(),
            self.stderr,
            self.verdict.as_ref().map_or_else(|| "none".to_owned(), |v| format!("{v:#}")),
        );
        const SHOWN: usize = 80;
        for event in self.events.iter().take(SHOWN) {
            story.push_str(&record::line(event));
            story.push('\n');
        }
        if self.events.len() > SHOWN {
            story.push_str(&format!("and {} more\n", self.events.len() - SHOWN));
        }
        story
    }
}
