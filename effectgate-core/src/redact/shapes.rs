//! Secrets that their own shape gives away.

use memchr::memmem;

use crate::input::Bytes;
use crate::redact::replaced;

/// A key's shape: how it begins, which bytes go on, how many at least.
struct Shape {
    prefix: &'static [u8],
    goes_on: fn(u8) -> bool,
    least: usize,
    /// Only where no letter or digit stands before it.
    at_start: bool,
}

const SHAPES: [Shape; 69] = [
    shape(b"ghp_", token, 8),
    shape(b"gho_", token, 8),
    shape(b"ghu_", token, 8),
    shape(b"ghs_", token, 8),
    shape(b"ghr_", token, 8),
    shape(b"github_pat_", token, 8),
    shape(b"glpat-", token, 8),
    apart(b"gldt-", token, 16),
    apart(b"glrt-", token, 16),
    apart(b"glptt-", token, 16),
    apart(b"glcbt-", token, 16),
    apart(b"glsoat-", token, 16),
    shape(b"AKIA", upper, 16),
    shape(b"ASIA", upper, 16),
    apart(b"ABIA", upper, 16),
    apart(b"ACCA", upper, 16),
    apart(b"LTAI", alphanumeric, 16),
    shape(b"xoxa-", token, 8),
    shape(b"xoxb-", token, 8),
    shape(b"xoxc-", token, 8),
    shape(b"xoxd-", token, 8),
    shape(b"xoxe-", token, 8),
    shape(b"xoxp-", token, 8),
    shape(b"xoxr-", token, 8),
    shape(b"xoxs-", token, 8),
    apart(b"xapp-", token, 20),
    apart(b"sk-", token, 20),
    apart(b"sk_live_", alphanumeric, 16),
    apart(b"rk_live_", alphanumeric, 16),
    apart(b"sk_test_", alphanumeric, 16),
    apart(b"rk_test_", alphanumeric, 16),
    apart(b"whsec_", alphanumeric, 24),
    apart(b"npm_", alphanumeric, 30),
    apart(b"hf_", alphanumeric, 30),
    apart(b"gsk_", alphanumeric, 40),
    apart(b"xai-", alphanumeric, 40),
    apart(b"pplx-", alphanumeric, 40),
    apart(b"nvapi-", token, 40),
    apart(b"r8_", alphanumeric, 36),
    apart(b"dckr_pat_", token, 20),
    apart(b"pypi-AgE", token, 40),
    apart(b"rubygems_", alphanumeric, 40),
    apart(b"AIza", token, 35),
    apart(b"GOCSPX-", token, 20),
    apart(b"ya29.", dotted, 20),
    apart(b"dop_v1_", alphanumeric, 40),
    apart(b"doo_v1_", alphanumeric, 40),
    apart(b"dor_v1_", alphanumeric, 40),
    apart(b"hvs.", token, 20),
    apart(b"hvb.", token, 20),
    apart(b"SG.", dotted, 50),
    apart(b"shpat_", alphanumeric, 32),
    apart(b"shpca_", alphanumeric, 32),
    apart(b"shppa_", alphanumeric, 32),
    apart(b"shpss_", alphanumeric, 32),
    apart(b"sq0atp-", token, 20),
    apart(b"sq0csp-", token, 20),
    apart(b"lin_api_", alphanumeric, 30),
    apart(b"figd_", token, 30),
    apart(b"PMAK-", token, 40),
    apart(b"NRAK-", alphanumeric, 24),
    apart(b"sntrys_", dotted, 40),
    apart(b"sntryu_", alphanumeric, 40),
    apart(b"glsa_", token, 32),
    apart(b"ATATT3", dotted, 40),
    apart(b"ATCTT3", dotted, 40),
    apart(b"pul-", alphanumeric, 40),
    apart(b"AGE-SECRET-KEY-1", upper, 50),
    // A JSON Web Token: base64url of `{"`, with dots between its parts.
    shape(b"eyJ", dotted, 16),
];

/// Every pair of bytes that a shape begins with, a bit each: this is asked at
/// every place of every text.
const PAIRS: [u64; 1024] = {
    let mut table = [0; 1024];
    let mut at = 0;
    while at < SHAPES.len() {
        let prefix = SHAPES[at].prefix;
        let pair = (prefix[0] as usize) << 8 | prefix[1] as usize;
        table[pair / 64] |= 1 << (pair % 64);
        at += 1;
    }
    table
};

