//! The formats as those who read them define them.

use std::io::Write as _;
use std::process::{Command, Stdio};

use effectgate_daemon::report::{junit, sarif};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use serde_json::Value;

use crate::bundle::{Bundle, everything, everywhere, ocsf_lines, otlp_request};
use crate::common::*;

/// Every kind of record, hostile names, nothing at all, a policy that holds, and
/// every log that a version wrote.
fn bundles() -> Vec<Bundle> {
    let hostile = "\u{1b}<&\"'>\u{202e}\u{ffff}";
    let mut all = vec![
        Bundle::of(started(), everything("name")),
        everywhere(hostile),
        Bundle::of(started(), vec![]),
        Bundle::of(
            started(),
            vec![write("/srv/repo/a", effectgate_core::input::RootMatch::Below(1))],
        ),
    ];
    all.extend(Bundle::corpus().into_iter().map(|(_, bundle)| bundle));
    all
}

#[test]
fn sarif_is_sarif() {
    let schema = include_str!("schemas/sarif-2.1.0.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for bundle in bundles() {
        let log = sarif::log(&bundle.report(), std::path::Path::new("/srv/repo"));
        let errors: Vec<String> = schema.iter_errors(&log).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{log:#}");
    }
}

#[test]
fn ocsf_is_ocsf() {
    let schema: Value = serde_json::from_str(include_str!("schemas/ocsf-1.8.0.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut classes = std::collections::BTreeSet::new();
    for bundle in bundles() {
        for line in ocsf_lines(&bundle, &bundle.report()) {
            let event: Value = serde_json::from_str(&line).unwrap();
            let error = schema.iter_errors(&event).next().map(|error| error.to_string());
            assert_eq!(error, None, "{event:#}");
            let (class, activity) = (&event["class_uid"], &event["activity_id"]);
            let both = class.as_u64().unwrap() * 100 + activity.as_u64().unwrap();
            assert_eq!(event["type_uid"], both);
            classes.insert(class.as_u64().unwrap());
        }
    }
    assert_eq!(classes.into_iter().collect::<Vec<_>>(), [1001, 1007, 2004, 4001]);
}

#[test]
fn otlp_is_otlp() {
    for bundle in bundles() {
        let request = otlp_request(&bundle, &bundle.report());
        let read: ExportLogsServiceRequest = serde_json::from_value(request.clone()).unwrap();
        // What its reader does not know, it leaves out.
        let again = serde_json::to_value(&read).unwrap();
        assert_eq!(missing(&request, &again, ""), Vec::<String>::new());
        let resource = read.resource_logs[0].resource.as_ref().unwrap();
        let keys: Vec<&str> = resource.attributes.iter().map(|pair| pair.key.as_str()).collect();
        for key in ["cicd.pipeline.name", "cicd.pipeline.run.id", "cicd.pipeline.result"] {
            assert_eq!(keys.iter().filter(|known| **known == key).count(), 1, "{keys:?}");
        }
        let text = request.to_string();
        assert!(text.contains("nightly") && text.contains("\"a b\""), "the environment goes first");
    }
}

/// Where something of the first value is not in the second.
fn missing(wanted: &Value, found: &Value, at: &str) -> Vec<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let lost = |(key, value): (&String, &Value)| match found.get(key) {
                Some(other) => missing(value, other, &format!("{at}.{key}")),
                None => vec![format!("{at}.{key}")],
            };
            wanted.iter().flat_map(lost).collect()
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found).enumerate();
            pairs
                .flat_map(|(n, (wanted, found))| missing(wanted, found, &format!("{at}[{n}]")))
                .collect()
        }
        _ if wanted == found => Vec::new(),
        _ => vec![format!("{at}: {wanted} is {found}")],
    }
}

#[test]
fn junit_is_junit() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report/schemas/junit-10.xsd");
    for bundle in bundles() {
        let document = junit::document(&bundle.report()).unwrap();
        let mut lint = Command::new("xmllint")
            .args(["--noout", "--nonet", "--schema", schema, "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("xmllint (Debian: libxml2-utils; `cargo xtask setup` installs it)");
        lint.stdin.take().unwrap().write_all(&document).unwrap();
        let output = lint.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&document));
    }
}
