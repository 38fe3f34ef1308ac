//! Secrets that a name gives away.

use crate::input::Bytes;
use crate::redact::promises::{
    Header, Program, Promise, header, is_name, option, password_behind, user_option,
};
use crate::redact::replaced;
use crate::redact::shell::Shell;
use crate::secret::may_promise;

/// Replaces the values of secret-like names in a string, which may be one
/// argument or a whole shell script.
pub(super) fn values(bytes: &[u8]) -> Bytes {
    replaced(bytes, |take| each(bytes, &mut |_, start, stop| take(start, stop)))
}

/// Every such value: its name, and where it stands.
pub(super) fn each(bytes: &[u8], found: &mut dyn FnMut(&[u8], usize, usize)) {
    let mut shell = Shell::new(bytes);
    let mut program: Option<&Program> = None;
    let mut at = 0;
    while at < bytes.len() {
        if !is_name(bytes[at]) {
            if matches!(bytes[at], b';' | b'|' | b'&' | b'\n' | b'(') {
                program = None;
            }
            at += 1;
            continue;
        }
        let end = run(bytes, at, is_name);
        let name = &bytes[at..end];
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let value = program
            .and_then(|program| of_program(&mut shell, program, at, end))
            .or_else(|| of_user(&mut shell, at, before, end))
            .or_else(|| value_of(&mut shell, name, before, end));
        if let Some(found) = Program::named(name) {
            program = Some(found);
        } else if program.is_some_and(|program| program.wraps) && !name.starts_with(b"-") {
            program = None;
        }
        at = value.map_or(end, |(start, stop)| {
            found(name, start, stop);
            stop
        });
    }
}

/// The password behind a well-known program's short option.
fn of_program(
    shell: &mut Shell<'_>,
    program: &Program,
    at: usize,
    end: usize,
) -> Option<(usize, usize)> {
    let bytes = shell.bytes;
    let name = &bytes[at..end];
    if !name.starts_with(&program.option) {
        return None;
    }
    let attached = at + program.option.len();
    let start = if attached < end || !program.apart { attached } else { run(bytes, end, is_space) };
    let stop = shell.word(start);
    (stop > start).then_some((start, stop))
}

/// The password of a `user:password` behind an option that takes it.
fn of_user(
    shell: &mut Shell<'_>,
    at: usize,
    before: Option<u8>,
    end: usize,
) -> Option<(usize, usize)> {
    let bytes = shell.bytes;
    let start = at + user_option(&bytes[at..end])?;
    let (start, stop) = match bytes.get(start) {
        Some(b'=') if before.is_none() => (start + 1, bytes.len()),
        Some(b'=') => (start + 1, shell.word(start + 1)),
        Some(b) if is_space(*b) => {
            let start = run(bytes, start, is_space);
            (start, shell.word(start))
        }
        _ if before.is_none() => (start, bytes.len()),
        _ => (start, shell.word(start)),
    };
    let quoted = start < stop && matches!(bytes[start], b'"' | b'\'');
    let user = start + usize::from(quoted);
    let colon = Some(shell.colon(user)).filter(|colon| *colon < stop)?;
    let password = password_behind(&bytes[user..stop], colon - user)?;
    // In quotes all goes, so that none is left open.
    Some((if quoted { start } else { user + password }, stop))
}

/// Where the value of a name that ended at `end` stands.
fn value_of(
    shell: &mut Shell<'_>,
    name: &[u8],
    before: Option<u8>,
    end: usize,
) -> Option<(usize, usize)> {
    let bytes = shell.bytes;
    if !matches!(bytes.get(end), Some(b'=' | b':' | b'"' | b'\'' | b' ' | b'\t')) {
        return None;
    }
    if !may_promise(name) {
        return None;
    }
    let (header, promise) = (header(name), Promise::of(name));
    let is_header = header == Some(Header::Always);
    if header.is_none() && promise.is_none() {
        return None;
    }
    let quote = before.filter(|b| matches!(b, b'"' | b'\''));
    let closed = quote.is_some() && bytes.get(end) == quote.as_ref();
    let mut start = end + usize::from(closed);
    // Told by its first byte, so that a long value is not read for nothing.
    let directory =
        |start: usize| promise == Some(Promise::Directory) && bytes.get(start) == Some(&b'/');
    let kept = |start, stop| promise.is_some_and(|promise| promise.keeps(&bytes[start..stop]));
    if bytes.get(start) == Some(&b'=') {
        if directory(start + 1) {
            return None;
        }
        let (start, stop) = assigned(shell, start + 1, before, quote.filter(|_| !closed));
        return (!kept(start, stop)).then_some((start, stop));
    }
    let spaces = run(bytes, start, is_space);
    if bytes.get(spaces) == Some(&b':') {
        start = run(bytes, spaces + 1, is_space);
        let tight = start == spaces + 1 && !closed;
        // `key:value` without a space is more often a path or a port than a secret.
        if tight && header.is_none() {
            return None;
        }
        if tight && !is_header && quote.is_none() && before.is_some() {
            return Some((start, shell.word(start))).filter(|(start, stop)| stop > start);
        }
        return Some((start, header_end(bytes, start, quote, closed)));
    }
    let option = name.starts_with(b"-") && promise.is_some() && spaces > end && !directory(spaces);
    option
        .then(|| (spaces, option_end(shell, spaces)))
        .filter(|(start, stop)| stop > start && !kept(*start, *stop))
}

/// The end of an option's value inside a script. Where that value is empty or
/// looks like such an option itself, the word behind it goes too.
fn option_end(shell: &mut Shell<'_>, mut start: usize) -> usize {
    let bytes = shell.bytes;
    loop {
        let stop = shell.word(start);
        let next = run(bytes, stop, is_space);
        let word = &bytes[start..stop];
        let goes_on = matches!(word, b"\"\"" | b"''") || option(word).is_some();
        if next == stop || next == bytes.len() || !goes_on {
            return stop;
        }
        start = next;
    }
}

fn assigned(
    shell: &mut Shell<'_>,
    start: usize,
    before: Option<u8>,
    quote: Option<u8>,
) -> (usize, usize) {
    let stop = match (before, quote) {
        // The argument is the assignment: blanks belong to the value.
        (None, _) => shell.bytes.len(),
        (_, Some(quote)) => find(shell.bytes, start, quote),
        _ => shell.word(start),
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

fn find(bytes: &[u8], start: usize, what: u8) -> usize {
    run(bytes, start, |b| b != what)
}

fn run(bytes: &[u8], start: usize, part: impl Fn(u8) -> bool) -> usize {
    let start = start.min(bytes.len());
    start + bytes[start..].iter().take_while(|b| part(**b)).count()
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::values;

    /// Each of these was read to its end once for each of its words.
    #[test]
    fn what_only_begins_like_a_secret_costs_no_more() {
        let parts = ["-u/", "--pwd=/", "-u/x:", "-u\"", "-u'\"", "-u\\", "-u :", "--pwd /", "-u=/"];
        for part in parts {
            let text = format!("={}", part.repeat((1 << 18) / part.len()));
            assert_eq!(values(text.as_bytes()), text.as_bytes(), "{part}");
        }
    }

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
