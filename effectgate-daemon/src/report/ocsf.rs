//! A log in the Open Cybersecurity Schema Framework, version 1.8.0
//! (<https://schema.ocsf.io/1.8.0>): an event for each effect on files (class
//! 1001), processes (1007) and the network (4001), and a finding (2004) for
//! each violation and for what is not known.

mod findings;

use effectgate_core::input::{Class, FileOp, NetOp};
use effectgate_core::report::Report;
use effectgate_core::time;
use serde_json::{Map, Value, json};

pub use findings::findings;

const VERSION: &str = "1.8.0";

/// The kinds of events, and the category of each.
const FILE: (u64, u64) = (1001, 1);
const PROCESS: (u64, u64) = (1007, 1);
const NETWORK: (u64, u64) = (4001, 4);
const FINDING: (u64, u64) = (2004, 2);

/// Activities and results that every class has.
const OTHER: u64 = 99;

/// The event of a record; `None` for what the observer says, which is no
/// effect.
#[must_use]
pub fn event(report: &Report, record: &Value) -> Option<Value> {
    let class = Class::from_name(record["class"].as_str()?)?;
    let action = record["action"].as_str()?;
    let object = &record["object"];
    match class {
        Class::File => {
            let op = FileOp::from_name(action)?;
            let mut event = common(report, record, FILE, file_activity(op));
            event["file"] = file(object);
            if object["other"].is_object() {
                event["file_result"] = file(&object["other"]);
            }
            Some(event)
        }
        Class::Exec => process_event(report, record, action),
        Class::Env => {
            let mut event = common(report, record, PROCESS, OTHER);
            event["process"] = process(report, &record["process"])?;
            event["unmapped"]["env_names"] = object["names"].clone();
            Some(event)
        }
        Class::Net => Some(network_event(report, record, NetOp::from_name(action)?)),
        Class::Tool | Class::Limit | Class::Guard => None,
    }
}

