//! Reads what a machine prints: the marks of `init.sh` and, between them,
//! the output of a Rust test binary.

use super::verified::Verified;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    Failed,
    Ignored,
    /// It began, and nothing said how it ended.
    Unknown,
}

/// One test with one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Backend and test binary.
    pub run: String,
    pub test: String,
    pub status: Status,
}

/// Everything that the machine has said so far.
#[derive(Debug, Default)]
pub struct Report {
    /// `uname -r` of the machine.
    pub release: Option<String>,
    pub outcomes: Vec<Outcome>,
    /// Faults of a whole run, in words.
    pub faults: Vec<String>,
    /// What the tests printed beside their results.
    pub text: Vec<String>,
    /// What the verifier went through.
    pub verified: Vec<Verified>,
    /// Lines for the table of evasions.
    pub evasions: Vec<String>,
    pub done: bool,
    /// The test binary that has begun and not ended, after its backend.
    run: Option<String>,
    running: Option<String>,
    /// Where its outcomes start.
    first: usize,
    summed_up: bool,
}

impl Report {
    /// Takes one line of the results port. Returns an outcome when the line
    /// completed one.
    pub fn line(&mut self, line: &str) -> Option<Outcome> {
        let before = self.outcomes.len();
        if let Some(verified) = Verified::of(line) {
            self.verified.push(verified);
        } else if let Some(mark) = line.strip_prefix("@@effectgate ") {
            self.mark(mark);
        } else if self.run.is_some() {
            self.libtest(line);
        }
        self.outcomes.get(before).cloned()
    }

    /// Called when the machine has ended; completes what is still open.
    pub fn finish(&mut self) {
        self.close_test();
        if let Some(run) = self.run.take() {
            self.faults.push(format!("the machine ended during the tests of {run}"));
        } else if !self.done {
            self.faults.push("the machine ended before it ran every test binary".to_owned());
        }
    }

    pub fn count(&self, status: &Status) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.status == *status).count()
    }

    /// The test that has begun and not ended.
    pub fn running(&self) -> Option<&str> {
        self.running.as_deref()
    }

    fn mark(&mut self, mark: &str) {
        let (word, rest) = mark.split_once(' ').unwrap_or((mark, ""));
        match word {
            "kernel" => self.release = Some(rest.to_owned()),
            "begin" => {
                self.run = Some(rest.to_owned());
                self.first = self.outcomes.len();
                self.summed_up = false;
            }
            "end" => self.end(rest),
            "measured" if !rest.ends_with(" 0") => {
                self.faults.push(format!("the benchmark failed: {rest}"));
            }
            "result" => self.evasions.push(rest.to_owned()),
            "done" => self.done = true,
            _ => {}
        }
    }

    /// `BACKEND BINARY STATUS`. The status must agree with the lines that were read:
    /// a crash of the test binary is then never taken for success.
    fn end(&mut self, rest: &str) {
        self.close_test();
        let (run, status) = rest.rsplit_once(' ').unwrap_or((rest, "?"));
        let failed = self.outcomes[self.first..]
            .iter()
            .any(|outcome| matches!(outcome.status, Status::Failed | Status::Unknown));
        if status != "0" && !failed {
            self.faults.push(format!("{run}: the test binary ended with status {status}"));
        } else if !self.summed_up {
            self.faults.push(format!("{run}: the test binary printed no summary"));
        }
        self.run = None;
    }

    fn libtest(&mut self, line: &str) {
        if let Some((name, rest)) = line.strip_prefix("test ").and_then(|l| l.split_once(" ... ")) {
            self.close_test();
            let name = name.strip_suffix(" - should panic").unwrap_or(name);
            self.running = Some(name.to_owned());
            match status(rest) {
                Some(status) => self.close_with(status),
                None => self.text.push(rest.to_owned()),
            }
        } else if let Some(summary) = line.strip_prefix("test result: ") {
            self.close_test();
            self.sum_up(summary);
        } else if let Some(status) = status(line).filter(|_| self.running.is_some()) {
            // A child of the test wrote between its name and its result.
            self.close_with(status);
        } else if !(line.is_empty() || line.starts_with("running ")) {
            self.text.push(line.to_owned());
        }
    }

    /// `ok. 3 passed; 1 failed; 0 ignored; …` must count what was read.
    fn sum_up(&mut self, summary: &str) {
        self.summed_up = true;
        let mine = &self.outcomes[self.first..];
        for (word, statuses) in [
            ("passed", &[Status::Ok][..]),
            ("failed", &[Status::Failed][..]),
            ("ignored", &[Status::Ignored][..]),
        ] {
            let read = mine.iter().filter(|outcome| statuses.contains(&outcome.status)).count();
            let said = number_before(summary, word);
            if said != Some(read) {
                let said = said.map_or_else(|| "nothing".to_owned(), |said| said.to_string());
                self.faults.push(format!("the summary counts {said} {word}, but {read} were read"));
            }
        }
    }

    fn close_test(&mut self) {
        self.close_with(Status::Unknown);
    }

    fn close_with(&mut self, status: Status) {
        if let Some(test) = self.running.take() {
            let run = self.run.clone().unwrap_or_default();
            self.outcomes.push(Outcome { run, test, status });
        }
    }
}

