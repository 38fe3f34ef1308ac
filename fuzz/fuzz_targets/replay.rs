//! Any bytes as a log, as they are and with their chain repaired: noise that
//! does not get past the hashes would never reach what reads the records.
#![no_main]

use effectgate_core::{policy, replay, report};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ENVELOPE: &[u8] = br#"{"envelope_id": "fuzz", "allowed_roots": ["/srv/repo"],
"allowed_tools": [], "allowed_env": ["CI"], "allowed_hosts": ["example.com"], "network": "allowlist"}"#;

fuzz_target!(|bytes: &[u8]| {
    let policy = policy::parse("envelope.json", ENVELOPE, "2026-01-31").expect("it is written above");
    let _ = replay::replay(bytes, policy.clone());
    let _ = report::of_log(&sealed(bytes)[..], policy, ENVELOPE);
});

fn sealed(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split(|b| *b == b'\n');
    let records = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut log = Vec::new();
    let mut prev = None;
    for (seq, mut record) in records.filter(Value::is_object).enumerate() {
        let head = prev.take().unwrap_or_else(|| genesis(&record));
        record["seq"] = seq.into();
        record["prev"] = head.clone().into();
        record.as_object_mut().map(|members| members.remove("hash"));
        let hash = sha256(&[head.as_bytes(), &canonical(&record)].concat());
        record["hash"] = hash.clone().into();
        log.extend(canonical(&record));
        log.push(b'\n');
        prev = Some(hash);
    }
    log
}

fn genesis(record: &Value) -> String {
    let object = &record["object"];
    sha256(&canonical(&json!({
        "schema": "effectgate.event/v1",
        "policy": object["policy"]["sha256"],
        "job": record["job"],
        "host": object["host"],
        "kernel": object["kernel"],
        "backend": object["backend"],
        "programs": object["programs"],
    })))
}

fn canonical(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap_or_default()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
