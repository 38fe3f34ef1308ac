//! Findings in the Static Analysis Results Interchange Format, version 2.1.0
//! (OASIS), which pull requests show at the lines concerned.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use effectgate_core::{pin, policy::Fault};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Finding, Level, excerpt::Character, excerpt::characters, rule_why, visible};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// What a path keeps in a URI (RFC 3986, section 2.3), and its slashes.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A line longer than this is named without columns (bytes).
const LONGEST_LINE: usize = 1 << 16;

/// A log of one run. `base` is the directory that relative places start from;
/// `unread` says which files could not be looked at, and why.
#[must_use]
pub fn log(findings: &[Finding], base: &Path, unread: &[String]) -> Value {
    let rules = rules(findings);
    let mut seen = HashMap::new();
    let results: Vec<Value> =
        findings.iter().map(|finding| result(finding, &rules, base, &mut seen)).collect();
    let unread: Vec<Value> = unread
        .iter()
        .map(|why| json!({ "level": "error", "message": { "text": visible(why) } }))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "EffectGate",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| described(rule)).collect::<Vec<_>>(),
            } },
            "invocations": [{
                "executionSuccessful": unread.is_empty(),
                "toolExecutionNotifications": unread,
            }],
            "columnKind": "utf16CodeUnits",
            "originalUriBaseIds": { "ROOT": {
                "description": { "text": "The directory in which the files were checked" },
            } },
            "results": results,
        }],
    })
}

/// The rules that were broken, each once.
fn rules(findings: &[Finding]) -> Vec<&'static str> {
    let mut rules: Vec<&str> = findings.iter().map(|finding| finding.fault.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

fn described(rule: &str) -> Value {
    let mut described = json!({ "id": rule, "name": pascal(rule) });
    if let Some(why) = rule_why(rule) {
        described["fullDescription"] = json!({ "text": why });
        described["help"] = json!({ "text": why });
    }
    described
}

fn result(
    finding: &Finding,
    rules: &[&str],
    base: &Path,
    seen: &mut HashMap<String, usize>,
) -> Value {
    let Fault { file, rule, message, help, .. } = &finding.fault;
    let text = if help.is_empty() { message.clone() } else { format!("{message}; {help}") };
    let artifact = artifact(file, base);
    let same = same(finding, &artifact);
    let earlier = seen.entry(same.clone()).and_modify(|count| *count += 1).or_insert(0);
    let fingerprint = pin::digest(format!("{same}\n{earlier}").as_bytes());
    json!({
        "ruleId": rule,
        "ruleIndex": rules.binary_search(rule).ok(),
        "level": match finding.level { Level::Error => "error", Level::Note => "note" },
        "message": { "text": visible(&text) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": artifact,
            "region": region(finding),
        } }],
        "partialFingerprints": { "effectgate/v1": fingerprint },
    })
}

fn region(finding: &Finding) -> Value {
    let Fault { line: number, column, width, .. } = finding.fault;
    let number = number.max(1);
    let Some(line) = finding.line.as_ref().filter(|line| line.len() <= LONGEST_LINE) else {
        return json!({ "startLine": number });
    };
    let column = column.saturating_sub(1) as usize;
    let units = |count: usize| {
        1 + characters(line)
            .take(count)
            .map(|character| match character {
                Character::Good(c) => c.len_utf16(),
                Character::Byte(_) => 1,
            })
            .sum::<usize>()
    };
    json!({
        "startLine": number,
        "startColumn": units(column),
        "endColumn": units(column.saturating_add(width as usize)),
    })
}

/// Where a file is: below `base`, relative to it.
fn artifact(file: &str, base: &Path) -> Value {
    let mut path = PathBuf::new();
    for part in base.join(file).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            part => path.push(part),
        }
    }
    let uri = |path: &Path| utf8_percent_encode(&path.to_string_lossy(), ESCAPED).to_string();
    match path.strip_prefix(base) {
        Ok(below) => json!({ "uri": uri(below), "uriBaseId": "ROOT" }),
        Err(_) => json!({ "uri": format!("file://{}", uri(&path)) }),
    }
}

/// What is the same for a fault after the lines before it have changed: its
/// rule, its file, and what stands in its line.
fn same(finding: &Finding, artifact: &Value) -> String {
    let line = finding.line.as_ref().filter(|line| line.len() <= LONGEST_LINE);
    let line = line.map(|line| String::from_utf8_lossy(line).trim().to_owned());
    let uri = artifact["uri"].as_str().unwrap_or_default();
    format!("{}\n{uri}\n{}", finding.fault.rule, line.unwrap_or_default())
}

/// `root-climbs` is `RootClimbs`.
fn pascal(rule: &str) -> String {
    let words = rule.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
    });
    words.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_relative_where_they_can_be() {
        let base = Path::new("/srv/repo");
        for (file, uri, is_relative) in [
            ("agent-egress.yml", "agent-egress.yml", true),
            ("./a/../b c.yml", "b%20c.yml", true),
            ("/srv/repo/x/ü.yml", "x/%C3%BC.yml", true),
            ("../other.yml", "file:///srv/other.yml", false),
            ("/etc/a#b.json", "file:///etc/a%23b.json", false),
        ] {
            let artifact = artifact(file, base);
            assert_eq!(artifact["uri"], uri);
            assert_eq!(artifact.get("uriBaseId").is_some(), is_relative, "{file}");
        }
    }

    #[test]
    fn columns_count_utf_16_units() {
        let line = "\u{1f600}é: [x]";
        let finding = finding(line, 1, 5, 3);
        let region = region(&finding);
        assert_eq!((&region["startColumn"], &region["endColumn"]), (&json!(6), &json!(9)));
    }

    #[test]
    fn fingerprints_survive_lines_put_before() {
        let print = |findings: &[Finding]| {
            let log = log(findings, Path::new("/"), &[]);
            let results = log["runs"][0]["results"].as_array().cloned().unwrap();
            results.iter().map(|r| r["partialFingerprints"].to_string()).collect::<Vec<_>>()
        };
        let once = print(&[finding("a: b", 1, 4, 1)]);
        assert_eq!(once, print(&[finding("a: b", 9, 4, 1)]));
        let twice = print(&[finding("a: b", 1, 1, 1), finding("a: b", 1, 4, 1)]);
        assert_eq!(once[0], twice[0]);
        assert_ne!(twice[0], twice[1]);
        assert_ne!(once, print(&[finding("a: c", 1, 4, 1)]));
    }

    fn finding(line: &str, number: u32, column: u32, width: u32) -> Finding {
        let fault = Fault {
            file: "agent.yml".into(),
            rule: "root-climbs",
            line: number,
            column,
            width,
            message: "m".into(),
            help: "h".into(),
        };
        Finding { level: Level::Error, fault, line: Some(line.as_bytes().into()) }
    }
}
