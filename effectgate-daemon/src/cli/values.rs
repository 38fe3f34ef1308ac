//! What options of the command line may say.

use std::time::Duration;

use clap::ValueEnum;
use effectgate_core::input;

use crate::exit::{self, Failure};

/// How the user wants a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wanted {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for pull requests: what check, compare and diff find
    Sarif,
}

/// How a result is printed that names no places in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

impl Wanted {
    /// For the commands whose results name no places in files.
    ///
    /// # Errors
    /// When SARIF is wanted of them.
    pub fn plain(self) -> Result<Format, Failure> {
        match self {
            Wanted::Text => Ok(Format::Text),
            Wanted::Json => Ok(Format::Json),
            Wanted::Sarif => Err(Failure {
                code: exit::USAGE,
                error: anyhow::anyhow!(
                    "--format sarif tells what check, compare and diff find; \
                     write --format text or --format json here"
                ),
            }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// It is recorded
    Observe,
    /// The job is killed; connections are denied
    Kill,
    /// It is denied before it happens (lsm; elsewhere connections only)
    Enforce,
}

impl From<Mode> for input::Mode {
    fn from(mode: Mode) -> input::Mode {
        match mode {
            Mode::Observe => input::Mode::Observe,
            Mode::Kill => input::Mode::Kill,
            Mode::Enforce => input::Mode::Enforce,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The best one that works here
    Auto,
    Lsm,
    Fentry,
    Tracepoint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MinCoverage {
    Argument,
    Object,
}

impl From<Backend> for Option<input::Backend> {
    fn from(backend: Backend) -> Self {
        use input::Backend as B;
        match backend {
            Backend::Auto => None,
            Backend::Lsm => Some(B::Lsm),
            Backend::Fentry => Some(B::Fentry),
            Backend::Tracepoint => Some(B::TracePoint),
        }
    }
}

impl From<MinCoverage> for input::Coverage {
    fn from(coverage: MinCoverage) -> Self {
        match coverage {
            MinCoverage::Argument => Self::Argument,
            MinCoverage::Object => Self::Object,
        }
    }
}

/// A whole number of seconds, minutes or hours.
///
/// # Errors
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.strip_suffix(unit).unwrap_or(text);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("write a whole number and s, m or h, such as 90s".to_owned()),
    };
    match number.parse::<u64>().ok().and_then(|n| n.checked_mul(seconds)) {
        None | Some(0) => Err(format!("{text} is no time that can pass")),
        Some(seconds) => Ok(Duration::from_secs(seconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "5", "s", "0s", "-1s", "1.5m", "5 m", "99999999999999999999h", "5d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
