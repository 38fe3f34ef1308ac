//! The evidence bundle: which files it has, and the list of their digests.

use std::collections::BTreeMap;

use crate::packet::Problem;
use crate::pin;

/// What a verification of one is called.
pub const SCHEMA: &str = "effectgate.verification/v1";

pub const POLICY: &str = "policy";
pub const PIN: &str = "pin";
pub const NOTE: &str = "review-note.json";
/// The log, or its last segment.
pub const EVENTS: &str = "events.jsonl";
pub const CHECKPOINT: &str = "checkpoint";
pub const VERDICT: &str = "verdict.json";
pub const HOST: &str = "host.json";
/// The report, as a page.
pub const PAGE: &str = "report.html";
/// What the runner says of properties outside the envelope.
pub const PROPERTIES: &str = "properties.json";
pub const STATEMENT: &str = "statement.dsse.json";
pub const DIGESTS: &str = "MANIFEST.sha256";

/// Without these nothing can be judged.
pub const NEEDED: [&str; 4] = [POLICY, EVENTS, VERDICT, DIGESTS];

/// What a bundle may hold beside its log's closed segments.
const KNOWN: [&str; 11] =
    [POLICY, PIN, NOTE, EVENTS, CHECKPOINT, VERDICT, HOST, PAGE, PROPERTIES, STATEMENT, DIGESTS];

/// The signature is over the list of digests, and cannot stand in it.
const UNLISTED: [&str; 2] = [STATEMENT, DIGESTS];

/// Whether a bundle has files of this name.
pub fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || segment(name).is_some()
}

/// Whether the list of digests must hold it, where it is there.
pub fn is_listed(name: &str) -> bool {
    is_known(name) && !UNLISTED.contains(&name)
}

/// The number of a closed segment of the log, from 0: `events-000000.jsonl.zst`,
/// or without `.zst` where it could not be compressed.
pub fn segment(name: &str) -> Option<u32> {
    let (number, _) = name.strip_prefix("events-")?.split_once('.')?;
    let plain = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = plain.then(|| number.parse().ok()).flatten()?;
    let closed = format!("events-{number:06}.jsonl");
    (name.strip_suffix(".zst").unwrap_or(name) == closed).then_some(number)
}

/// Digests by name.
pub type Digests = BTreeMap<String, String>;

/// Reads the list of digests: lines as `sha256sum` writes them, sorted by name,
/// each name once.
///
/// # Errors
/// The first line that is none.
pub fn parse_digests(bytes: &[u8]) -> Result<Digests, Problem> {
    let problem = |number: usize, message: &str| {
        let message = format!("line {}: {message}", number + 1);
        Problem::new("bundle-manifest", DIGESTS, message, "take the bundle as it was written")
    };
    let text = std::str::from_utf8(bytes).map_err(|_| problem(0, "the file is no text"))?;
    let mut digests = Digests::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let parts = line.strip_suffix('\n').and_then(|line| line.split_once("  "));
        let Some((digest, name)) = parts.filter(|(digest, _)| is_digest(digest)) else {
            return Err(problem(number, "it is not `<SHA-256>  <file name>`"));
        };
        if !is_listed(name) {
            return Err(problem(number, &format!("no file {name:?} belongs in this list")));
        }
        if digests.last_key_value().is_some_and(|(before, _)| before.as_str() >= name) {
            return Err(problem(number, "the names are not sorted, or one stands there twice"));
        }
        digests.insert(name.to_owned(), digest.to_owned());
    }
    Ok(digests)
}

/// Writes exactly what [`parse_digests`] reads.
pub fn format_digests(digests: &Digests) -> String {
    digests.iter().map(|(name, digest)| pin::format_pin(digest, name)).collect()
}

