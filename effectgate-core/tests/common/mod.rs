//! A job, and the log it writes.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod any;

use effectgate_core::input::{
    Backend, Bytes, Class, Coverage, Coverages, Device, Event, Exec, Exit, FileObject, FileOp,
    Input, JobId, Mode, Root, RootMatch, Started, Stream, What,
};
use effectgate_core::policy::{self, Policy, Rights};
use effectgate_core::{Line, State, Verdict, step};

pub const JOB: JobId = 3;
pub const T0: u64 = 1_700_000_000_000_000_000;

pub const ENVELOPE: &str = r#"{
  "envelope_id": "agent-patch-envelope-v3",
  "allowed_roots": ["/srv/repo", "/srv/scratch"],
  "allowed_tools": ["read_file"],
  "allowed_env": ["CI", "LISTED_TOKEN"],
  "allowed_hosts": ["example.com:443", "198.51.100.7"],
  "network": "allowlist"
}
"#;

pub fn policy() -> Policy {
    policy::parse("envelope.json", ENVELOPE.as_bytes(), "2026-01-31").unwrap()
}

/// A policy with these roots, and nothing else changed.
pub fn policy_with_roots(roots: &[&str]) -> Policy {
    let text = ENVELOPE
        .replace(r#""/srv/repo", "/srv/scratch""#, &format!("\"{}\"", roots.join("\", \"")));
    policy::parse("other.json", text.as_bytes(), "2026-01-31").unwrap()
}

pub fn started() -> Started {
    let root = |id, path: &str, entry| Root { id, path: path.into(), entry, rights: Rights::WRITE };
    let all = Coverage::Object;
    Started {
        job: JOB,
        ts: T0,
        boot_offset: T0 - 1_000,
        name: "job-3".into(),
        policy: policy(),
        note: None,
        host: "build-1".into(),
        kernel: "6.12.0".into(),
        backend: Backend::Lsm,
        coverage: Coverages { file: all, exec: all, env: all, net: all, tool: Coverage::None },
        min_coverage: Coverage::Object,
        mode: Mode::Observe,
        programs: "ab".repeat(32),
        argv: vec![b"make".to_vec(), b"API_KEY=hunter2hunter2".to_vec()],
        cgroup: "effectgate/job-3".into(),
        workspace: None,
        home: None,
        roots: vec![
            root(1, "/srv/repo", Some(0)),
            root(2, "/srv/scratch", Some(1)),
            root(9, "/tmp/effectgate-3", None),
        ],
        binaries: vec![],
        own: vec![],
        hosts: vec![vec!["192.0.2.1".parse().unwrap()], vec![]],
        streams: vec![Stream {
            dev: Device { major: 8, minor: 1 },
            ino: 77,
            read: false,
            write: true,
        }],
        terminals: vec![Device { major: 136, minor: 4 }],
        env: vec![],
        processes: vec![],
    }
}

pub fn event(what: What) -> Input {
    by(42, what)
}

/// An event of this process.
pub fn by(pid: u32, what: What) -> Input {
    let comm = b"sh".to_vec();
    Input::Event(Event { ts: T0 + 1, job: JOB, pid, tid: pid, uid: 1000, comm, what })
}

pub fn object(path: &str, root: RootMatch) -> FileObject {
    FileObject { path: path.into(), root, ino: 5, mode: 0o100_644, ..FileObject::default() }
}

pub fn write(path: &str, root: RootMatch) -> Input {
    let object = object(path, root);
    event(What::File { op: FileOp::OpenWrite, object, other: None, coverage: Coverage::Object })
}

pub fn exec(pid: u32, start: u64, path: &str) -> Input {
    let file = object(path, RootMatch::Outside);
    let exec = Exec {
        asked: file.path.clone(),
        file,
        argv: vec![path.into(), b"--token".to_vec(), b"hunter2hunter2".to_vec()],
        argv_complete: true,
        ppid: 1,
        start,
    };
    by(pid, What::Exec(exec))
}

pub fn env(names: &[&str]) -> Input {
    event(What::Env { names: keys(names), complete: true })
}

pub fn keys(names: &[&str]) -> Vec<Bytes> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

pub fn canary() -> Input {
    let seen = vec![Class::File, Class::Exec, Class::Env, Class::Net];
    Input::Canary { job: JOB, ts: T0, seen, missing: vec![] }
}

pub fn launched() -> Input {
    Input::Launched { job: JOB, ts: T0 }
}

pub fn finished() -> Input {
    Input::Finished { job: JOB, ts: T0 + 2, exit: Some(Exit::Code(0)) }
}

/// A whole job: start, canary, launch, these inputs, end.
pub fn job(started: Started, inputs: Vec<Input>) -> (Vec<Line>, Verdict) {
    let mut all = vec![Input::Started(Box::new(started)), canary(), launched()];
    all.extend(inputs);
    all.push(finished());
    run(all)
}

/// Everything as it is given; it must end with the job's end.
pub fn run(inputs: Vec<Input>) -> (Vec<Line>, Verdict) {
    let mut state = State::new();
    let mut lines = Vec::new();
    let mut verdict = None;
    for input in inputs {
        let output = step(&mut state, input);
        lines.extend(output.records);
        verdict = verdict.or(output.verdict);
    }
    (lines, verdict.expect("the job ended"))
}

pub fn log(lines: &[Line]) -> Vec<u8> {
    lines.iter().flat_map(|line| [&line.bytes[..], b"\n"].concat()).collect()
}

pub fn json(line: &Line) -> serde_json::Value {
    serde_json::from_slice(&line.bytes).unwrap()
}

/// A log of these records, whose chain is whole whatever stands in them: what
/// a forger would write, who knows the documented construction and no more.
pub fn seal(records: Vec<serde_json::Value>) -> Vec<u8> {
    use effectgate_core::pin::digest;
    let canonical = |value: &_| serde_json_canonicalizer::to_vec(value).unwrap();
    let object = &records[0]["object"];
    let mut head = digest(&canonical(&serde_json::json!({
        "schema": "effectgate.event/v1",
        "policy": object["policy"]["sha256"],
        "job": records[0]["job"],
        "host": object["host"],
        "kernel": object["kernel"],
        "backend": object["backend"],
        "programs": object["programs"],
    })));
    let mut log = Vec::new();
    for (seq, mut record) in records.into_iter().enumerate() {
        record["seq"] = seq.into();
        record["prev"] = head.clone().into();
        record.as_object_mut().unwrap().remove("hash");
        head = digest(&[head.as_bytes(), &canonical(&record)].concat());
        record["hash"] = head.clone().into();
        log.extend(canonical(&record));
        log.push(b'\n');
    }
    log
}