fn process_event(report: &Report, record: &Value, action: &str) -> Option<Value> {
    let object = &record["object"];
    let (launch, terminate) = (1, 2);
    let activity = if action == "exit" { terminate } else { launch };
    let mut event = common(report, record, PROCESS, activity);
    let mut subject = process(report, &record["process"])?;
    match action {
        "fork" => {
            subject = process(report, object)?;
            event["launch_type_id"] = 2.into();
        }
        "exec" => {
            let words = object["argv"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let words: Vec<String> = words.map(str::to_owned).collect();
            subject["cmd_line"] = super::words::command(&words).into();
            subject["file"] = file(object);
            event["launch_type_id"] = 3.into();
        }
        _ => {
            // As wait(2) has it: the code in the second byte.
            let status = object["code"].as_u64().unwrap_or_default();
            event["exit_code"] = (status >> 8 & 0xff).into();
        }
    }
    event["process"] = subject;
    Some(event)
}

fn network_event(report: &Report, record: &Value, op: NetOp) -> Value {
    let (open, traffic, listen) = (1, 6, 7);
    let activity = match op {
        NetOp::Connect => open,
        NetOp::Send => traffic,
        NetOp::Bind => listen,
    };
    let mut event = common(report, record, NETWORK, activity);
    let object = &record["object"];
    let side = if op == NetOp::Bind { "src_endpoint" } else { "dst_endpoint" };
    event[side] = endpoint(object);
    let (inbound, outbound, local) = (1, 2, 4);
    let family = object["family"].as_str().unwrap_or_default();
    let mut connection = json!({ "direction_id": match op {
        _ if family == "unix" => local,
        NetOp::Bind => inbound,
        NetOp::Connect | NetOp::Send => outbound,
    } });
    if let Some(protocol) = object["protocol"].as_str() {
        connection["protocol_name"] = protocol.into();
        connection["protocol_ver_id"] = (if family == "ipv6" { 6 } else { 4 }).into();
    }
    event["connection_info"] = connection;
    event
}

/// Where somebody is spoken to.
fn endpoint(object: &Value) -> Value {
    let text = |key: &str| object[key].as_str();
    match text("address") {
        Some(address) => {
            let mut endpoint = json!({ "ip": address, "port": object["port"] });
            endpoint["name"] = text("name").unwrap_or(address).into();
            endpoint
        }
        None => {
            let abstract_name = text("abstract").map(|name| format!("@{name}"));
            let name = text("path").map(str::to_owned).or(abstract_name);
            json!({ "name": name.unwrap_or_else(|| "(unnamed)".to_owned()) })
        }
    }
}

/// What every event has.
fn common(report: &Report, record: &Value, class: (u64, u64), activity: u64) -> Value {
    let (informational, medium) = (1, 3);
    let within = record["within"] == true;
    let decision = record["decision"].as_str().unwrap_or_default();
    let mut event = base(report, class, activity);
    let ts = record["ts"].as_str().and_then(time::parse).unwrap_or_default();
    event["time"] = millis(ts);
    event["metadata"]["uid"] = record["hash"].clone();
    event["metadata"]["sequence"] = record["seq"].clone();
    event["severity_id"] = (if within { informational } else { medium }).into();
    event["activity_name"] = record["action"].clone();
    event["status_id"] = (if decision == "denied" { 2 } else { 1 }).into();
    // Allowed; denied and blocked; observed and detected or logged.
    let (action, disposition) = match decision {
        "allowed" => (1, 1),
        "denied" => (2, 2),
        "recorded" if within => (3, 17),
        "recorded" => (3, 15),
        _ => (OTHER, OTHER),
    };
    event["action_id"] = action.into();
    event["disposition_id"] = disposition.into();
    if action == OTHER {
        event["action"] = decision.into();
        event["disposition"] = decision.into();
    }
    event["unmapped"] = json!({
        "rule": record["rule"],
        "within": within,
        "decision": decision,
        "coverage": record["coverage"],
    });
    if let Some(process) = process(report, &record["process"]) {
        event["actor"] = json!({ "process": process });
    }
    event
}

fn base(report: &Report, (class, category): (u64, u64), activity: u64) -> Value {
    json!({
        "class_uid": class,
        "category_uid": category,
        "activity_id": activity,
        "type_uid": class * 100 + activity,
        "metadata": {
            "version": VERSION,
            "profiles": ["host", "security_control"],
            "product": {
                "name": "EffectGate",
                "vendor_name": "EffectGate",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "log_name": "effectgate.event/v1",
            "correlation_uid": report.verdict.job,
        },
        "device": {
            "name": report.facts.host,
            "type_id": 0,
            "os": { "name": "Linux", "type_id": 200, "kernel_release": report.facts.kernel },
        },
        "policy": { "name": report.verdict.policy.id, "uid": report.verdict.policy.sha256 },
    })
}

/// The process of a record, or of a fork.
fn process(report: &Report, process: &Value) -> Option<Value> {
    let mut shown = Map::new();
    shown.insert("pid".into(), process["pid"].as_u64()?.into());
    if let Some(start) = process["start"].as_u64() {
        shown.insert("created_time".into(), millis(start.saturating_add(report.facts.boot_offset)));
    }
    if let Some(comm) = process["comm"].as_str() {
        shown.insert("name".into(), comm.into());
    }
    if let Some(exe) = process["exe"].as_str() {
        shown.insert("path".into(), exe.into());
    }
    if let Some(uid) = process["uid"].as_u64() {
        let uid = uid.to_string();
        shown.insert("user".into(), json!({ "uid": uid }));
    }
    if let Some(ancestry) = process["ancestry"].as_array().filter(|list| !list.is_empty()) {
        let entity = |ancestor: &Value| {
            let mut entity = json!({ "pid": ancestor["pid"], "name": ancestor["comm"] });
            if let Some(exe) = ancestor["exe"].as_str() {
                entity["path"] = exe.into();
            }
            entity
        };
        shown.insert("ancestry".into(), ancestry.iter().map(entity).collect());
    }
    Some(Value::Object(shown))
}

fn file(object: &Value) -> Value {
    let path = object["path"].as_str().unwrap_or_default();
    let name = path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
    // inode(7): the type is the mode's first four bits.
    let kind = match object["mode"].as_u64().unwrap_or_default() & 0o170_000 {
        0o100_000 => 1,
        0o040_000 => 2,
        0o020_000 => 3,
        0o060_000 => 4,
        0o140_000 => 5,
        0o010_000 => 6,
        0o120_000 => 7,
        _ => 0,
    };
    let mut file = json!({ "name": name.unwrap_or("/"), "path": path, "type_id": kind });
    if let (Some(dev), Some(ino)) = (object["dev"].as_str(), object["ino"].as_u64()) {
        file["uid"] = format!("{dev}:{ino}").into();
    }
    file
}

fn file_activity(op: FileOp) -> u64 {
    let (create, read, update, delete, rename, attributes, security) = (1, 2, 3, 4, 5, 6, 7);
    match op {
        FileOp::OpenRead | FileOp::MapExec => read,
        FileOp::Create | FileOp::Mkdir | FileOp::Link | FileOp::Symlink => create,
        FileOp::OpenWrite | FileOp::Write | FileOp::Truncate | FileOp::Ioctl => update,
        FileOp::Unlink | FileOp::Rmdir => delete,
        FileOp::Rename => rename,
        FileOp::Setxattr | FileOp::Utimes => attributes,
        FileOp::Chmod | FileOp::Chown => security,
    }
}

/// From nanoseconds.
fn millis(ts: u64) -> Value {
    (ts / 1_000_000).into()
}
