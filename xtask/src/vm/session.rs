//! One kernel: boot it, show its results as they come, judge the whole.

use std::collections::VecDeque;
use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};

use super::Count;
use super::guest::Guest;
use super::kernel::Unpacked;
use super::qemu::{self, End, Limits, Port};
use super::report::{Outcome, Report, Status};
use crate::repo::Repo;

/// How much of the console is shown when a machine did not end well.
const TAIL: usize = 40;

/// Runs the guest's tests on `kernel`. Whatever keeps a test from a result
/// counts as a failure.
pub fn run(repo: &Repo, kernel: &Unpacked, guest: &Guest, limits: Limits) -> Result<Count> {
    let directory = repo.target.join("vm").join(&kernel.name);
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let initrd = directory.join("initramfs.cpio");
    let size = guest.root(kernel)?.write(&initrd)?;
    let log = directory.join("serial.log");
    let mib = size >> 20;
    eprintln!("{}: booting, root of {mib} MiB, serial log {}", kernel.name, log.display());

    // The archive and what is unpacked from it exist together for a moment.
    let memory = 1024 + 2 * mib;
    let started = Instant::now();
    let mut report = Report::default();
    let mut tail = VecDeque::with_capacity(TAIL);
    let end =
        qemu::boot(&kernel.image()?, &initrd, memory, &log, limits, |port, line| match port {
            Port::Results => {
                if let Some(outcome) = report.line(line) {
                    print_outcome(&kernel.name, &outcome);
                }
            }
            Port::Console => {
                if tail.len() == TAIL {
                    tail.pop_front();
                }
                tail.push_back(line.to_owned());
            }
        })?;
    // It is rebuilt every time, and large.
    let _ = fs::remove_file(&initrd);

    let seen = report.outcomes.len();
    let ran_into = report.running().map(str::to_owned);
    report.finish();
    report.outcomes[seen..].iter().for_each(|outcome| print_outcome(&kernel.name, outcome));
    if let Some(fault) = ended_badly(end, limits, ran_into.as_deref()) {
        report.faults.push(fault);
    }
    if let Some(panic) = tail.iter().find(|line| line.contains("Kernel panic")) {
        report.faults.push(format!("the kernel stopped: {}", panic.trim()));
    }
    let count = Count {
        passed: report.count(&Status::Ok),
        failed: report.count(&Status::Failed)
            + report.count(&Status::Unknown)
            + report.faults.len(),
        ignored: report.count(&Status::Ignored),
    };
    if count.failed > 0 {
        explain(&kernel.name, &report, tail.make_contiguous());
        eprintln!("{}: the whole log: {}", kernel.name, log.display());
    }
    let release = report.release.as_deref().unwrap_or("unknown release");
    let seconds = started.elapsed().as_secs();
    eprintln!(
        "{} ({release}): {} passed, {} failed, {} ignored in {seconds} s",
        kernel.name, count.passed, count.failed, count.ignored
    );
    Ok(count)
}

fn print_outcome(kernel: &str, Outcome { backend, test, status }: &Outcome) {
    let status = match status {
        Status::Ok => "ok",
        Status::Failed => "FAILED",
        Status::Ignored => "ignored",
        Status::Unknown => "NO RESULT",
    };
    println!("{kernel} {backend} kernel::{test} … {status}");
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

fn explain(kernel: &str, report: &Report, console: &[String]) {
    for fault in &report.faults {
        eprintln!("{kernel}: {fault}");
    }
    if !report.text.is_empty() {
        eprintln!("{kernel}: what the tests printed:");
        report.text.iter().for_each(|line| eprintln!("    {line}"));
    }
    if !report.faults.is_empty() {
        eprintln!("{kernel}: the last lines of the console:");
        console.iter().for_each(|line| eprintln!("    {line}"));
    }
}
