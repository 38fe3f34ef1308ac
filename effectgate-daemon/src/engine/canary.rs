//! The canary: a child of ours that causes one effect of each class, so that
//! a verdict never rests on hooks that do not fire. The ring is in order, so
//! once it is heard, all that came before it has been heard too.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    io::{Read, Write},
    net::UdpSocket,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use effectgate_core::input::{Class, Event, FileOp, NetOp, What};

/// The job number that canaries are labelled with.
pub const JOB: u64 = u64::MAX - 1;
/// How long one canary's effects may take to arrive once nothing else does.
const PATIENCE: Duration = Duration::from_secs(5);
/// The hidden command that a canary runs as.
const COMMAND: &str = "__canary";
/// A file that every Linux has and anybody may read.
const FILE: &str = "/proc/version";
/// The discard port: nothing listens there, and a UDP connect sends nothing.
const PORT: u16 = 9;
/// The classes that it must be heard in.
const CLASSES: [Class; 4] = [Class::File, Class::Exec, Class::Env, Class::Net];

/// A canary whose effects are awaited.
#[derive(Debug)]
pub struct Canary {
    child: Child,
    heard: BTreeSet<Class>,
    until: Instant,
    /// Records that were taken out of the ring after its end.
    passed: usize,
}

impl Canary {
    /// Starts one, which waits until it is told to go.
    ///
    /// # Errors
    /// When the child cannot be started.
    pub fn start() -> Result<Canary> {
        let child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the canary")?;
        Ok(Canary { child, heard: BTreeSet::new(), until: Instant::now() + PATIENCE, passed: 0 })
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it cause its effects.
    ///
    /// # Errors
    /// When it is dead.
    pub fn go(&mut self) -> Result<()> {
        let mut stdin = self.child.stdin.take().context("the canary has no input")?;
        stdin.write_all(b"!").context("the canary is dead")
    }

    /// Takes note of an event of the canaries' job.
    pub fn hear(&mut self, event: &Event) {
        if event.pid != self.pid() {
            return;
        }
        let class = match &event.what {
            What::Exec(_) => Class::Exec,
            What::Env { names, .. } if !names.is_empty() => Class::Env,
            What::File { op: FileOp::OpenRead, object, .. } if object.path == FILE.as_bytes() => {
                Class::File
            }
            What::Net { op: NetOp::Connect, port: PORT, .. } => Class::Net,
            _ => return,
        };
        self.heard.insert(class);
    }

    /// Takes note that so many records were taken out of a ring that holds
    /// `most`. What lay there before its own comes first, however long that
    /// takes; what a job adds at full speed afterwards is not waited for.
    pub fn taken(&mut self, count: usize, most: usize) {
        if count > 0 && self.passed < most {
            self.until = Instant::now() + PATIENCE;
        }
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            self.passed += count;
        }
    }

    /// Whether there is nothing more to wait for.
    #[must_use]
    pub fn done(&self) -> bool {
        self.missing().is_empty() || Instant::now() >= self.until
    }

    /// The classes that were heard.
    #[must_use]
    pub fn seen(&self) -> Vec<Class> {
        self.heard.iter().copied().collect()
    }

    /// The classes that were not.
    #[must_use]
    pub fn missing(&self) -> Vec<Class> {
        CLASSES.into_iter().filter(|class| !self.heard.contains(class)).collect()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When this process was started as a canary: waits until it is labelled, then
/// causes the effects and ends. Otherwise returns.
pub fn run_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(COMMAND)) {
        return;
    }
    if args.next().is_none() {
        let mut byte = [0];
        if io::stdin().read_exact(&mut byte).is_ok() {
            // The exec is an effect of its own.
            let _ = Command::new("/proc/self/exe").args([COMMAND, "!"]).env("CANARY", "1").exec();
        }
        std::process::exit(1);
    }
    let read = fs::File::open(FILE);
    let connected = UdpSocket::bind("127.0.0.1:0").and_then(|s| s.connect(("127.0.0.1", PORT)));
    std::process::exit(i32::from(read.is_err() || connected.is_err()));
}