fn status(text: &str) -> Option<Status> {
    match text.split([',', ' ']).next() {
        Some("ok") if text == "ok" || text.starts_with("ok <") => Some(Status::Ok),
        Some("FAILED") => Some(Status::Failed),
        Some("ignored") => Some(Status::Ignored),
        _ => None,
    }
}

/// The number in front of `word`, as in `3 passed;`.
pub fn number_before(text: &str, word: &str) -> Option<usize> {
    let words: Vec<_> = text.split([' ', ';', ',']).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|candidate| *candidate == word)?;
    words.get(at.checked_sub(1)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Report {
        let mut report = Report::default();
        for line in lines.lines().map(str::trim_start) {
            report.line(line);
        }
        report.finish();
        report
    }

    #[test]
    fn a_whole_run() {
        let report = read(
            "@@effectgate kernel 6.12.1
             @@effectgate begin lsm kernel
             running 3 tests
             test file_open ... ok
             test net ... FAILED
             test slow ... ignored, needs a network
             test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out
             @@effectgate end lsm kernel 101
             @@effectgate done",
        );
        assert_eq!(report.faults, [""; 0]);
        assert_eq!(report.release.as_deref(), Some("6.12.1"));
        let statuses: Vec<_> = report.outcomes.iter().map(|o| o.status.clone()).collect();
        assert_eq!(statuses, [Status::Ok, Status::Failed, Status::Ignored]);
    }

    #[test]
    fn every_binary_with_every_backend_is_told_apart() {
        let report = read(
            "@@effectgate begin lsm kernel
             test a ... ok
             test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured
             @@effectgate end lsm kernel 0
             @@effectgate begin tracepoint real
             test a ... ok
             test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured
             @@effectgate end tracepoint real 0
             @@effectgate done",
        );
        assert_eq!(report.faults, [""; 0]);
        let runs: Vec<_> = report.outcomes.iter().map(|outcome| outcome.run.as_str()).collect();
        assert_eq!(runs, ["lsm kernel", "tracepoint real"]);
    }

    #[test]
    fn what_a_child_writes_does_not_hide_a_result() {
        let report = read(
            "@@effectgate begin lsm kernel
             test a ... hello from a child
             ok
             test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured
             @@effectgate end lsm kernel 0
             @@effectgate done",
        );
        assert_eq!(report.faults, [""; 0]);
        assert_eq!(report.count(&Status::Ok), 1);
        assert_eq!(report.text, ["hello from a child"]);
    }

    #[test]
    fn a_machine_that_dies_within_a_test_is_a_fault_and_the_test_is_named() {
        let report = read("@@effectgate begin lsm kernel\ntest a ... ok\ntest b ... ");
        assert_eq!(report.outcomes[1].test, "b");
        assert_eq!(report.outcomes[1].status, Status::Unknown);
        assert_eq!(report.faults.len(), 1);
    }

    #[test]
    fn a_test_binary_that_crashes_is_a_fault() {
        let report = read(
            "@@effectgate begin lsm kernel\n@@effectgate end lsm kernel 139\n@@effectgate done",
        );
        assert!(report.faults[0].contains("139"), "{:?}", report.faults);
    }

    #[test]
    fn a_run_cut_short_with_success_is_a_fault() {
        let report =
            read("@@effectgate begin lsm kernel\n@@effectgate end lsm kernel 0\n@@effectgate done");
        assert!(report.faults[0].contains("no summary"), "{:?}", report.faults);
    }

    #[test]
    fn a_summary_that_counts_otherwise_is_a_fault() {
        let report = read(
            "@@effectgate begin lsm kernel
             test a ... ok
             test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured
             @@effectgate end lsm kernel 0
             @@effectgate done",
        );
        assert!(report.faults[0].contains("2 passed"), "{:?}", report.faults);
    }
}
