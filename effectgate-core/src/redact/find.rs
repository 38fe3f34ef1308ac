//! Where secrets stand, for those who report the place and not the value.
//!
//! What is taken out of records may be too much: a mistake costs a word in a
//! log. Here it costs a verdict. So what only a *name* gives away counts when
//! its value could be a secret at all: no reference (`$TOKEN`), no path, no
//! number, no plain word behind a name as weak as `key`.

use serde::Serialize;

use crate::redact::arguments::{Reader, Reading};
use crate::redact::{REDACTED, shapes, words};

/// Secrets that are counted in one text; one is too many.
const MOST: usize = 64;

/// What gave a secret away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sign {
    /// The name before it: `--token abc`, `API_KEY=abc`, `Authorization: abc`.
    Name,
    /// The password of a user, or of a program that takes one.
    Password,
    /// The password, or the user who is a token, in a URL.
    Url,
    /// The word `Bearer` before it.
    Bearer,
    /// The shape of a well-known service's key.
    Key,
    /// A private key in PEM.
    PrivateKey,
}

impl Serialize for Sign {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Sign {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Sign::Name => "name",
            Sign::Password => "password",
            Sign::Url => "url",
            Sign::Bearer => "bearer",
            Sign::Key => "key",
            Sign::PrivateKey => "private-key",
        }
    }
}

/// The secrets in an argument list: the argument's index from 0, and the sign.
pub fn in_arguments<'a>(
    arguments: impl IntoIterator<Item = &'a [u8]>,
    found: &mut dyn FnMut(usize, Sign),
) {
    let mut reader = Reader::default();
    let mut name: &[u8] = b"";
    for (index, argument) in arguments.into_iter().enumerate() {
        match reader.read(argument) {
            Reading::Secret if likely(name, argument, true) => found(index, Sign::Name),
            Reading::SecretFrom(at) | Reading::Password(at) if is_value(&argument[at..]) => {
                found(index, Sign::Password);
            }
            Reading::Own => in_text(argument, &mut |sign| found(index, sign)),
            Reading::Secret | Reading::SecretFrom(_) | Reading::Password(_) | Reading::Scheme => {}
        }
        if reader.promises() && !argument.is_empty() {
            name = argument;
        }
    }
}

/// The secrets in one text; each once, by the sign that says most.
pub fn in_text(bytes: &[u8], found: &mut dyn FnMut(Sign)) {
    if shapes::is_plain(bytes) {
        return;
    }
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut take = |sign, start: usize, stop: usize| {
        // One that holds a place found before, or lies in it, is the same.
        let again = places.iter().any(|(from, to)| start < *to && *from < stop);
        if places.len() < MOST && !again {
            places.push((start, stop));
            found(sign);
        }
    };
    shapes::each_key(bytes, &mut |start, stop| {
        let sign = if bytes[start] == b'-' { Sign::PrivateKey } else { Sign::Key };
        take(sign, start, stop);
    });
    words::each(bytes, &mut |name, start, stop| {
        let assigned = bytes[..start].ends_with(b"=") || name.starts_with(b"-");
        if likely(name, &bytes[start..stop], assigned) {
            take(Sign::Name, start, stop);
        }
    });
    shapes::each_url_password(bytes, &mut |start, stop| {
        if is_value(&bytes[start..stop]) {
            take(Sign::Url, start, stop);
        }
    });
    shapes::each_bearer(bytes, &mut |start, stop| {
        if is_value(&bytes[start..stop]) {
            take(Sign::Bearer, start, stop);
        }
    });
}

/// Whether what stands behind a name could be the secret that it promises.
fn likely(name: &[u8], value: &[u8], assigned: bool) -> bool {
    let value = unquoted(value);
    if !is_value(value) || tells_where(name) {
        return false;
    }
    let mut words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (first, second, third) = (words.next().unwrap_or_default(), words.next(), words.next());
    match (second, third) {
        (None, _) => is_strong(name) || is_mixed(first),
        // `Authorization: Basic dXNlcjpw`
        (Some(second), None) if is_scheme(first) => is_value(second),
        // Several words are prose, unless they are the value given.
        _ => assigned && is_strong(name),
    }
}

/// Names of which nothing but a secret is the value.
fn is_strong(name: &[u8]) -> bool {
    const STRONG: [&[u8]; 6] =
        [b"SECRET", b"PASS", b"PWD", b"CREDENTIAL", b"AUTHORIZATION", b"COOKIE"];
    let upper = name.to_ascii_uppercase();
    STRONG.iter().any(|part| memchr::memmem::find(&upper, part).is_some())
}

