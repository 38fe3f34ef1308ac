//! What can be read of a line without reading all of it. Canonical JSON sorts
//! its keys, so that a record's small members stand at its two ends.

use crate::record::LARGEST;

/// The members of a record that stand at a line's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub action: &'a [u8],
    pub class: &'a [u8],
    pub decision: &'a [u8],
    /// As it stands in the line, with JSON's escapes.
    pub job: &'a [u8],
    /// As it stands in the line.
    pub rule: &'a [u8],
    pub seq: u64,
    /// Such as `2026-01-31T12:00:00.000000000Z`: always of this length, so that
    /// the order of texts is that of times.
    pub ts: &'a [u8],
    pub within: bool,
}

impl<'a> Frame<'a> {
    /// `None` for a line that is no record in canonical JSON.
    pub fn of(line: &'a [u8]) -> Option<Frame<'a>> {
        let rest = line.strip_prefix(b"{\"action\":\"")?;
        let (action, rest) = word(rest)?;
        let (class, rest) = word(rest.strip_prefix(b",\"class\":\"")?)?;
        let rest = rest.strip_prefix(b",\"coverage\":")?;
        let rest = match rest.strip_prefix(b"null") {
            Some(rest) => rest,
            None => word(rest.strip_prefix(b"\"")?)?.1,
        };
        let (decision, rest) = word(rest.strip_prefix(b",\"decision\":\"")?)?;
        let (hash, rest) = rest.strip_prefix(b",\"hash\":\"")?.split_at_checked(64)?;
        if !hash.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let rest = rest.strip_prefix(b"\",\"job\":\"")?;
        let (job, rest) = rest.split_at(string_end(rest)?);

        let (rest, within) = match rest.strip_suffix(b"\"within\":true}") {
            Some(rest) => (rest, true),
            None => (rest.strip_suffix(b"\"within\":false}")?, false),
        };
        let (rest, ts) = split_last(rest.strip_suffix(b"\",")?, TIME)?;
        if ts.first().is_none_or(|digit| !digit.is_ascii_digit()) || ts.last() != Some(&b'Z') {
            return None;
        }
        let rest = rest.strip_suffix(b",\"ts\":\"")?;
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, digits) = split_last(rest, digits)?;
        let seq = number(digits)?;
        let rest = rest.strip_suffix(b",\"schema\":\"effectgate.event/v1\",\"seq\":")?;
        let rest = rest.strip_suffix(b"\"}")?;
        let (rest, rule) = split_last(rest, rest.iter().rev().position(|byte| *byte == b'"')?)?;
        rest.ends_with(b"\"name\":\"").then_some(())?;
        Some(Frame { action, class, decision, job, rule, seq, ts, within })
    }
}

/// Bytes of a time.
const TIME: usize = 30;

fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| !(byte.is_ascii_lowercase() || *byte == b'_'))?;
    let (word, rest) = bytes.split_at(end);
    Some((word, rest.strip_prefix(b"\"")?))
}

/// Where a JSON string ends whose first quote was taken.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &bytes[from..])?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
        if from > bytes.len() {
            return None;
        }
    }
}

fn split_last(bytes: &[u8], count: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(count)?)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let number = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    (number <= LARGEST).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::Record;
    use super::super::scan::tests::line;
    use super::*;

    proptest! {
        #[test]
        fn the_ends_say_what_the_record_says(line in line()) {
            let frame = Frame::of(&line).expect("a record has a frame");
            let record = Record::of(&line).expect("a record");
            prop_assert_eq!(frame.action, record.action.as_bytes());
            prop_assert_eq!(frame.class, record.class.as_bytes());
            prop_assert_eq!(frame.decision, record.decision.as_bytes());
            prop_assert_eq!(frame.rule, record.rule.name.as_bytes());
            prop_assert_eq!(frame.ts, record.ts.as_bytes());
            prop_assert_eq!((frame.seq, frame.within), (record.seq, record.within));
            let job: String = serde_json::from_slice(&[b"\"", frame.job, b"\""].concat())?;
            prop_assert_eq!(&job, &*record.job);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, line in line(), cut in 0usize..900) {
            let _ = Frame::of(&bytes);
            let _ = Frame::of(&line[..cut.min(line.len())]);
            let _ = Frame::of(&line[cut.min(line.len())..]);
        }
    }
}