/// The first three bytes of each shape; none is shorter.
const HEADS: [u32; SHAPES.len()] = {
    let mut heads = [0; SHAPES.len()];
    let mut at = 0;
    while at < SHAPES.len() {
        heads[at] = head(SHAPES[at].prefix);
        at += 1;
    }
    heads
};

const fn head(bytes: &[u8]) -> u32 {
    (bytes[0] as u32) << 16 | (bytes[1] as u32) << 8 | bytes[2] as u32
}

/// The shapes that a string begins as.
fn begun(bytes: &[u8]) -> impl Iterator<Item = &'static Shape> {
    let head = if bytes.len() < 3 { None } else { Some(head(bytes)) };
    let alike = HEADS.iter().zip(&SHAPES).filter(move |(own, _)| Some(**own) == head);
    alike.map(|(_, shape)| shape).filter(move |shape| bytes.starts_with(shape.prefix))
}

fn is_pair(first: u8, second: u8) -> bool {
    let pair = usize::from(first) << 8 | usize::from(second);
    PAIRS[pair / 64] >> (pair % 64) & 1 == 1
}

/// Whether no rule could find anything: true of most names of files.
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    let marks = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'=' | b':' | b'@' | b'"' | b'\'');
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
/// password where that is a token: in HTTP.
pub(super) fn url_passwords(bytes: &[u8]) -> Bytes {
    replaced(bytes, |take| each_url_password(bytes, take))
}

/// Where such passwords and users stand.
pub(super) fn each_url_password(bytes: &[u8], found: &mut dyn FnMut(usize, usize)) {
    for at in memmem::find_iter(bytes, b"://") {
        let start = at + 3;
        let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'"' | b'\'');
        let after = &bytes[start..];
        let authority = &after[..after.iter().position(ends).unwrap_or(after.len())];
        let Some(user_end) = authority.iter().rposition(|b| *b == b'@') else { continue };
        let user = &authority[..user_end];
        if let Some(colon) = user.iter().position(|b| *b == b':') {
            found(start + colon + 1, start + user_end);
        } else if bytes[..at].ends_with(b"http") || bytes[..at].ends_with(b"https") {
            found(start, start + user_end);
        }
    }
}

const fn shape(prefix: &'static [u8], goes_on: fn(u8) -> bool, least: usize) -> Shape {
    Shape { prefix, goes_on, least, at_start: false }
}

/// Only where it stands apart: shorter beginnings are found inside other words.
const fn apart(prefix: &'static [u8], goes_on: fn(u8) -> bool, least: usize) -> Shape {
    Shape { at_start: true, ..shape(prefix, goes_on, least) }
}

fn key_at(bytes: &[u8], at: usize) -> Option<usize> {
    begun(&bytes[at..]).find_map(|shape| {
        let rest = &bytes[at + shape.prefix.len()..];
        let body = rest.iter().take_while(|b| (shape.goes_on)(**b)).count();
        let real = match shape.prefix {
            b"eyJ" => is_dotted(rest),
            // Words with hyphens are no key (`sk-learn-…`).
            b"sk-" => rest[..body].iter().any(|b| b.is_ascii_uppercase() || b.is_ascii_digit()),
            _ => true,
        };
        let apart = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        (real && body >= shape.least && (apart || !shape.at_start))
            .then_some(at + shape.prefix.len() + body)
    })
}

/// Whether a string begins as a key does.
pub(super) fn begins(bytes: &[u8]) -> bool {
    begun(bytes).next().is_some()
}

/// Whether a token's first part, which is never short, ends with a dot. Looked
/// for nearby only: this is asked at every place in a string that another
/// program chose.
fn is_dotted(rest: &[u8]) -> bool {
    const NEARBY: usize = 1024;
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
        let blanks = count(&rest[WORD.len()..], |b| matches!(b, b' ' | b'\t'));
        let start = WORD.len() + blanks;
        let body = if blanks > 0 { count(&rest[start..], credential) } else { 0 };
        let secret = body > 0
            && (at == 0
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

fn token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

fn alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

fn upper(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit()
}

fn dotted(b: u8) -> bool {
    token(b) || matches!(b, b'.' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("http://h:80/a", "http://h:80/a"),
        ] {
            assert_eq!(String::from_utf8(url_passwords(from.as_bytes())).unwrap(), want);
            assert_eq!(String::from_utf8(url_passwords(want.as_bytes())).unwrap(), want);
        }
    }
}