/// Holds the files that are there against the list.
pub fn compare_digests(listed: &Digests, found: &Digests) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say = |rule, name: &str, message: String, help| {
        problems.push(Problem::new(rule, name, message, help));
    };
    for (name, digest) in listed {
        match found.get(name) {
            Some(found) if found == digest => {}
            Some(found) => {
                let message = format!("its SHA-256 is {found}, the list says {digest}");
                say("bundle-digest", name, message, "it was changed: take the bundle as it was");
            }
            None => {
                let message = "it is listed and is not there".to_owned();
                say("bundle-missing-file", name, message, "it was taken out: put it back");
            }
        }
    }
    for name in found.keys().filter(|name| is_listed(name) && !listed.contains_key(*name)) {
        let message = format!("{DIGESTS} does not list it");
        say("bundle-extra-file", name, message, "it was put in: take it out");
    }
    problems
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(problems: &[Problem]) -> Vec<&'static str> {
        problems.iter().map(|problem| problem.rule).collect()
    }

    #[test]
    fn segments_have_one_name() {
        for (name, number) in [
            ("events-000000.jsonl.zst", Some(0)),
            ("events-000012.jsonl.zst", Some(12)),
            ("events-000012.jsonl", Some(12)),
            ("events-000012.jsonl.zst.zst", None),
            ("events-000012.jsonl.zst.part", None),
            ("events-1000000.jsonl.zst", Some(1_000_000)),
            ("events-000012.zst", None),
            ("events-0000012.jsonl.zst", None),
            ("events-12.jsonl.zst", None),
            ("events-+00012.jsonl.zst", None),
            // No log has so many: what reads them would pass it over.
            ("events-4294967296.jsonl", None),
            ("events-99999999999999999999.jsonl.zst", None),
            ("events.jsonl", None),
        ] {
            assert_eq!(segment(name), number, "{name}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_not_known() {
        for name in
            ["", ".", "..", "/policy", "./policy", "../policy", "policy/", "a/policy", "Policy"]
        {
            assert!(!is_known(name), "{name}");
        }
    }

    #[test]
    fn lists_that_are_none() {
        let digest = "a".repeat(64);
        for text in [
            format!("{digest}  policy"),
            format!("{digest} policy\n"),
            format!("{}  policy\n", digest.to_uppercase()),
            format!("{digest}  policy\r\n"),
            format!("{digest}  policy\n{digest}  policy\n"),
            format!("{digest}  policy\n{digest}  pin\n"),
            format!("{digest}  ../policy\n"),
            format!("{digest}  {DIGESTS}\n"),
            format!("{digest}  {STATEMENT}\n"),
            format!("\\{digest}  policy\n"),
            "\n".to_owned(),
        ] {
            let problem = parse_digests(text.as_bytes()).expect_err(&text);
            assert_eq!(problem.rule, "bundle-manifest", "{text}");
        }
        assert!(parse_digests(b"\xff").is_err());
    }

    proptest! {
        #[test]
        fn whatever_differs_is_said(
            listed in prop::collection::btree_map("policy|pin|verdict\\.json|host\\.json", "[0-9a-f]{64}", 0..4),
            found in prop::collection::btree_map("policy|pin|verdict\\.json|host\\.json", "[0-9a-f]{64}", 0..4),
        ) {
            let read = parse_digests(format_digests(&listed).as_bytes()).ok();
            prop_assert_eq!(read.as_ref(), Some(&listed));
            let problems = compare_digests(&listed, &found);
            prop_assert_eq!(problems.is_empty(), listed == found);
        }
    }

    #[test]
    fn each_difference_has_its_rule() {
        let digests = |entries: &[(&str, &str)]| -> Digests {
            entries
                .iter()
                .map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned()))
                .collect()
        };
        let listed = digests(&[("pin", "a"), ("policy", "b")]);
        let found = digests(&[("policy", "c"), ("verdict.json", "d"), (STATEMENT, "e")]);
        let problems = compare_digests(&listed, &found);
        assert_eq!(rules(&problems), ["bundle-missing-file", "bundle-digest", "bundle-extra-file"]);
    }
}
