//! What the machine's clock says of days.

use std::time::SystemTime;

use effectgate_core::time;

/// The day by the machine's clock, UTC, `YYYY-MM-DD`.
#[must_use]
pub fn today() -> String {
    let past = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    time::day(u64::try_from(past.as_nanos()).unwrap_or(u64::MAX))
}
