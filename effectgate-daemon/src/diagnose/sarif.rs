//! Findings in the Static Analysis Results Interchange Format, version 2.1.0
//! (OASIS), which pull requests show at the lines concerned.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use effectgate_core::pin;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::excerpt::{Character, LONGEST_LINE, characters};
use super::{Finding, Level, Mark, Place, visible};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// What a path keeps in a URI (RFC 3986, section 2.3), and its slashes.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A log of one run. `base` is the directory that relative places start from;
/// `unread` says which files could not be looked at, and why.
#[must_use]
pub fn log(findings: &[Finding], base: &Path, unread: &[String]) -> Value {
    let rules = rules(findings);
    let indices: HashMap<&str, usize> =
        rules.keys().enumerate().map(|(index, rule)| (*rule, index)).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut results = Vec::with_capacity(findings.len());
    for finding in findings {
        let nth = seen.entry(same(finding, base)).and_modify(|nth| *nth += 1).or_default();
        let index = indices.get(finding.rule).copied().unwrap_or_default();
        results.push(result(finding, index, base, *nth));
    }
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
                "rules": rules.iter().map(described).collect::<Vec<_>>(),
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

/// The rules that were broken, each once, with why they are there.
fn rules(findings: &[Finding]) -> BTreeMap<&'static str, &'static str> {
    findings.iter().map(|finding| (finding.rule, finding.why)).collect()
}

fn described((rule, why): (&&'static str, &&'static str)) -> Value {
    json!({
        "id": rule,
        "name": pascal(rule),
        "fullDescription": { "text": why },
        "help": { "text": why },
    })
}

fn result(finding: &Finding, index: usize, base: &Path, nth: usize) -> Value {
    let Finding { rule, file, message, help, .. } = finding;
    let text = if help.is_empty() { message.clone() } else { format!("{message}; {help}") };
    let fingerprint = pin::digest(format!("{}\n{nth}", same(finding, base)).as_bytes());
    let mut result = json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": match finding.level { Level::Error => "error", Level::Note => "note" },
        "message": { "text": visible(&text) },
        "locations": [location(file, finding.place.as_ref().map(region), base)],
        "partialFingerprints": { "effectgate/v1": fingerprint },
    });
    if let Some(decided) = &finding.decided {
        let mut location =
            location(&decided.file, Some(json!({ "startLine": decided.line })), base);
        location["message"] = json!({ "text": format!("{} decides", decided.key) });
        result["relatedLocations"] = json!([location]);
    }
    result
}

fn location(file: &str, region: Option<Value>, base: &Path) -> Value {
    let mut physical = json!({ "artifactLocation": artifact(file, base) });
    if let Some(region) = region {
        physical["region"] = region;
    }
    json!({ "physicalLocation": physical })
}

fn region(Place { line, mark }: &Place) -> Value {
    let line = (*line).max(1);
    let Some(Mark { column, width, text }) = mark.as_ref().filter(|mark| is_short(mark)) else {
        return json!({ "startLine": line });
    };
    let column = column.saturating_sub(1) as usize;
    let units = |count: usize| {
        1 + characters(text)
            .take(count)
            .map(|character| match character {
                Character::Good(c) => c.len_utf16(),
                Character::Byte(_) => 1,
            })
            .sum::<usize>()
    };
    json!({
        "startLine": line,
        "startColumn": units(column),
        "endColumn": units(column.saturating_add(*width as usize)),
    })
}

/// A longer line is named without columns.
fn is_short(mark: &Mark) -> bool {
    mark.text.len() <= LONGEST_LINE
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

/// What is the same for a finding after the lines before it have changed: its
/// rule, its file, and what stands in its line.
fn same(finding: &Finding, base: &Path) -> String {
    let mark = finding.place.as_ref().and_then(|place| place.mark.as_ref());
    let line = mark.filter(|mark| is_short(mark)).map(|mark| String::from_utf8_lossy(&mark.text));
    let line = line.unwrap_or_else(|| finding.message.as_str().into());
    let artifact = artifact(&finding.file, base);
    let uri = artifact["uri"].as_str().unwrap_or_default();
    format!("{}\n{uri}\n{}", finding.rule, line.trim())
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
    use super::super::Decided;
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
        let region = region(&finding(line, 1, 5, 3).place.unwrap());
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

    #[test]
    fn what_is_not_shown_has_no_columns() {
        let unseen = Finding {
            place: Some(Place { line: 7, mark: None }),
            decided: Some(Decided { file: "agent.yml".into(), line: 3, key: "binaries" }),
            ..finding("", 1, 1, 1)
        };
        let log = log(&[unseen], Path::new("/"), &[]);
        let result = &log["runs"][0]["results"][0];
        let region = &result["locations"][0]["physicalLocation"]["region"];
        assert_eq!(region, &json!({ "startLine": 7 }));
        let related = &result["relatedLocations"][0]["physicalLocation"];
        assert_eq!(related["region"]["startLine"], 3);
    }

    fn finding(line: &str, number: u64, column: u32, width: u32) -> Finding {
        Finding {
            level: Level::Error,
            rule: "root-climbs",
            file: "agent.yml".into(),
            place: Some(Place {
                line: number,
                mark: Some(Mark { column, width, text: line.as_bytes().into() }),
            }),
            message: "m".into(),
            why: "w",
            help: "h".into(),
            decided: None,
        }
    }
}
