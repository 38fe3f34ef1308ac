//! The single steps of the test command.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::tally::Tally;
use crate::build::kernel_cargo;
use crate::evasions;
use crate::repo::Repo;
use crate::run::{is_root, run, show};
use crate::toolchain::Toolchain;
use crate::vm::{self, number_before};

pub fn format(repo: &Repo) -> Result<()> {
    run(repo.cargo().args(["fmt", "--all", "--check"]))
}

pub fn clippy(repo: &Repo) -> Result<()> {
    // The default members: everything that stable Rust compiles.
    run(repo.cargo().args(["clippy", "--all-targets", "--", "-D", "warnings"]))
}

/// The kernel programs are linted by the clippy of their own compiler; `None`
/// when that has none.
pub fn kernel_clippy(repo: &Repo) -> Option<Result<()>> {
    let toolchain = match Toolchain::find() {
        Ok(toolchain) if !toolchain.has_clippy() => return None,
        Ok(toolchain) => toolchain,
        Err(error) => return Some(Err(error)),
    };
    Some(run(kernel_cargo(repo, &toolchain, "clippy").args(["--", "-D", "warnings"])))
}

/// Advisories are left out: their database is fetched from the network, and
/// a new entry must not fail a build that was good yesterday.
pub fn deny(repo: &Repo) -> Result<()> {
    run(repo.cargo().args(["deny", "--locked", "check", "bans", "licenses", "sources"]))
}

/// Unit tests and, as root, the kernel tests on this machine's own kernel.
pub fn native(repo: &Repo, tally: &mut Tally) {
    let mut cargo = repo.cargo();
    cargo.args(["nextest", "run", "--no-fail-fast"]).env("EFFECTGATE_PYTHON", repo.python());
    if std::env::var_os("CI").is_some() {
        cargo.args(["--profile", "ci"]);
    }
    if is_root() {
        cargo
            .env("EFFECTGATE_TEST_BACKEND", "tracepoint")
            .env("EFFECTGATE_BIN", repo.effectgate())
            .env("EFFECTGATE_TRIGGER", repo.trigger());
    } else {
        cargo.args(["-E", "not binary(kernel)"]);
        tally.not_tested("kernel tests on this machine's kernel: they need root");
    }
    let mut summary = None;
    let ended = follow(&mut cargo, |line| {
        if line.trim_start().starts_with("Summary [") {
            summary = Some(line.to_owned());
        }
    });
    match summary.as_deref().and_then(nextest_counts) {
        Some(Counts { passed, failed, skipped }) => {
            tally.count(passed, failed);
            // Leaving out the kernel tests was said above.
            if skipped > 0 && is_root() {
                tally.not_tested(&format!("{skipped} ignored tests on this machine"));
            }
            // A failure beyond its tests, such as a lost one, must not pass.
            if failed == 0 && ended.is_err() {
                tally.check("native tests", ended);
            }
        }
        None => tally.check("native tests", ended.and_then(|()| bail!("nextest ran no tests"))),
    }
}

/// What the verifier of this machine's kernel goes through.
pub fn verified(repo: &Repo, tally: &mut Tally) {
    if !is_root() {
        return tally.not_tested("how much this machine's verifier goes through: it needs root");
    }
    let compared = vm::verified_here(repo).and_then(|(kernel, found)| {
        let snapshot = vm::Snapshot::read(repo)?;
        if !snapshot.knows(&kernel) {
            return Ok(Err(kernel));
        }
        match snapshot.faults(&kernel, &found).as_slice() {
            [] => Ok(Ok(())),
            faults => bail!("{}", faults.join("\n")),
        }
    });
    match compared {
        Ok(Err(kernel)) => tally.not_tested(&format!(
            "how much this machine's verifier goes through: nothing is committed for {kernel}"
        )),
        Ok(Ok(())) => tally.check("verified instructions", Ok(())),
        Err(error) => tally.check("verified instructions", Err(error)),
    }
}

/// Attempts to get around the gate, in one process with one daemon.
pub fn evasions(repo: &Repo, tally: &mut Tally) {
    if !is_root() {
        return tally.not_tested("evasions on this machine's kernel: they need root");
    }
    plain(&mut evasions::native(repo), "evasions on this machine's kernel", tally);
}

/// nextest runs no documentation tests.
pub fn doc_tests(repo: &Repo, tally: &mut Tally) {
    let mut cargo = repo.cargo();
    cargo.args(["test", "--doc", "--no-fail-fast"]);
    plain(&mut cargo, "documentation tests", tally);
}

/// Tests that print their results as cargo's own test programs do.
fn plain(cargo: &mut Command, what: &str, tally: &mut Tally) {
    let (mut passed, mut failed) = (0, 0);
    let ended = follow(cargo, |line| {
        if line.starts_with("test result: ") {
            passed += number_before(line, "passed").unwrap_or(0);
            failed += number_before(line, "failed").unwrap_or(0);
        }
    });
    tally.count(passed, failed);
    if failed == 0 && ended.is_err() {
        tally.check(what, ended);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Reads `Summary [ 0.1s] 5 tests run: 3 passed (1 slow), 2 failed, 1 skipped`.
fn nextest_counts(summary: &str) -> Option<Counts> {
    let summary = &summary[summary.find(']')? + 1..];
    let run = summary.split_whitespace().next()?.split('/').next_back()?.parse::<usize>().ok()?;
    let passed = number_before(summary, "passed").unwrap_or(0);
    let skipped = number_before(summary, "skipped").unwrap_or(0);
    // Failed, timed out, crashed, leaked or never started: anything but passed.
    (run > 0).then(|| Counts { passed, failed: run.saturating_sub(passed), skipped })
}

/// Runs the command with both outputs passed on and read, line by line.
fn follow(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let other = writer.try_clone().context("cannot share a pipe")?;
    command.stdin(Stdio::null()).stdout(writer).stderr(other);
    let started = command.spawn().with_context(|| format!("cannot start `{shown}`"));
    // The command keeps the ends for writing; as long as they are open here,
    // reading would not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = started?;
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.with_context(|| format!("cannot read what `{shown}` prints"))?;
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        on_line(&line);
    }
    let status = child.wait().with_context(|| format!("cannot wait for `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status}); its own messages are above");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextests_summary_counts_everything_not_passed_as_failed() {
        let line = "     Summary [   0.1s] 5 tests run: 2 passed (1 slow), 2 failed, 1 timed out, 3 skipped";
        assert_eq!(nextest_counts(line), Some(Counts { passed: 2, failed: 3, skipped: 3 }));
    }

    #[test]
    fn a_run_without_tests_has_no_counts() {
        assert_eq!(nextest_counts("     Summary [   0.0s] 0 tests run: 0 passed, 9 skipped"), None);
    }

    #[test]
    fn a_cut_run_counts_the_tests_that_never_started() {
        let line = "     Summary [   0.1s] 1/4 tests run: 1 passed, 0 skipped";
        assert_eq!(nextest_counts(line).map(|counts| counts.failed), Some(3));
    }

    #[test]
    fn both_outputs_are_followed_and_failure_is_reported() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 1"]);
        assert!(follow(&mut command, |line| lines.push(line.to_owned())).is_err());
        lines.sort();
        assert_eq!(lines, ["err", "out"]);
    }
}
