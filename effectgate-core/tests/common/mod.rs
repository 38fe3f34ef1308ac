//! A job, and the log it writes.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod any;

use std::path::Path;

use effectgate_core::input::{
    Backend, Bytes, Class, Coverage, Coverages, Decided, Device, Event, Exec, FileObject, FileOp,
    Found, Input, JobId, Mode, Root, RootMatch, Started, Stream, What,
};
use effectgate_core::policy::{self, Key, Policy, Rights, RootRule};
use effectgate_core::{Line, State, Verdict, judge, step};

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

/// The lines matter: tests say which of them decided.
pub const MANIFEST: &str = r#"version: 2
agent_id: docs-agent
owner: team-docs
workspace_roots: [src, vendor]
write_roots: [src/out]
exec_roots: [src/built]
read_roots:
  - /opt/data
  - /proc/cpuinfo
  - /srv/repo/conf.toml
extends: [base-linux]
mounted_secrets: [/run/secrets/db]
binaries:
  - python3
  - bash
  - ls
network:
  mode: allowlist
  hosts: [docs.example.com]
env_allow: [CI]
exceptions:
  - allows: bash
    reviewers: [A. One, B. Two]
    reason: the build is a shell script
    expires: "2023-12-31"
  - allows: perl -e
    reviewers: [A. One, B. Two]
    reason: the generator
    expires: "2023-12-31"
max_steps: 100
max_wall_clock_sec: 60
max_tool_calls_per_step: 20
mcp_servers: []
"#;

/// The day of [`T0`].
pub const TODAY: &str = "2023-11-14";

pub fn manifest() -> Policy {
    manifest_of(MANIFEST)
}

/// What the shipped profiles hold is not these tests' matter: another one adds
/// this directory.
pub const PROFILED: &str = "/usr/share/kit";

pub fn manifest_of(text: &str) -> Policy {
    let parsed = policy::parse("agent-egress.yml", text.as_bytes(), TODAY);
    let mut policy = parsed.unwrap_or_else(|faults| panic!("{faults:#?}"));
    policy.roots.entries.push(RootRule {
        path: PROFILED.into(),
        rights: Rights::READ,
        key: Key { name: "base-linux", line: 11 },
        profile: true,
    });
    policy
}

/// A job under [`MANIFEST`] in `/srv/repo`, whose user's home is `/home/a`.
pub fn manifest_started() -> Started {
    under(manifest())
}

/// The same under another manifest: what the engine would find on a machine
/// where every root of it exists and no path has links. Roots have the numbers
/// of their entries, counted from 1; `TMPDIR` has 9999.
pub fn under(policy: Policy) -> Started {
    let (workspace, home) = (Path::new("/srv/repo"), Path::new("/home/a"));
    let entries = policy.roots.entries.iter().enumerate();
    let entries = entries.filter(|(_, entry)| !judge::is_kernel_file(entry));
    let mut roots: Vec<Root> = entries
        .map(|(index, entry)| {
            let path = entry.place(Some(workspace), Some(home)).unwrap();
            let path = path.to_str().unwrap().into();
            Root { id: index as u32 + 1, path, entry: Some(index), rights: Rights::default() }
        })
        .collect();
    let tmpdir = b"/tmp/effectgate-3".to_vec();
    roots.push(Root { id: 9999, path: tmpdir, entry: None, rights: Rights::default() });
    judge::grant_rights(&policy, &mut roots);
    let names = policy.binaries.as_ref().unwrap().entries().iter().enumerate();
    let binaries = names
        .map(|(entry, listed)| Found {
            entry,
            path: format!("/usr/bin/{}", listed.value.name).into(),
            dev: Device { major: 8, minor: 1 },
            ino: 1000 + entry as u64,
            twin: 0,
        })
        .collect();
    Started {
        workspace: Some(b"/srv/repo".to_vec()),
        home: Some(b"/home/a".to_vec()),
        own: vec![b"/usr/share/kit/evidence".to_vec()],
        hosts: vec![vec![]],
        policy,
        roots,
        binaries,
        ..started()
    }
}

/// The root at this path.
pub fn root_at(started: &Started, path: &str) -> RootMatch {
    let root = started.roots.iter().find(|root| root.path == path.as_bytes());
    RootMatch::Below(root.unwrap_or_else(|| panic!("no root {path}")).id)
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
        judged: true,
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
        sockets: vec![],
        linked: vec![],
        digests_hold: true,
        own: vec![],
        hosts: vec![vec!["192.0.2.1".parse().unwrap()], vec![]],
        streams: vec![Stream {
            dev: Device { major: 8, minor: 1 },
            ino: 77,
            twin: 0,
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
    let kernel = None;
    Input::Event(Event { ts: T0 + 1, job: JOB, pid, tid: pid, uid: 1000, comm, kernel, what })
}

/// The same, of which the kernel says this.
pub fn decided(kernel: Decided, input: Input) -> Input {
    match input {
        Input::Event(event) => Input::Event(Event { kernel: Some(kernel), ..event }),
        other => other,
    }
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

/// Of a cgroup's job: nobody knows how its processes ended, nor that there were any.
pub fn finished() -> Input {
    Input::Finished { job: JOB, ts: T0 + 2, exit: None }
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
