//! What passed, what failed, and what nobody looked at.

use anyhow::Result;

#[derive(Debug, Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
    failures: Vec<String>,
    not_tested: Vec<String>,
}

impl Tally {
    /// A check that either holds or does not; it counts as one test.
    pub fn check(&mut self, name: &str, result: Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => {
                eprintln!("{name}: {error:#}");
                self.failed += 1;
                self.failures.push(name.to_owned());
            }
        }
    }

    pub fn count(&mut self, passed: usize, failed: usize) {
        self.passed += passed;
        self.failed += failed;
    }

    pub fn not_tested(&mut self, what: &str) {
        self.not_tested.push(what.to_owned());
    }

    /// Prints the account and returns whether all is well. In CI something
    /// left untested is a failure too: there, nobody reads the account.
    pub fn conclude(&self, ci: bool) -> bool {
        for name in &self.failures {
            println!("failed: {name}");
        }
        for what in &self.not_tested {
            println!("not tested: {what}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
        self.failed == 0 && (self.not_tested.is_empty() || !ci)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_tested_fails_only_in_ci() {
        let mut tally = Tally::default();
        tally.count(3, 0);
        assert!(tally.conclude(true));
        tally.not_tested("a backend");
        assert!(tally.conclude(false));
        assert!(!tally.conclude(true));
    }

    #[test]
    fn one_failed_check_is_enough() {
        let mut tally = Tally::default();
        tally.count(3, 0);
        tally.check("format", Err(anyhow::anyhow!("no")));
        assert!(!tally.conclude(false));
    }
}
