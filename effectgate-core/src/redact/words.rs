//! Secrets that a name gives away.

use crate::input::Bytes;
use crate::redact::promises::{
    Header, Place, Program, Promise, header, is_name, option, password_behind, user_option,
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
            .and_then(|program| of_program(&mut shell, program.place, at, end))
            .or_else(|| of_user(&mut shell, at, before, end))
            .or_else(|| value_of(&mut shell, at, end));
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

/// The secret of a well-known program, in this word or the next one.
fn of_program(
    shell: &mut Shell<'_>,
    place: Place,
    at: usize,
    end: usize,
) -> Option<(usize, usize)> {
    let bytes = shell.bytes;
    if place.announces(&bytes[at..end]) {
        let start = run(bytes, end, is_space);
        let stop = shell.word(start);
        return (stop > start).then_some((start, stop));
    }
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let quote = before.filter(|b| matches!(b, b'"' | b'\''));
    // Of a pair it must be the beginning: `a/b` is not in `@/x/a/b`.
    let begins = before.is_none_or(is_space) || quote.is_some();
    if matches!(place, Place::Pair(_)) && !begins {
        return None;
    }
    let stop = quote.map_or_else(|| shell.word(at), |quote| find(bytes, at, quote));
    let start = at + place.inside(&bytes[at..stop])?;
    Some((start, stop))
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

/// Where the value of the name in these places stands.
fn value_of(shell: &mut Shell<'_>, at: usize, end: usize) -> Option<(usize, usize)> {
    let bytes = shell.bytes;
    let name = &bytes[at..end];
    let follows = bytes.get(end)?;
    if !matches!(follows, b'=' | b':' | b'"' | b'\'' | b' ' | b'\t' | b'>' | b'+' | b'%') {
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
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let quote = before.filter(|b| matches!(b, b'"' | b'\''));
    let closed = quote.is_some() && bytes.get(end) == quote.as_ref();
    let mut start = end + usize::from(closed);
    // Told by its first byte, so that a long value is not read for nothing.
    let directory =
        |start: usize| promise == Some(Promise::Directory) && bytes.get(start) == Some(&b'/');
    let kept = |start, stop| promise.is_some_and(|promise| promise.keeps(&bytes[start..stop]));
    if let Some(given) = given(bytes, start, closed) {
        let (Given::Tight(value) | Given::Apart(value)) = given;
        if directory(value) {
            return None;
        }
        let (start, stop) = match given {
            Given::Tight(start) => {
                let (start, stop) = assigned(shell, start, before, quote.filter(|_| !closed));
                // `key="Token" value="…"`: which of them is the secret is not known.
                let value = attribute(bytes, stop).map(|value| shell.word(value));
                (start, value.unwrap_or(stop))
            }
            Given::Apart(start) => (start, statement_end(bytes, start)),
        };
        return (!kept(start, stop)).then_some((start, stop));
    }
    if let Some(element) = element(bytes, at, end) {
        return Some(element);
    }
    if let Some(start) = attribute(bytes, start) {
        let stop = shell.word(start);
        return (promise.is_some() && !kept(start, stop)).then_some((start, stop));
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
    if promise.is_none() || spaces == end || directory(spaces) {
        return None;
    }
    if name.starts_with(b"-") {
        let stop = option_end(shell, spaces);
        return (stop > spaces && !kept(spaces, stop)).then_some((spaces, stop));
    }
    // `set password …`: a word that is no word of a language.
    let stop = shell.word(spaces);
    is_random(&bytes[spaces..stop]).then_some((spaces, stop))
}

/// How a value is given to a name: it begins here.
enum Given {
    /// `NAME=value`, also with `:=` or `+=`, or as a URL writes it.
    Tight(usize),
    /// `name = value`, as languages write it.
    Apart(usize),
}

/// What stands behind a name, and its closing quote where it has one.
fn given(bytes: &[u8], from: usize, closed: bool) -> Option<Given> {
    const SIGNS: [&[u8]; 5] = [b"=", b":=", b"+=", b"%3D", b"%3d"];
    // `environ["TOKEN"] = …`
    let from = from + usize::from(closed && bytes.get(from) == Some(&b']'));
    let spaces = run(bytes, from, is_space);
    let sign = SIGNS.iter().find(|sign| bytes[spaces..].starts_with(sign))?;
    let after = spaces + sign.len();
    if spaces == from && !closed {
        return Some(Given::Tight(after));
    }
    let start = run(bytes, after, |b| is_space(b) || matches!(b, b'=' | b'>'));
    (start < bytes.len()).then_some(Given::Apart(start))
}

/// What an element of this name holds: `<password>…</password>`.
fn element(bytes: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
    // A tag is short: what only looks like one is not read to its end each time.
    const TAG: usize = 256;
    let mut opened = bytes[at.saturating_sub(TAG)..at].iter().rev();
    let prefix = opened.find(|b| !is_name(**b) && **b != b':')?;
    let near = &bytes[..bytes.len().min(end + TAG)];
    let tag = run(near, end, |b| !matches!(b, b'<' | b'>'));
    if *prefix != b'<' || near.get(tag) != Some(&b'>') {
        return None;
    }
    let start = tag + 1;
    let stop = find(bytes, start, b'<');
    (stop > start && stop < bytes.len()).then_some((start, stop))
}

/// Where the value begins that an attribute gives to a name before it:
/// `<Password value="…">`, `key="Password" value="…"`.
fn attribute(bytes: &[u8], end: usize) -> Option<usize> {
    const VALUE: &[u8] = b"value=";
    let at = run(bytes, end, is_space);
    let word = bytes.get(at..at + VALUE.len())?;
    (at > end && word.eq_ignore_ascii_case(VALUE)).then_some(at + VALUE.len())
}

/// The end of a value in a line of a script: of its quotes, or where the line or
/// the statement goes on.
fn statement_end(bytes: &[u8], start: usize) -> usize {
    if let Some(quote @ (b'"' | b'\'')) = bytes.get(start) {
        return quoted_end(bytes, start + 1, *quote);
    }
    run(bytes, start, |b| !matches!(b, b'\n' | b';' | b',' | b'&' | b'|' | b')' | b'}'))
}

/// Letters of both cases and digits, long and without a break: what a machine
/// made up.
pub(super) fn is_random(word: &[u8]) -> bool {
    const LEAST: usize = 16;
    let quote = |b: &u8| matches!(b, b'"' | b'\'');
    let word = match word {
        [first, inner @ .., last] if quote(first) && first == last => inner,
        word => word,
    };
    let has = |part: fn(&u8) -> bool| word.iter().any(part);
    word.len() >= LEAST
        && word.iter().all(|b| b.is_ascii_alphanumeric() || b"+/=_-".contains(b))
        && !matches!(word[0], b'/' | b'-')
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
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

/// Behind the quote that closes; one behind a backslash does not.
fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    while let Some(b) = bytes.get(at) {
        at += if *b == b'\\' { 2 } else { 1 };
        if *b == quote {
            break;
        }
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

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::values;

    /// Each of these was read to its end once for each of its names.
    #[test]
    fn what_only_begins_like_a_value_costs_no_more() {
        for part in [
            "token ",
            "token:",
            "<token ",
            "token> ",
            "<token>",
            "token = ",
            "token='",
            "token \"'",
            "token:\"",
            "\"token\": \"",
            "--token \"'",
            "--token --token ",
            "-u \"a:",
            "x-key: \"",
            "token=\"\\",
            "token=a\\ ",
            "<token>a",
            "token%3D ",
            "x; token=",
        ] {
            let text = part.repeat((1 << 17) / part.len());
            assert!(!values(text.as_bytes()).is_empty(), "{part}");
        }
    }

    /// Each of these was read to its end once for each of its words.
    #[test]
    fn what_only_begins_like_a_secret_costs_no_more() {
        let parts = ["-u/", "--pwd=/", "-u/x:", "-u\"", "-u'\"", "-u\\", "-u :", "--pwd /", "-u=/"];
        for part in parts {
            let text = format!("={}", part.repeat((1 << 18) / part.len()));
            assert_eq!(values(text.as_bytes()), text.as_bytes(), "{part}");
        }
        for part in ["password \"", "<password", "set password ", "--pwd = /", "password value"] {
            values(part.repeat((1 << 18) / part.len()).as_bytes());
        }
        for program in ["net", "sqlplus", "openssl"] {
            for part in ["a\\ ", "\"a ", "'a\" ", "-", "- \\"] {
                let text = format!("{program} {}", part.repeat((1 << 18) / part.len()));
                values(text.as_bytes());
            }
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
            (r#"x; TOKEN="a\" b" make"#, "x; TOKEN=[redacted] make"),
            (r"x; token = 'a\' b', 1", "x; token = [redacted], 1"),
            ("env 'SECRET=a b' make", "env 'SECRET=[redacted]' make"),
            ("Authorization: Bearer abc", "Authorization: [redacted]"),
            ("curl -H 'X-Api-Key: abc' http://x", "curl -H 'X-Api-Key: [redacted]' http://x"),
            (r#"{"password": "a b", "x": 1}"#, r#"{"password": [redacted], "x": 1}"#),
            ("mysql --password abc -e x", "mysql --password [redacted] -e x"),
            ("p --token --key abc -e x", "p --token [redacted] -e x"),
            // As languages, make and URLs write it.
            ("password = \"a b\"\nx = 1", "password = [redacted]\nx = 1"),
            ("db.password = hunter2; x", "db.password = [redacted]; x"),
            ("--token = abc", "--token = [redacted]"),
            ("os.environ['TOKEN']='abc'; x()", "os.environ['TOKEN']=[redacted]; x()"),
            ("x[\"api_key\"] = 'abc', 1", "x[\"api_key\"] = [redacted], 1"),
            ("{'token' => 'abc', 1 => 2}", "{'token' => [redacted], 1 => 2}"),
            ("make TOKEN:=abc", "make TOKEN:=[redacted]"),
            ("make TOKEN+=abc", "make TOKEN+=[redacted]"),
            ("http://h/?to=a%3Ftoken%3Dabc x", "http://h/?to=a%3Ftoken%3D[redacted] x"),
            ("http://h/?a=1&sig=abc", "http://h/?a=1&sig=[redacted]"),
            ("http://h/?X-Amz-Signature=abc&b=1", "http://h/?X-Amz-Signature=[redacted]&b=1"),
            ("<password>a b</password>", "<password>[redacted]</password>"),
            (
                "<w:Password Type=\"t\">abc</w:Password>",
                "<w:Password Type=\"t\">[redacted]</w:Password>",
            ),
            (
                "aws configure set aws_secret_access_key Zq7Xw9Kf3TbLm2Rv8NpYc4Hd x",
                "aws configure set aws_secret_access_key [redacted] x",
            ),
            ("x --pw abc user_pw=abc", "x --pw [redacted] user_pw=[redacted]"),
            ("http://h/?auth=abc1&b=1", "http://h/?auth=[redacted]&b=1"),
            ("x --auth=basic auth=none", "x --auth=basic auth=none"),
            ("<Password value=\"a b\"/>", "<Password value=[redacted]>"),
            ("<add key=\"Token\" value='abc' x='y'>", "<add key=[redacted] x='y'>"),
            (
                "<add name=\"Token\" value='abc' x='y'>",
                "<add name=\"Token\" value=[redacted] x='y'>",
            ),
            ("smbclient //h/x -U 'u%abc' -c ls", "smbclient //h/x -U 'u%[redacted]' -c ls"),
            ("sqlplus -s scott/abc@db @/x/y.sql", "sqlplus -s scott/[redacted] @/x/y.sql"),
            ("lftp -u u,abc sftp://h", "lftp -u u,[redacted] sftp://h"),
            ("vault login abc", "vault login [redacted]"),
            (
                "openssl enc -aes-256-cbc -k abc -in x",
                "openssl enc -aes-256-cbc -k [redacted] -in x",
            ),
            ("openssl req -keyout a.pem", "openssl req -keyout a.pem"),
            ("nmcli c password 'Zq7Xw9Kf3TbLm2Rv8NpYc4Hd'", "nmcli c password [redacted]"),
            ("Server=h;Uid=u;Pwd=abc;", "Server=h;Uid=u;Pwd=[redacted];"),
            ("PWD=/a/b OLDPWD=/c make", "PWD=/a/b OLDPWD=/c make"),
            ("grep token src/token_of_many_kinds.rs", "grep token src/token_of_many_kinds.rs"),
            ("if [ \"$TOKEN\" = \"\" ]; then", "if [ \"$TOKEN\" = \"\" ]; then"),
            ("a<token> b", "a<token> b"),
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
