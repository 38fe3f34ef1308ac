//! One kernel with one backend: boot it, show its results as they come, judge the
//! whole.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use super::guest::Guest;
use super::kernel::Unpacked;
use super::qemu::{self, Clock, End, Limits, Machine, Port};
use super::report::{Outcome, Report, Status};
use super::verified::{Snapshot, Verified};
use super::{Backend, Count, cpio};
use crate::evasions;
use crate::repo::Repo;

/// How much of the console is shown when a machine did not end well.
const TAIL: usize = 40;

/// What every machine of a plan has in common.
#[derive(Debug)]
pub struct Session<'a> {
    pub repo: &'a Repo,
    pub guest: &'a Guest,
    /// The image of the guest's root.
    pub root: &'a Path,
    /// What the programs are held against.
    pub committed: Option<&'a Snapshot>,
    pub limits: Limits,
}

impl Session<'_> {
    /// Runs the guest's tests on `kernel`, with one backend. Whatever keeps a test
    /// from a result counts as a failure, and so does a program that is not as the
    /// snapshot has it.
    pub fn run(&self, kernel: &Unpacked, backend: Backend) -> Result<(Count, Vec<Verified>)> {
        let name = format!("{} {backend}", kernel.name);
        let directory = self.repo.target.join("vm").join(format!("{}-{backend}", kernel.name));
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let initrd = directory.join("initramfs.cpio");
        cpio::write(&self.guest.start(kernel, &[backend])?, &initrd)?;
        let log = directory.join("serial.log");
        eprintln!("{name}: booting, serial log {}", log.display());

        let started = Instant::now();
        let boot = Boot {
            kernel: &kernel.name,
            image: kernel.image()?,
            initrd: &initrd,
            root: self.root,
            log: &log,
            limits: self.limits,
        };
        let (mut report, mut console) = boot.listen()?;
        if report.release.is_none() {
            // Nothing of ours has run, so this is the emulator's failure. Once
            // can happen; twice is reported.
            let died = format!("{name}: died before its first process; booting once more");
            eprint!("{}", paragraph(&died, &console));
            (report, console) = boot.listen()?;
        }
        // It is rebuilt every time.
        let _ = fs::remove_file(&initrd);

        if let Some(snapshot) = self.committed {
            report.faults.extend(snapshot.faults(&kernel.name, &report.verified));
        }
        evasions::keep(self.repo, &name, &report.evasions)?;
        let failed = report.count(&Status::Failed) + report.count(&Status::Unknown);
        let count = Count {
            passed: report.count(&Status::Ok),
            // A fault explains why a test has no result; without one it counts.
            failed: failed.max(usize::from(!report.faults.is_empty())),
            ignored: report.count(&Status::Ignored),
        };
        let mut said = String::new();
        if count.failed > 0 {
            said = explained(&name, &report, &console);
            let _ = writeln!(said, "{name}: the whole log: {}", log.display());
        }
        let release = report.release.as_deref().unwrap_or("unknown release");
        let seconds = started.elapsed().as_secs();
        // In one piece: another machine speaks at the same time.
        eprintln!(
            "{said}{name} ({release}): {} passed, {} failed, {} ignored in {seconds} s",
            count.passed, count.failed, count.ignored
        );
        Ok((count, report.verified))
    }
}

/// A machine that is ready to start.
struct Boot<'a> {
    kernel: &'a str,
    image: PathBuf,
    initrd: &'a Path,
    root: &'a Path,
    log: &'a Path,
    limits: Limits,
}

impl Boot<'_> {
    /// Starts it, prints its results as they come, and returns them with the
    /// last lines of its console.
    fn listen(&self) -> Result<(Report, Vec<String>)> {
        let name = self.kernel;
        let mut report = Report::default();
        let mut tail = VecDeque::with_capacity(TAIL);
        let on_line = |port, line: &str| match port {
            Port::Results => {
                if let Some(outcome) = report.line(line) {
                    print_outcome(name, &outcome);
                }
            }
            Port::Console => {
                if tail.len() == TAIL {
                    tail.pop_front();
                }
                tail.push_back(line.to_owned());
            }
        };
        let Self { image, initrd, root, log, limits, .. } = self;
        let machine = Machine { kernel: image, initrd, root, log, clock: Clock::Host };
        let end = qemu::boot(&machine, *limits, on_line)?;

        let seen = report.outcomes.len();
        let ran_into = report.running().map(str::to_owned);
        report.finish();
        report.outcomes[seen..].iter().for_each(|outcome| print_outcome(name, outcome));
        report.faults.extend(ended_badly(end, *limits, ran_into.as_deref()));
        if let Some(panic) = tail.iter().find(|line| line.contains("Kernel panic")) {
            report.faults.push(format!("the kernel stopped: {}", panic.trim()));
        }
        Ok((report, tail.into()))
    }
}

fn print_outcome(kernel: &str, Outcome { run, test, status }: &Outcome) {
    let status = match status {
        Status::Ok => "ok",
        Status::Failed => "FAILED",
        Status::Ignored => "ignored",
        Status::Unknown => "NO RESULT",
    };
    println!("{kernel} {run}::{test} … {status}");
}

fn ended_badly(end: End, limits: Limits, running: Option<&str>) -> Option<String> {
    let during = running.map(|test| format!(" during `{test}`")).unwrap_or_default();
    match end {
        End::Itself => None,
        End::Silent => Some(format!(
            "hung{during}: nothing was printed for {} s, so the machine was killed",
            limits.silence.as_secs()
        )),
        End::TooLong => Some(format!(
            "still running{during} after {} s in all, so the machine was killed",
            limits.total.as_secs()
        )),
    }
}

fn explained(machine: &str, report: &Report, console: &[String]) -> String {
    let mut said: String =
        report.faults.iter().map(|fault| format!("{machine}: {fault}\n")).collect();
    if !report.text.is_empty() {
        said += &paragraph(&format!("{machine}: what the tests printed:"), &report.text);
    }
    if !report.faults.is_empty() {
        said += &paragraph(&format!("{machine}: the last lines of the console:"), console);
    }
    said
}

/// A line with others below it.
fn paragraph(head: &str, lines: &[String]) -> String {
    let indented = lines.iter().map(|line| format!("    {line}\n"));
    std::iter::once(format!("{head}\n")).chain(indented).collect()
}
