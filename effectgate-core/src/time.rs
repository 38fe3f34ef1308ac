//! RFC 3339 times in UTC with nanoseconds, to and from Unix time. Two dozen
//! lines of calendar arithmetic stand in for a calendar library.

use crate::input::UnixNanos;

/// Nanoseconds.
pub const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400;

/// `2025-01-31T12:00:00.000000000Z`.
pub fn format(ts: UnixNanos) -> String {
    let (seconds, nanos) = (ts / SECOND, ts % SECOND);
    let (year, month, day) = civil(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// The day of a time, `2025-01-31`.
pub fn day(ts: UnixNanos) -> String {
    let (year, month, day) = civil(ts / SECOND / DAY);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Reads exactly what [`format()`] writes.
pub fn parse(text: &str) -> Option<UnixNanos> {
    let (day, time) = text.split_once('T')?;
    let (year, month, day) = read_day(day)?;
    let (time, nanos) = time.strip_suffix('Z')?.split_once('.')?;
    let mut parts = time.split(':').map(|part| digits(part, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day)? * DAY + hour * 3600 + minute * 60 + second;
    seconds.checked_mul(SECOND)?.checked_add(digits(nanos, 9)?)
}

/// Reads any time of RFC 3339 (5.6), with any offset; digits behind the ninth
/// of a second are cut off.
pub fn rfc3339(text: &str) -> Option<UnixNanos> {
    const MINUTE: i64 = 60;
    let (day, rest) = text.split_at_checked(10)?;
    let (year, month, day) = read_day(day)?;
    let rest = rest.strip_prefix(['T', 't'])?;
    let (time, rest) = rest.split_at_checked(8)?;
    let mut parts = time.split(':').map(|part| digits(part, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    // 60 is a leap second, which Unix time counts as the next.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (nanos, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            let kept = &rest[..end.min(9)];
            let scale = 10u64.pow(9 - kept.len() as u32);
            (kept.parse::<u64>().ok()? * scale, &rest[end..])
        }
    };
    let offset = match zone.as_bytes().first()? {
        b'Z' | b'z' if zone.len() == 1 => 0,
        sign @ (b'+' | b'-') => {
            let (hours, minutes) = zone[1..].split_once(':')?;
            let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = i64::try_from(hours * 60 + minutes).ok()?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let local = days(year, month, day)? * DAY + hour * 3600 + minute * 60 + second;
    let seconds = local.checked_add_signed(-offset * MINUTE)?;
    seconds.checked_mul(SECOND)?.checked_add(nanos)
}

/// Whether the text is a day that the calendar has, as `YYYY-MM-DD`.
pub(crate) fn is_day(text: &str) -> bool {
    read_day(text).is_some()
}

fn read_day(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    let good = parts.next().is_none()
        && (1..=12).contains(&month)
        && (1..=month_length(year, month)).contains(&day);
    good.then_some((year, month, day))
}

fn digits(text: &str, count: usize) -> Option<u64> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_length(year: u64, month: u64) -> u64 {
    match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01; `None` before it.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let past = year.checked_sub(1970)?;
    // Leap years before `year`, from 1970.
    let leaps = |y: u64| y / 4 - y / 100 + y / 400;
    let leap_days = leaps(year - 1) - leaps(1969);
    let months: u64 = (1..month).map(|month| month_length(year, month)).sum();
    Some(past * 365 + leap_days + months + day - 1)
}

/// Year, month and day of a day since 1970-01-01, by the 400-year cycle that
/// begins on 0000-03-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        for (ts, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400 * SECOND, "2000-02-29T00:00:00.000000000Z"),
            (1_735_689_599 * SECOND + 5, "2024-12-31T23:59:59.000000005Z"),
            (u64::MAX, "2554-07-21T23:34:33.709551615Z"),
        ] {
            assert_eq!(format(ts), text);
            assert_eq!(parse(text), Some(ts));
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "1969-12-31T00:00:00.000000000Z",
            "2023-02-29T00:00:00.000000000Z",
            "2023-01-01T24:00:00.000000000Z",
            "2023-01-01T00:00:00Z",
            "2023-01-01T00:00:00.0Z",
            "2023-01-01 00:00:00.000000000Z",
            "9999-01-01T00:00:00.000000000Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn any_time_of_rfc_3339() {
        let noon = 1_769_860_800 * SECOND;
        for (text, ts) in [
            ("2026-01-31T12:00:00Z", noon),
            ("2026-01-31t12:00:00z", noon),
            ("2026-01-31T12:00:00.5Z", noon + SECOND / 2),
            ("2026-01-31T12:00:00.0000000019Z", noon + 1),
            ("2026-01-31T14:30:00+02:30", noon),
            ("2026-01-31T11:00:00-01:00", noon),
            ("2026-01-31T11:59:60Z", noon),
            ("1970-01-01T01:00:00+01:00", 0),
        ] {
            assert_eq!(rfc3339(text), Some(ts), "{text}");
        }
        assert_eq!(day(noon), "2026-01-31");
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T12:00Z",
            "2026-01-31 12:00:00Z",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00.5",
            "2026-01-31T12:00:00+0200",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00ZZ",
            "2026-02-30T12:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:61Z",
            "1970-01-01T00:00:00+01:00",
            "2026-01-3é12:00:00Z",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(ts: u64) {
            prop_assert_eq!(parse(&format(ts)), Some(ts));
            prop_assert_eq!(rfc3339(&format(ts)), Some(ts));
        }

        #[test]
        fn any_text(text: String) {
            let _ = (parse(&text), rfc3339(&text));
        }
    }
}
