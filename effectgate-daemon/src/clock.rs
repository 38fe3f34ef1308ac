//! What the machine's clock says.

use std::time::SystemTime;

use effectgate_core::{input::UnixNanos, time};

/// The day by the machine's clock, UTC, `YYYY-MM-DD`.
#[must_use]
pub fn today() -> String {
    time::day(now())
}

/// The time by the machine's clock.
#[must_use]
pub fn now() -> UnixNanos {
    let past = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(past.as_nanos()).unwrap_or(u64::MAX)
}
