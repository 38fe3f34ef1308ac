//! A log as OpenTelemetry's log records, in the JSON form of its protocol
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>), a
//! request a line as its file exporters write them.

use effectgate_core::input::Class;
use effectgate_core::report::Report;
use effectgate_core::{Outcome, time};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// Records of one request.
pub const BATCH: usize = 500;

/// Severities (OpenTelemetry, "Logs Data Model").
const INFO: u32 = 9;
const WARN: u32 = 13;
const ERROR: u32 = 17;

/// A request of these records. `given` is what the environment says of the
/// resource (`OTEL_RESOURCE_ATTRIBUTES`), which goes before what the log says.
#[must_use]
pub fn request(report: &Report, given: &str, records: Vec<Value>) -> Value {
    json!({ "resourceLogs": [{
        "resource": { "attributes": resource(report, given) },
        "scopeLogs": [{
            "scope": { "name": "effectgate", "version": env!("CARGO_PKG_VERSION") },
            "logRecords": records,
        }],
    }] })
}

/// What the records are of: a run of a pipeline, by OpenTelemetry's names.
fn resource(report: &Report, given: &str) -> Vec<Value> {
    let verdict = &report.verdict;
    let result = match verdict.verdict {
        Outcome::Pass => "success",
        Outcome::Fail => "failure",
        Outcome::Indeterminate => "error",
    };
    let mut attributes = vec![
        ("service.name".to_owned(), "effectgate".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("host.name".to_owned(), report.facts.host.clone()),
        ("os.type".to_owned(), "linux".to_owned()),
        ("os.version".to_owned(), report.facts.kernel.clone()),
        ("cicd.pipeline.name".to_owned(), verdict.policy.id.clone()),
        ("cicd.pipeline.run.id".to_owned(), verdict.job.clone()),
        ("cicd.pipeline.result".to_owned(), result.to_owned()),
        ("effectgate.policy.sha256".to_owned(), verdict.policy.sha256.clone()),
        ("effectgate.verdict".to_owned(), verdict.verdict.name().to_owned()),
        ("effectgate.log.head".to_owned(), verdict.log.head.clone()),
    ];
    for (key, value) in pairs(given) {
        attributes.retain(|(known, _)| *known != key);
        attributes.push((key, value));
    }
    attributes.into_iter().map(|(key, value)| text(&key, &value)).collect()
}

/// `key=value` pairs between commas, percent-encoded (OpenTelemetry, "Resource
/// SDK"); what has no `=` is left out, as there.
fn pairs(given: &str) -> impl Iterator<Item = (String, String)> {
    let decoded = |part: &str| percent_decode_str(part.trim()).decode_utf8_lossy().into_owned();
    given.split(',').filter_map(move |pair| {
        let (key, value) = pair.split_once('=')?;
        Some((decoded(key), decoded(value))).filter(|(key, _)| !key.is_empty())
    })
}

/// The log record of an event record; `None` where it has no form of one.
#[must_use]
pub fn record(event: &Value) -> Option<Value> {
    let class = Class::from_name(event["class"].as_str()?)?;
    let action = event["action"].as_str()?;
    let ts = event["ts"].as_str().and_then(time::parse)?.to_string();
    let within = event["within"] == true;
    let (number, word) = match class {
        _ if !within => (ERROR, "ERROR"),
        Class::Guard if is_loss(action) => (WARN, "WARN"),
        _ => (INFO, "INFO"),
    };
    let mut attributes = vec![
        text("effectgate.class", class.name()),
        text("effectgate.action", action),
        text("effectgate.decision", event["decision"].as_str().unwrap_or_default()),
        json!({ "key": "effectgate.within", "value": { "boolValue": within } }),
        text("effectgate.hash", event["hash"].as_str().unwrap_or_default()),
        text("effectgate.rule", event["rule"]["name"].as_str().unwrap_or_default()),
    ];
    let mut add = |attribute: Option<Value>| attributes.extend(attribute);
    add(int("effectgate.seq", &event["seq"]));
    add(string("effectgate.rule.file", &event["rule"]["file"]));
    add(int("effectgate.rule.line", &event["rule"]["line"]));
    let process = &event["process"];
    add(int("process.pid", &process["pid"]));
    add(int("process.parent_pid", &process["ppid"]));
    add(string("process.executable.path", &process["exe"]));
    add(string("process.executable.name", &process["comm"]));
    add(process["uid"].as_u64().map(|uid| text("user.id", &uid.to_string())));
    let object = &event["object"];
    add(match class {
        Class::File => string("file.path", &object["path"]),
        _ => None,
    });
    if class == Class::Exec {
        add(list("process.command_args", &object["argv"]));
        add(int("process.exit.code", &object["code"]));
    }
    if class == Class::Env {
        add(list("effectgate.env.names", &object["names"]));
    }
    if class == Class::Net {
        add(string("network.type", &object["family"]));
        add(string("network.transport", &object["protocol"]));
        add(string("network.peer.address", &object["address"]));
        add(int("network.peer.port", &object["port"]));
        add(string("server.address", &object["name"]));
    }
    Some(json!({
        "timeUnixNano": ts,
        "observedTimeUnixNano": ts,
        "severityNumber": number,
        "severityText": word,
        "eventName": format!("effectgate.{}.{action}", class.name()),
        "body": { "stringValue": body(class, action, object) },
        "attributes": attributes,
    }))
}

/// What happened, in a line.
fn body(class: Class, action: &str, object: &Value) -> String {
    let about = ["path", "address", "abstract", "what"].into_iter();
    let about = about.filter_map(|key| object[key].as_str()).next();
    match about {
        Some(about) if class == Class::Guard => about.to_owned(),
        Some(about) => format!("{} {action} {about}", class.name()),
        None => format!("{} {action}", class.name()),
    }
}

fn is_loss(action: &str) -> bool {
    matches!(action, "gap" | "canary_failed" | "stopped" | "killed" | "unknown")
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn string(key: &str, value: &Value) -> Option<Value> {
    value.as_str().map(|value| text(key, value))
}

/// Numbers of 64 bits are strings in the protocol's JSON.
fn int(key: &str, value: &Value) -> Option<Value> {
    let number = value.as_u64()?;
    Some(json!({ "key": key, "value": { "intValue": number.to_string() } }))
}

fn list(key: &str, value: &Value) -> Option<Value> {
    let values = value.as_array()?.iter().filter_map(Value::as_str);
    let values: Vec<Value> = values.map(|text| json!({ "stringValue": text })).collect();
    Some(json!({ "key": key, "value": { "arrayValue": { "values": values } } }))
}
