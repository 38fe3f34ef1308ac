//! The beginnings by which well-known services mark their keys.

/// A key's shape: how it begins, which bytes go on, how many at least.
pub(super) struct Shape {
    pub prefix: &'static [u8],
    pub goes_on: fn(u8) -> bool,
    pub least: usize,
    /// Only where no letter or digit stands before it.
    pub at_start: bool,
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
pub(super) fn begun(bytes: &[u8]) -> impl Iterator<Item = &'static Shape> {
    let head = if bytes.len() < 3 { None } else { Some(head(bytes)) };
    let alike = HEADS.iter().zip(&SHAPES).filter(move |(own, _)| Some(**own) == head);
    alike.map(|(_, shape)| shape).filter(move |shape| bytes.starts_with(shape.prefix))
}

pub(super) fn is_pair(first: u8, second: u8) -> bool {
    let pair = usize::from(first) << 8 | usize::from(second);
    PAIRS[pair / 64] >> (pair % 64) & 1 == 1
}

/// Whether a string begins as a key does.
pub(super) fn begins(bytes: &[u8]) -> bool {
    begun(bytes).next().is_some()
}

const fn shape(prefix: &'static [u8], goes_on: fn(u8) -> bool, least: usize) -> Shape {
    Shape { prefix, goes_on, least, at_start: false }
}

/// Only where it stands apart: shorter beginnings are found inside other words.
const fn apart(prefix: &'static [u8], goes_on: fn(u8) -> bool, least: usize) -> Shape {
    Shape { at_start: true, ..shape(prefix, goes_on, least) }
}

pub(super) fn token(b: u8) -> bool {
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
