//! The canary: a child of ours that causes one effect of each class, so that
//! a verdict never rests on hooks that do not fire.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    io::{Read, Write},
    net::UdpSocket,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use effectgate_core::input::{Class, Event, FileOp, NetOp, What};

use crate::{
    observe::proc,
    run::cgroup::{CANARIES, Cgroup},
};

/// The job number of the canary's cgroup.
pub const JOB: u64 = u64::MAX - 1;
/// How long the effects may take to arrive.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The hidden command that a canary runs as.
const COMMAND: &str = "__canary";
/// A file that every Linux has and anybody may read.
const SONG: &str = "/proc/version";

/// The canary's own cgroup, there only while the canary is.
#[derive(Debug)]
pub struct Cage {
    cgroup: Cgroup,
}

impl Cage {
    /// # Errors
    /// When a cgroup cannot be made there.
    pub fn make(parent: &Path) -> Result<Cage> {
        let name = format!("{CANARIES}{}", std::process::id());
        Ok(Cage { cgroup: Cgroup::make(&parent.join(name))? })
    }

    /// The id that the kernel knows it by.
    ///
    /// # Errors
    /// When it is gone.
    pub fn id(&self) -> Result<u64> {
        proc::cgroup_id(self.cgroup.path()).context("the canary's cgroup is gone")
    }

    /// Starts a canary in the cage and lets it speak.
    ///
    /// # Errors
    /// When the child cannot be started or moved.
    pub fn release(&self) -> Result<Bird> {
        let mut child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the canary")?;
        let pid = child.id();
        let moved = fs::write(self.cgroup.path().join("cgroup.procs"), pid.to_string())
            .context("cannot move the canary into its cgroup");
        let spoken = moved.and_then(|()| {
            let mut stdin = child.stdin.take().context("the canary has no input")?;
            stdin.write_all(b"!").context("the canary is dead")
        });
        let bird = Bird { child, heard: BTreeSet::new(), until: Instant::now() + PATIENCE };
        spoken.map(|()| bird)
    }
}

/// A canary whose effects are awaited.
#[derive(Debug)]
pub struct Bird {
    child: Child,
    heard: BTreeSet<Class>,
    until: Instant,
}

/// The classes that a canary has to be heard in.
const CLASSES: [Class; 4] = [Class::File, Class::Exec, Class::Env, Class::Net];

impl Bird {
    /// Takes note of an event of the canary's job.
    pub fn hear(&mut self, event: &Event) {
        if event.pid != self.child.id() {
            return;
        }
        let class = match &event.what {
            What::Exec(_) => Class::Exec,
            What::Env { names, .. } if !names.is_empty() => Class::Env,
            What::File { op: FileOp::OpenRead, object, .. } if object.path == SONG.as_bytes() => {
                Class::File
            }
            What::Net { op: NetOp::Connect, port: PORT, .. } => Class::Net,
            _ => return,
        };
        self.heard.insert(class);
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

impl Drop for Bird {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The discard port: nothing listens there, and a UDP connect sends nothing.
const PORT: u16 = 9;

/// When this process was started as a canary: waits until it is in its cage,
/// then causes the effects and ends. Otherwise returns.
pub fn speak() {
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
    let read = fs::File::open(SONG);
    let connected = UdpSocket::bind("127.0.0.1:0").and_then(|s| s.connect(("127.0.0.1", PORT)));
    std::process::exit(i32::from(read.is_err() || connected.is_err()));
}
