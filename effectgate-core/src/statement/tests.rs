//! The statement of a small log, and of hostile ones.

use proptest::prelude::*;

use super::*;

fn log(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| (line.to_string() + "\n").into_bytes()).collect()
}

fn record(class: &str, action: &str, object: Value) -> Value {
    json!({
        "class": class, "action": action, "object": object, "within": true,
        "decision": "recorded", "seq": 1,
        "process": {"pid": 7, "ppid": 1, "start": 5, "uid": 0, "exe": "/bin/sh"},
    })
}

fn opening() -> Value {
    let policy = json!({"kind": "envelope", "id": "e", "sha256": "00", "file": "e.json"});
    record("guard", "start", json!({"policy": policy, "host": "a b/c", "backend": "lsm"}))
}

fn made(lines: &[Value]) -> Value {
    let digests = Digests::from([("policy".to_owned(), "ab".to_owned())]);
    let verdict = json!({"job": "j", "verdict": "pass", "started": "s", "ended": "e"});
    statement(&digests, &verdict, log(lines).as_slice()).unwrap()
}

#[test]
fn subjects_are_the_files_and_their_list() {
    let statement = made(&[opening()]);
    let list = crate::pin::digest(b"ab  policy\n");
    assert_eq!(
        statement["subject"],
        json!([
            {"name": "MANIFEST.sha256", "digest": {"sha256": list}},
            {"name": "policy", "digest": {"sha256": "ab"}},
        ])
    );
    let predicate = &statement["predicate"];
    assert_eq!(predicate["monitoredProcess"]["hostID"], "effectgate:host/a%20b/c");
    assert_eq!(predicate["monitoredProcess"]["event"], "j");
    assert_eq!(predicate["effectgate_verdict"]["verdict"], "pass");
}

#[test]
fn what_is_touched_again_is_counted() {
    let mut outside = record("file", "create", json!({"path": "/b\\\\ é\\xff"}));
    outside["within"] = false.into();
    let statement = made(&[
        opening(),
        record("file", "open_read", json!({"path": "/a"})),
        record("file", "open_read", json!({"path": "/a"})),
        record("file", "rename", json!({"path": "/a", "other": {"path": "/c"}})),
        outside,
        record("file", "open_read", json!({"path": "pipe:[1]"})),
        record("file", "open_read", json!({"path": null})),
        record("exec", "exec", json!({"path": "/s", "interpreter": "/bin/sh", "argv": ["s"]})),
        record("exec", "fork", json!({"pid": 8, "start": 6})),
        record("exec", "exit", json!({"code": 0})),
        record("net", "connect", json!({"address": "::1", "port": 1})),
        record("net", "connect", json!({"address": "::1", "port": 1})),
    ]);
    let log = &statement["predicate"]["monitorLog"];
    let file = |name: &str, uri: &str, actions: Value, outside: u64| {
        json!({"name": name, "uri": uri,
            "annotations": {"actions": actions, "outside": outside, "denied": 0}})
    };
    assert_eq!(
        log["fileAccess"],
        json!([
            file("/a", "file:///a", json!({"open_read": 2, "rename": 1}), 0),
            file("/b\\\\ é\\xff", "file:///b%5C%20%C3%A9%FF", json!({"create": 1}), 1),
            file("/bin/sh", "file:///bin/sh", json!({"exec": 1}), 0),
            file("/c", "file:///c", json!({"rename": 1}), 0),
            file("/s", "file:///s", json!({"exec": 1}), 0),
            file("pipe:[1]", "effectgate:file/pipe%3A%5B1%5D", json!({"open_read": 1}), 0),
        ])
    );
    assert_eq!(log["network"].as_array().map(Vec::len), Some(1));
    assert_eq!(log["network"][0]["annotations"]["actions"]["connect"], 2);
    let kinds: Vec<_> =
        log["process"].as_array().unwrap().iter().map(|p| &p["eventType"]).collect();
    assert_eq!(kinds, ["exec", "fork", "exit"]);
    assert_eq!(log["process"][0]["processBinary"], "/bin/sh");
    assert_eq!(log["effectgate_unlisted"], json!({"process": 0, "network": 0, "fileAccess": 0}));
}

#[test]
fn lists_are_bounded_and_the_rest_is_counted() {
    let mut lines = vec![opening()];
    for n in 0..5 {
        lines.push(record("file", "mkdir", json!({"path": format!("/{n}")})));
        lines.push(record("net", "connect", json!({"address": "::1", "port": n})));
        lines.push(record("exec", "fork", json!({"pid": n})));
    }
    // Known already.
    lines.push(record("file", "mkdir", json!({"path": "/0"})));
    let trace = Trace::bounded(log(&lines).as_slice(), 3, usize::MAX).unwrap();
    for list in [&trace.files, &trace.network, &trace.process] {
        assert_eq!(list.len(), 3);
    }
    let unlisted = serde_json::to_value(&trace.unlisted).unwrap();
    assert_eq!(unlisted, json!({"process": 2, "network": 2, "fileAccess": 2}));
    assert_eq!(trace.files[0]["annotations"]["actions"]["mkdir"], 2);
}

#[test]
fn bytes_are_bounded_as_entries_are() {
    let mut lines = vec![opening()];
    for n in 0..8 {
        let (name, argv) = (format!("/{n}{}", "x".repeat(1000)), ["y".repeat(2000)]);
        lines.push(record("file", "mkdir", json!({"path": name})));
        lines.push(record("net", "connect", json!({"address": name})));
        lines.push(record("exec", "exec", json!({"path": "/bin/sh", "argv": argv})));
    }
    let all = Trace::bounded(log(&lines).as_slice(), 100, usize::MAX).unwrap();
    let size = |trace: &Trace| {
        let lists = [&trace.process, &trace.network, &trace.files];
        lists.iter().map(|list| serde_json::to_string(list).unwrap().len()).sum::<usize>()
    };
    for bytes in (0..size(&all)).step_by(997) {
        let held = size(&Trace::bounded(log(&lines).as_slice(), 100, bytes).unwrap());
        assert!(held <= 2 * bytes + 100, "{held} of {bytes}");
    }
    let room = Trace::bounded(log(&lines).as_slice(), 100, 2 * size(&all)).unwrap();
    assert_eq!(size(&room), size(&all));
}

#[test]
fn the_first_difference_is_found() {
    let value = json!({"a": [1, {"b": 2}], "c": null});
    assert_eq!(difference(&value, &value), None);
    for (other, path) in [
        (json!({"a": [1, {"b": 3}], "c": null}), "a/1/b"),
        (json!({"a": [1], "c": null}), "a/1"),
        (json!({"a": [1, {"b": 2}]}), "c"),
        (json!({"a": [1, {"b": 2}], "c": null, "d": null}), "d"),
        (json!(1), ""),
    ] {
        assert_eq!(difference(&value, &other).as_deref(), Some(path));
        assert!(difference(&other, &value).is_some());
    }
}

proptest! {
    #[test]
    fn any_log(lines in prop::collection::vec(any::<String>(), 0..4), class in "exec|file|net|x") {
        let text = lines.join("\n");
        let _ = Trace::of(text.as_bytes());
        let odd = json!({"class": class, "object": lines, "process": text});
        prop_assert!(Trace::of(log(&[odd]).as_slice()).is_ok());
    }
}
