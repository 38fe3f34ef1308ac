//! Secrets that their own shape gives away.

use memchr::memmem;

use crate::input::Bytes;
use crate::redact::known::{begins, begun, is_pair, token};
use crate::redact::replaced;

/// How far is looked ahead (bytes) at a place that may be none: each place of a
/// string that another program chose may be such a one.
const NEARBY: usize = 1024;

/// Whether no rule could find anything: true of most names of files.
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    let marks = |b: &u8| {
        b.is_ascii_whitespace() || matches!(b, b'=' | b':' | b'@' | b'"' | b'\'' | b'%' | b'<')
    };
    !bytes.iter().any(marks)
        && !bytes
            .windows(2)
            .enumerate()
            .any(|(at, pair)| is_pair(pair[0], pair[1]) && begins(&bytes[at..]))
}

/// Replaces well-known keys and private keys in PEM.
pub(super) fn keys(bytes: &[u8]) -> Bytes {
    replaced(bytes, |take| each_key(bytes, take))
}

/// Where such keys stand.
pub(super) fn each_key(bytes: &[u8], found: &mut dyn FnMut(usize, usize)) {
    let mut at = 0;
    while at + 1 < bytes.len() {
        let end = if is_pair(bytes[at], bytes[at + 1]) {
            key_at(bytes, at)
        } else if bytes[at] == b'-' {
            pem_at(bytes, at)
        } else {
            None
        };
        at = end.map_or(at + 1, |end| {
            found(at, end);
            end
        });
    }
}

/// Replaces the password of `scheme://user:password@host`, and a user without
/// password where that is a token: in HTTP. As a path, a URL has lost a slash.
pub(super) fn url_passwords(bytes: &[u8]) -> Bytes {
    replaced(bytes, |take| each_url_password(bytes, take))
}

/// Where such passwords and users stand.
pub(super) fn each_url_password(bytes: &[u8], found: &mut dyn FnMut(usize, usize)) {
    for at in memmem::find_iter(bytes, b":/") {
        let start = at + 1 + count(&bytes[at + 1..], |b| b == b'/');
        let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'"' | b'\'');
        let after = &bytes[start..];
        let authority = &after[..after.iter().position(ends).unwrap_or(after.len())];
        let Some(user_end) = authority.iter().rposition(|b| *b == b'@') else { continue };
        let user = &authority[..user_end];
        let http = bytes[..at].ends_with(b"http") || bytes[..at].ends_with(b"https");
        match user.iter().position(|b| *b == b':') {
            Some(colon) if http && is_token(&user[..colon], &user[colon + 1..]) => {
                found(start, start + user_end);
            }
            Some(colon) => found(start + colon + 1, start + user_end),
            None if http => found(start, start + user_end),
            None => {}
        }
    }
}

/// Whether the user of a URL is a token, and the password says nothing.
fn is_token(user: &[u8], password: &[u8]) -> bool {
    const LONG: usize = 20;
    let made_up =
        user.len() >= LONG && user.iter().all(|b| token(*b)) && user.iter().any(u8::is_ascii_digit);
    made_up || matches!(password, b"" | b"x-oauth-basic")
}

fn key_at(bytes: &[u8], at: usize) -> Option<usize> {
    begun(&bytes[at..]).find_map(|shape| {
        let rest = &bytes[at + shape.prefix.len()..];
        let goes_on = |b: &&u8| (shape.goes_on)(**b);
        let apart = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        if shape.at_start && !apart {
            return None;
        }
        let real = match shape.prefix {
            b"eyJ" => is_dotted(rest),
            // Words with hyphens are no key (`sk-learn-…`).
            b"sk-" => {
                let mut body = rest.iter().take(NEARBY).take_while(goes_on);
                body.any(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
            }
            _ => true,
        };
        // Only then is it read to its end, which is as far as the text goes.
        let body = real.then(|| rest.iter().take_while(goes_on).count());
        let body = body.filter(|body| *body >= shape.least)?;
        Some(at + shape.prefix.len() + body)
    })
}

/// Whether a token's first part, which is never short, ends with a dot nearby.
fn is_dotted(rest: &[u8]) -> bool {
    const SHORTEST: usize = 14;
    let part = rest.iter().take(NEARBY).take_while(|b| token(**b) || **b == b'=').count();
    part >= SHORTEST && rest.get(part) == Some(&b'.')
}

/// Replaces what follows the word `Bearer` (RFC 6750, 2.1): whatever it is
/// where the word begins the string, else what cannot be a plain word.
pub(super) fn bearer(bytes: &[u8]) -> Bytes {
    replaced(bytes, |take| each_bearer(bytes, take))
}

/// Where such tokens stand.
pub(super) fn each_bearer(bytes: &[u8], found: &mut dyn FnMut(usize, usize)) {
    const WORD: &[u8] = b"bearer";
    const LONG: usize = 16;
    let mut done = 0;
    for at in memchr::memchr2_iter(b'b', b'B', bytes) {
        let rest = &bytes[at..];
        let apart = at == 0 || !token(bytes[at - 1]);
        let word = rest.len() > WORD.len() && rest[..WORD.len()].eq_ignore_ascii_case(WORD);
        if at < done || !apart || !word {
            continue;
        }
        let mark = match &rest[WORD.len()..] {
            [b':' | b'=', ..] => 1,
            [b'%', b'2', b'0', ..] => 3,
            _ => 0,
        };
        let blanks = count(&rest[WORD.len() + mark..], |b| matches!(b, b' ' | b'\t'));
        let start = WORD.len() + mark + blanks;
        let body = if mark + blanks > 0 { count(&rest[start..], credential) } else { 0 };
        let secret = body > 0
            && (at == 0 && mark == 0
                || body >= LONG
                || rest[start..start + body].iter().any(u8::is_ascii_digit));
        if secret {
            done = at + start + body;
            found(at + start, done);
        }
    }
}

fn count(bytes: &[u8], part: fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|b| part(**b)).count()
}