/// `--password-file`, `TOKEN_URL`: the secret is elsewhere.
fn tells_where(name: &[u8]) -> bool {
    const ENDS: [&[u8]; 12] = [
        b"FILE", b"PATH", b"DIR", b"NAME", b"STDIN", b"URL", b"URI", b"TYPE", b"LENGTH", b"SIZE",
        b"COUNT", b"ENV",
    ];
    let upper = name.to_ascii_uppercase();
    let last = upper.rsplit(|b| !b.is_ascii_alphanumeric()).find(|word| !word.is_empty());
    last.is_some_and(|last| ENDS.iter().any(|end| last.ends_with(end)))
}

/// Whether a text is a value at all: no reference to one, no mask of one.
fn is_value(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 10] = [
        b"true",
        b"false",
        b"null",
        b"none",
        b"nil",
        b"yes",
        b"no",
        b"undefined",
        b"required",
        b"optional",
    ];
    let value = unquoted(value);
    let reference = [&b"$"[..], b"%", b"{{", b"<", b"@", b"/", b"./", b"../", b"~/"];
    let masked = |b: &u8| matches!(b, b'*' | b'x' | b'X' | b'.' | b'-' | b'_');
    !(value.is_empty()
        || value.starts_with(REDACTED)
        || value.iter().all(masked)
        || value.iter().all(u8::is_ascii_digit)
        || reference.iter().any(|start| value.starts_with(start))
        || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word)))
}

/// Letters and digits, or long and in both cases: no word of a language.
fn is_mixed(value: &[u8]) -> bool {
    const SHORTEST: usize = 8;
    const LONG: usize = 16;
    let has = |part: fn(&u8) -> bool| value.iter().any(part);
    let cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    value.len() >= SHORTEST && has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit)
        || value.len() >= LONG && cases
}

fn is_scheme(word: &[u8]) -> bool {
    [&b"basic"[..], b"bearer", b"token", b"digest", b"negotiate"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

fn unquoted(value: &[u8]) -> &[u8] {
    let quote = |b: &u8| matches!(b, b'"' | b'\'' | b',' | b';' | b')' | b'}');
    let start = value.iter().take_while(|b| quote(b)).count();
    let end = value.iter().rev().take_while(|b| quote(b)).count();
    value.get(start..value.len() - end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(line: &str) -> Vec<(usize, Sign)> {
        let mut all = Vec::new();
        in_arguments(line.split('|').map(str::as_bytes), &mut |at, sign| all.push((at, sign)));
        all
    }

    #[test]
    fn secrets_have_a_place_and_a_sign() {
        for (line, want) in [
            ("curl|--token|abcd1234efgh", (2, Sign::Name)),
            ("x|--password|hunter2", (2, Sign::Name)),
            ("x|--password=hunter2", (1, Sign::Name)),
            ("x|API_KEY=abc123def456", (1, Sign::Name)),
            ("curl|-H|Authorization: Basic dXNlcjpwdw==", (2, Sign::Name)),
            ("curl|-u|joe:hunter2|h", (2, Sign::Password)),
            ("mysql|-phunter2", (1, Sign::Password)),
            ("git|clone|https://u:p4ss@h/x", (2, Sign::Url)),
            ("x|Bearer abcdef", (1, Sign::Bearer)),
            ("x|ghp_0123456789abcdef", (1, Sign::Key)),
            ("x|--token|ghp_0123456789abcdef", (2, Sign::Name)),
            ("x|-----BEGIN PRIVATE KEY-----\nabc", (1, Sign::PrivateKey)),
            ("sh|-c|export DB_PASSWORD=hunter2; make", (2, Sign::Name)),
            (r#"x|{"password": "hunter2"}"#, (1, Sign::Name)),
        ] {
            assert_eq!(signs(line), [want], "{line}");
        }
    }

    #[test]
    fn what_only_speaks_of_secrets_is_none() {
        for line in [
            "x|--max-tokens|4096",
            "sort|--key=name",
            "x|--token|$TOKEN",
            "x|--token=${{ secrets.TOKEN }}",
            "x|--password-file|secret.txt",
            "docker|login|--password-stdin",
            "x|--key|/etc/ssl/key.pem",
            "git|commit|-m|fix token: handling of keys",
            "x|API_KEY=[redacted]",
            "x|--password|[redacted]",
            "x|https://user:[redacted]@h/",
            "x|password: must be at least 8 characters",
            "x|-H|Authorization: Bearer $TOKEN",
            "cargo|test|--test|key",
            "x|PASSWORD=",
            "x|PASSWORD=********",
            "",
        ] {
            assert_eq!(signs(line), [], "{line}");
        }
    }
}
