//! Exit codes, to the letter of the command line's contract.

use effectgate_core::{Outcome, input::Exit};

/// The judged thing holds.
pub const HOLDS: u8 = 0;
/// A judging command found that something does not hold.
pub const DOES_NOT_HOLD: u8 = 1;
/// Wrong usage, or input that cannot be read.
pub const USAGE: u8 = 2;
/// Verdict `fail`.
pub const FAIL: u8 = 120;
/// Verdict `indeterminate`.
pub const INDETERMINATE: u8 = 121;
/// Refused before anything ran.
pub const REFUSED: u8 = 122;
/// The observer itself failed.
pub const OBSERVER: u8 = 125;

/// An error and the code to leave with.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub error: anyhow::Error,
}

/// What a command comes to.
pub type Outcomes = Result<u8, Failure>;

/// Gives an error its exit code.
pub trait Code<T> {
    /// # Errors
    /// The same error, with the code.
    fn code(self, code: u8) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> Code<T> for Result<T, E> {
    fn code(self, code: u8) -> Result<T, Failure> {
        self.map_err(|error| Failure { code, error: error.into() })
    }
}

/// The code of `run` and `job finish`.
#[must_use]
pub fn of_verdict(verdict: Outcome, exit: Option<Exit>) -> u8 {
    match (verdict, exit) {
        (Outcome::Fail, _) => FAIL,
        (Outcome::Indeterminate, _) => INDETERMINATE,
        (Outcome::Pass, Some(Exit::Code(code))) => code as u8,
        (Outcome::Pass, Some(Exit::Signal(signal))) => 128 + signal as u8,
        (Outcome::Pass, None) => HOLDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        for (verdict, exit, code) in [
            (Outcome::Pass, Some(Exit::Code(0)), 0),
            (Outcome::Pass, Some(Exit::Code(7)), 7),
            (Outcome::Pass, Some(Exit::Signal(9)), 137),
            (Outcome::Pass, None, 0),
            (Outcome::Fail, Some(Exit::Code(0)), 120),
            (Outcome::Fail, Some(Exit::Signal(9)), 120),
            (Outcome::Indeterminate, Some(Exit::Code(7)), 121),
            (Outcome::Indeterminate, None, 121),
        ] {
            assert_eq!(of_verdict(verdict, exit), code);
        }
    }
}
