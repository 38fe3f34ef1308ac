//! The canary: a child of ours that causes one effect of each class, once when
//! a job starts and ends and once a second in between, so that a verdict never
//! rests on hooks that do not fire. It is one process that executes itself again
//! each time: that costs a fraction of starting another.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    io::{Read, Write},
    net::UdpSocket,
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use effectgate_common::maps::CANARY_JOB;
use effectgate_core::input::{Class, Event, FileOp, NetOp, What};

/// The job number that canaries are labelled with.
pub const JOB: u64 = CANARY_JOB;
/// How long a song may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(5);
/// The hidden command that a canary runs as.
const COMMAND: &str = "__canary";
/// A file that every Linux has and anybody may read.
const FILE: &str = "/proc/version";
/// The discard port: nothing listens there, and a UDP connect sends nothing.
const PORT: u16 = 9;
/// The classes that it must be heard in.
const CLASSES: [Class; 4] = [Class::File, Class::Exec, Class::Env, Class::Net];

/// A canary, and what was heard of its song.
#[derive(Debug)]
pub struct Canary {
    child: Child,
    go: ChildStdin,
    done: ChildStdout,
    heard: BTreeSet<Class>,
    song: Option<Song>,
}

/// A song that has not ended.
#[derive(Debug)]
struct Song {
    until: Instant,
    /// The canary has caused all its effects.
    sung: bool,
}

/// Where a song stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// There is none.
    Silent,
    Singing,
    /// Its effects were caused: what was recorded of them is in the rings.
    Sung,
    /// It did not come to its end.
    Stuck,
}

impl Canary {
    /// Starts one. It is to be labelled before it sings.
    ///
    /// # Errors
    /// When the child cannot be started.
    pub fn start() -> Result<Canary> {
        let mut child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the canary")?;
        let go = child.stdin.take().context("the canary has no input")?;
        let done = child.stdout.take().context("the canary has no output")?;
        rustix::io::ioctl_fionbio(done.as_fd(), true).context("cannot listen to the canary")?;
        Ok(Canary { child, go, done, heard: BTreeSet::new(), song: None })
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it cause its effects.
    ///
    /// # Errors
    /// When it is dead.
    pub fn sing(&mut self) -> Result<()> {
        self.heard.clear();
        self.go.write_all(b"!").context("the canary is dead")?;
        self.song = Some(Song { until: Instant::now() + PATIENCE, sung: false });
        Ok(())
    }

    /// Where its song stands.
    pub fn stand(&mut self) -> Stand {
        let Some(song) = &mut self.song else { return Stand::Silent };
        if !song.sung {
            match self.done.read(&mut [0]) {
                Ok(1) => song.sung = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // It is dead.
                Ok(_) | Err(_) => return Stand::Stuck,
            }
        }
        match () {
            () if song.sung => Stand::Sung,
            () if Instant::now() >= song.until => Stand::Stuck,
            () => Stand::Singing,
        }
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

    /// Ends the song: the classes that were heard and those that were not.
    pub fn end(&mut self) -> (Vec<Class>, Vec<Class>) {
        self.song = None;
        CLASSES.into_iter().partition(|class| self.heard.contains(class))
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When this process was started as a canary: causes the effects, unless it has
/// just been started, and executes itself again when it is told to. Ends with its
/// input. Otherwise returns.
pub fn run_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(COMMAND)) {
        return;
    }
    if args.next().is_some() {
        let read = fs::File::open(FILE);
        let connected = UdpSocket::bind("127.0.0.1:0").and_then(|s| s.connect(("127.0.0.1", PORT)));
        // What failed is not heard, and then says so.
        drop((read, connected));
        let _ = io::stdout().write_all(b"!").and_then(|()| io::stdout().flush());
    }
    let mut byte = [0];
    if io::stdin().read_exact(&mut byte).is_ok() {
        // The exec is an effect of its own.
        let _ = Command::new("/proc/self/exe").args([COMMAND, "!"]).env("CANARY", "1").exec();
    }
    std::process::exit(0);
}