/// Anything but what ends a word in a script.
fn credential(b: u8) -> bool {
    !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b';' | b'|' | b'&' | b'<' | b'>' | b')')
}

fn pem_at(bytes: &[u8], at: usize) -> Option<usize> {
    const END: &[u8] = b"-----END ";
    let rest = bytes[at..].strip_prefix(b"-----BEGIN ")?;
    let label = rest.iter().take_while(|b| b.is_ascii_uppercase() || **b == b' ').count();
    if !rest[..label].ends_with(b"PRIVATE KEY") && !rest[..label].ends_with(b"PRIVATE KEY BLOCK") {
        return None;
    }
    // Without its last line the key ends with the string.
    let close = rest.windows(END.len()).position(|window| window == END);
    let end = close.map_or(rest.len(), |close| {
        let last = close + END.len();
        let name = rest[last..].iter().take_while(|b| **b != b'-').count();
        let dashes = rest[last + name..].iter().take_while(|b| **b == b'-').count();
        last + name + dashes
    });
    Some(bytes.len() - rest.len() + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of these was read to its end once for each of its bytes.
    #[test]
    fn what_only_begins_like_a_key_costs_no_more() {
        for part in ["eyJ", "sk-", "xsk-", "xshpat_", "x-----BEGIN PRIVATE ", "eyJa."] {
            let text = part.repeat((1 << 16) / part.len());
            each_key(text.as_bytes(), &mut |_, _| panic!("{part}"));
        }
    }

    #[test]
    fn examples() {
        for (from, want) in [
            ("ghp_0123456789abcdef", "[redacted]"),
            ("x ghp_0123456789abcdef y", "x [redacted] y"),
            ("github_pat_11AAAA_bbbbbbbb", "[redacted]"),
            ("glpat-aaaaaaaaaaaa", "[redacted]"),
            ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
            ("xoxb-1234-5678-abc", "[redacted]"),
            ("sk-aaaaaaaaaaaaaaaaaaa1", "[redacted]"),
            ("sk-aaaaaaaaaaaaaaaaaa1", "sk-aaaaaaaaaaaaaaaaaa1"),
            ("sk-learn-contrib-examples-and-more", "sk-learn-contrib-examples-and-more"),
            ("task-aaaaaaaaaaaaaaaaaaaa1", "task-aaaaaaaaaaaaaaaaaaaa1"),
            ("keyJournal.service-of-mine", "keyJournal.service-of-mine"),
            (
                "npm_config_registry_of_this_whole_project",
                "npm_config_registry_of_this_whole_project",
            ),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln", "[redacted]"),
            (
                "a -----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY----- b",
                "a [redacted] b",
            ),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nx", "[redacted]"),
            ("-----BEGIN CERTIFICATE-----\nx", "-----BEGIN CERTIFICATE-----\nx"),
            ("ghp_", "ghp_"),
            ("shpat_0123456789abcdef0123456789abcdef", "[redacted]"),
            ("x shpat_is_a_word", "x shpat_is_a_word"),
            ("hvs.CAESIJ0123456789abcdefgh", "[redacted]"),
            ("SG.a", "SG.a"),
        ] {
            assert_eq!(String::from_utf8(keys(from.as_bytes())).unwrap(), want);
        }
        for (from, want) in [
            ("https://u:p@h/x", "https://u:[redacted]@h/x"),
            ("https://u:p@q@h/x", "https://u:[redacted]@h/x"),
            (
                "git clone https://t0k@h/x 'ftp://a:b@c'",
                "git clone https://[redacted]@h/x 'ftp://a:[redacted]@c'",
            ),
            ("https://abc:x-oauth-basic@h/x", "https://[redacted]@h/x"),
            ("https://abc:@h/x", "https://[redacted]@h/x"),
            ("https://0123456789abcdefghij:x@h/x", "https://[redacted]@h/x"),
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("http://h:80/a", "http://h:80/a"),
        ] {
            assert_eq!(String::from_utf8(url_passwords(from.as_bytes())).unwrap(), want);
            assert_eq!(String::from_utf8(url_passwords(want.as_bytes())).unwrap(), want);
        }
    }
}
