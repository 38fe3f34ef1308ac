//! What the tests of several rooms start from.

use crate::input::{
    Backend, Coverage, Coverages, Device, FileObject, Mode, Root, RootMatch, Started, Stream,
};
use crate::judge::Tables;
use crate::policy::Rights;

pub(crate) const ENVELOPE: &str = r#"{
  "envelope_id": "agent-patch-envelope-v3",
  "allowed_roots": [
    "/srv/repo",
    "/srv/scratch"
  ],
  "allowed_tools": ["read_file", "apply_patch"],
  "allowed_env": ["CI", "RUN_ID", "LISTED_TOKEN"],
  "allowed_hosts": [],
  "network": "deny"
}
"#;

pub(crate) const ENVELOPE_WITH_HOSTS: &str = r#"{
  "envelope_id": "agent-net-envelope-v1",
  "allowed_roots": ["/srv/repo", "/srv/scratch"],
  "allowed_tools": [],
  "allowed_env": ["CI"],
  "allowed_hosts": [
    "example.com:443",
    "198.51.100.7",
    "[2001:db8::1]:53"
  ],
  "network": "allowlist"
}
"#;

/// A job with two roots (1 and 2), a TMPDIR (9), a stream and a terminal.
pub(crate) fn started() -> Started {
    let root = |id, path: &str, entry| Root { id, path: path.into(), entry, rights: Rights::WRITE };
    Started {
        job: 7,
        ts: 1_700_000_000_000_000_000,
        boot_offset: 1_699_999_000_000_000_000,
        name: "job-7".into(),
        policy: crate::policy::parse("envelope.json", ENVELOPE.as_bytes(), "2026-01-31").unwrap(),
        note: None,
        host: "host".into(),
        kernel: "6.12.0".into(),
        backend: Backend::Lsm,
        coverage: Coverages {
            file: Coverage::Object,
            exec: Coverage::Object,
            env: Coverage::Object,
            net: Coverage::Object,
            tool: Coverage::None,
        },
        min_coverage: Coverage::Object,
        mode: Mode::Observe,
        judged: true,
        programs: "c".repeat(64),
        argv: vec![b"make".to_vec(), b"test".to_vec()],
        cgroup: "effectgate/job-7".into(),
        workspace: None,
        home: None,
        roots: vec![
            root(1, "/srv/repo", Some(0)),
            root(2, "/srv/scratch", Some(1)),
            root(9, "/tmp/effectgate-7", None),
        ],
        binaries: vec![],
        sockets: vec![],
        linked: vec![],
        digests_hold: true,
        own: vec![],
        hosts: vec![],
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

pub(crate) fn tables() -> Tables {
    Tables::new(started())
}

pub(crate) fn started_with_hosts() -> Started {
    Started {
        policy: crate::policy::parse("envelope.json", ENVELOPE_WITH_HOSTS.as_bytes(), "2026-01-31")
            .unwrap(),
        hosts: vec![vec!["192.0.2.1".parse().unwrap()], vec![], vec![]],
        ..started()
    }
}

pub(crate) fn object(path: &str, root: RootMatch) -> FileObject {
    FileObject { path: path.into(), root, ino: 5, mode: 0o100_644, ..FileObject::default() }
}
