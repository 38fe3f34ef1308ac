//! Times as people write them.

use crate::input::UnixNanos;
use crate::time::{self, SECOND};

/// Which end of a range a time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Since,
    /// A day is included as a whole.
    Until,
}

/// A time as records write it: from RFC 3339, a day (UTC), or how long before
/// `now` (`90s`, `5m`, `2h`, `3d`, `1w`).
///
/// # Errors
/// What to write instead.
pub fn when(text: &str, edge: Edge, now: UnixNanos) -> Result<String, String> {
    const DAY: UnixNanos = 86_400 * SECOND;
    let help = || {
        format!(
            "{text:?} is no time; write it as 2026-01-31T12:00:00Z, as a day (2026-01-31), \
             or how long ago (90s, 5m, 2h, 3d, 1w)"
        )
    };
    if let Some(day) = time::rfc3339(&format!("{text}T00:00:00Z")) {
        let time = match edge {
            Edge::Since => day,
            Edge::Until => day.checked_add(DAY).ok_or_else(help)?,
        };
        return Ok(time::format(time));
    }
    if let Some(time) = time::rfc3339(text) {
        return Ok(time::format(time));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        "d" => DAY,
        "w" => 7 * DAY,
        _ => return Err(help()),
    };
    let long = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    Ok(time::format(now.saturating_sub(long.ok_or_else(help)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let now = time::parse("2026-01-31T12:00:00.000000000Z").expect("a time");
        for (text, since, until) in [
            ("2026-01-30", "2026-01-30T00:00:00.000000000Z", "2026-01-31T00:00:00.000000000Z"),
            ("2h", "2026-01-31T10:00:00.000000000Z", "2026-01-31T10:00:00.000000000Z"),
            ("1w", "2026-01-24T12:00:00.000000000Z", "2026-01-24T12:00:00.000000000Z"),
            (
                "2026-01-30T12:00:00.5+01:00",
                "2026-01-30T11:00:00.500000000Z",
                "2026-01-30T11:00:00.500000000Z",
            ),
        ] {
            assert_eq!(when(text, Edge::Since, now).as_deref(), Ok(since));
            assert_eq!(when(text, Edge::Until, now).as_deref(), Ok(until));
        }
        // Longer ago than there is time.
        assert_eq!(when("9000w", Edge::Since, 5).as_deref(), Ok(&*time::format(0)));
        for bad in
            ["", "h", "5", "-5m", "2026-02-30", "2026-01-30 12:00", "99999999999999999999h", "5y"]
        {
            assert!(when(bad, Edge::Since, now).is_err(), "{bad}");
        }
    }
}
