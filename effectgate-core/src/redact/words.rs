//! Secrets that a name gives away.

use crate::input::Bytes;
use crate::redact::REDACTED;
use crate::secret::is_secret_name;

/// `--token`, `-password`: the next argument is the secret.
pub(super) fn is_secret_option(argument: &[u8]) -> bool {
    argument.starts_with(b"-") && argument.iter().all(|b| is_name(*b)) && is_secret_name(argument)
}

/// Replaces the values of secret-like names in a string, which may be one
/// argument or a whole shell script.
pub(super) fn values(bytes: &[u8]) -> Bytes {
    let mut out = Bytes::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if !is_name(bytes[at]) {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let end = run(bytes, at, is_name);
        let name = &bytes[at..end];
        let before = at.checked_sub(1).map(|before| bytes[before]);
        out.extend_from_slice(name);
        let value = value_of(bytes, name, before, end);
        match value {
            None => at = end,
            Some((start, stop)) => {
                out.extend_from_slice(&bytes[end..start]);
                out.extend_from_slice(REDACTED);
                at = stop;
            }
        }
    }
    out
}

/// Where the value of a name that ended at `end` stands.
fn value_of(bytes: &[u8], name: &[u8], before: Option<u8>, end: usize) -> Option<(usize, usize)> {
    let header = [&b"authorization"[..], b"proxy-authorization", b"cookie", b"set-cookie"];
    let is_header = header.contains(&name.to_ascii_lowercase().as_slice());
    if !is_header && !is_secret_name(name) {
        return None;
    }
    let quote = before.filter(|b| matches!(b, b'"' | b'\''));
    let closed = quote.is_some() && bytes.get(end) == quote.as_ref();
    let mut start = end + usize::from(closed);
    if bytes.get(start) == Some(&b'=') {
        return Some(assigned(bytes, start + 1, before, quote.filter(|_| !closed)));
    }
    let spaces = run(bytes, start, is_space);
    if bytes.get(spaces) == Some(&b':') {
        start = run(bytes, spaces + 1, is_space);
        // `key:value` without a space is more often a path or a port than a secret.
        if start == spaces + 1 && !closed && !is_header {
            return None;
        }
        return Some((start, header_end(bytes, start, quote, closed)));
    }
    let option = name.starts_with(b"-") && !is_header && spaces > end;
    option.then(|| (spaces, option_end(bytes, spaces))).filter(|(start, stop)| stop > start)
}

/// The end of an option's value inside a script. Where that value looks like
/// such an option itself, the word behind it goes too.
fn option_end(bytes: &[u8], mut start: usize) -> usize {
    loop {
        let stop = shell_word(bytes, start);
        let next = run(bytes, stop, is_space);
        if next == stop || next == bytes.len() || !is_secret_option(&bytes[start..stop]) {
            return stop;
        }
        start = next;
    }
}

fn assigned(bytes: &[u8], start: usize, before: Option<u8>, quote: Option<u8>) -> (usize, usize) {
    let stop = match (before, quote) {
        // The argument is the assignment: blanks belong to the value.
        (None, _) => bytes.len(),
        (_, Some(quote)) => find(bytes, start, quote),
        _ => shell_word(bytes, start),
    };
    (start, stop)
}

/// A header's value ends with its line or with the quote around it.
fn header_end(bytes: &[u8], start: usize, quote: Option<u8>, closed: bool) -> usize {
    match (quote, bytes.get(start)) {
        // `"name": "value"`: the value has quotes of its own.
        (Some(quote), Some(own)) if closed && *own == quote => {
            (find(bytes, start + 1, quote) + 1).min(bytes.len())
        }
        (Some(_), _) if closed => run(bytes, start, |b| !matches!(b, b',' | b'}' | b'\n')),
        (Some(quote), _) => find(bytes, start, quote).min(find(bytes, start, b'\n')),
        (None, _) => find(bytes, start, b'\n'),
    }
}

/// The end of a shell word: quotes and backslashes keep blanks inside.
fn shell_word(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(b) = bytes.get(at) {
        at = match b {
            b'\\' => at + 2,
            b'"' | b'\'' => find(bytes, at + 1, *b) + 1,
            b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b')' => return at,
            _ => at + 1,
        };
    }
    at.min(bytes.len())
}

fn find(bytes: &[u8], start: usize, what: u8) -> usize {
    run(bytes, start, |b| b != what)
}

fn run(bytes: &[u8], start: usize, part: impl Fn(u8) -> bool) -> usize {
    let start = start.min(bytes.len());
    start + bytes[start..].iter().take_while(|b| part(**b)).count()
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::values;

    #[test]
    fn examples() {
        for (from, want) in [
            ("API_KEY=abc", "API_KEY=[redacted]"),
            ("API_KEY=a b c", "API_KEY=[redacted]"),
            ("--token=abc", "--token=[redacted]"),
            ("export DB_PASSWORD=abc; make", "export DB_PASSWORD=[redacted]; make"),
            ("x; TOKEN=\"a b\" make", "x; TOKEN=[redacted] make"),
            ("x; TOKEN=a\\ b make", "x; TOKEN=[redacted] make"),
            ("env 'SECRET=a b' make", "env 'SECRET=[redacted]' make"),
            ("Authorization: Bearer abc", "Authorization: [redacted]"),
            ("curl -H 'X-Api-Key: abc' http://x", "curl -H 'X-Api-Key: [redacted]' http://x"),
            (r#"{"password": "a b", "x": 1}"#, r#"{"password": [redacted], "x": 1}"#),
            ("mysql --password abc -e x", "mysql --password [redacted] -e x"),
            ("p --token --key abc -e x", "p --token [redacted] -e x"),
            ("MONKEY=1 KEYBOARD=2", "MONKEY=1 KEYBOARD=2"),
            ("/private:/data", "/private:/data"),
            ("PATH=/bin", "PATH=/bin"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(values(from.as_bytes())).unwrap(), want);
            assert_eq!(String::from_utf8(values(want.as_bytes())).unwrap(), want, "again");
        }
    }
}
