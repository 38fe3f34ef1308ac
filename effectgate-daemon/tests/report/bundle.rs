//! Logs and the reports of them.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;

use effectgate_core::input::*;
use effectgate_core::policy::{self, Policy};
use effectgate_core::replay::{self, Records};
use effectgate_core::report::{self, Report};
use effectgate_daemon::diagnose::Look;
use effectgate_daemon::log::Log;
use effectgate_daemon::report::*;
use serde_json::Value;

use crate::common::{log as lines_of, *};

/// A log with its policy.
pub struct Bundle {
    pub log: Vec<u8>,
    pub policy: Policy,
    pub text: String,
}

impl Bundle {
    /// A job under [`ENVELOPE`].
    pub fn of(started: Started, inputs: Vec<Input>) -> Bundle {
        let policy = started.policy.clone();
        let (lines, _) = job(started, inputs);
        Bundle { log: lines_of(&lines), policy, text: ENVELOPE.to_owned() }
    }

    /// Each log that a version of EffectGate wrote, by its folder's name.
    pub fn corpus() -> Vec<(String, Bundle)> {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/logs");
        let folders = std::fs::read_dir(corpus).expect("the corpus");
        let folders = folders.map(|entry| entry.expect("an entry").path());
        let bundle = |dir: &Path| {
            let mut log = Vec::new();
            Log::open(dir).expect("a log").read_to_end(&mut log).expect("its lines");
            let day = replay::day(&log[..]).expect("it begins");
            let text = std::fs::read_to_string(dir.join("policy")).expect("its policy");
            let policy = policy::parse("policy", text.as_bytes(), &day).expect("it holds");
            Bundle { log, policy, text }
        };
        let name = |dir: &Path| dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        folders.filter(|dir| dir.is_dir()).map(|dir| (name(&dir), bundle(&dir))).collect()
    }

    pub fn report(&self) -> Report {
        let text = self.text.as_bytes();
        report::of_log(&self.log[..], self.policy.clone(), text).expect("the log holds")
    }

    pub fn write(&self, dir: &Path) {
        std::fs::write(dir.join("policy"), &self.text).expect("write");
        std::fs::write(dir.join("events.jsonl"), &self.log).expect("write");
    }
}

/// Every format with its name, as text.
pub fn every(bundle: &Bundle) -> Vec<(&'static str, String)> {
    let report = bundle.report();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let here = Path::new("/srv/repo");
    vec![
        ("text", terminal::text(&report, Look::PLAIN)),
        ("json", text(json::line(&report).unwrap())),
        ("html", html::page(&report)),
        ("markdown", markdown::page(&report)),
        ("annotations", annotations::commands(&report)),
        ("sarif", text(json::line(&sarif::log(&report, here)).unwrap())),
        ("junit", text(junit::document(&report).unwrap())),
        ("ocsf", ocsf_lines(bundle, &report).join("\n")),
        ("otlp", text(json::line(&otlp_request(bundle, &report)).unwrap())),
        // As `run`, `replay` and `job finish` print it.
        ("verdict", effectgate_daemon::report::text(&report.verdict)),
    ]
}

pub fn records(bundle: &Bundle) -> Vec<Value> {
    let mut log = Records::open(&bundle.log[..]).expect("it holds");
    let mut records = Vec::new();
    while let Some((_, line)) = log.next().expect("it holds") {
        records.push(line.value);
    }
    records
}

pub fn ocsf_lines(bundle: &Bundle, report: &Report) -> Vec<String> {
    let events = records(bundle).into_iter().filter_map(|record| ocsf::event(report, &record));
    let all = events.chain(ocsf::findings(report));
    all.map(|event| String::from_utf8(json::line(&event).unwrap()).unwrap()).collect()
}

pub fn otlp_request(bundle: &Bundle, report: &Report) -> Value {
    let records = records(bundle).iter().filter_map(otlp::record).collect();
    otlp::request(report, "cicd.pipeline.name=nightly,cicd.pipeline.run.id=a%20b", records)
}

/// One of every kind of effect, with this text wherever a job can put one.
pub fn everything(text: &str) -> Vec<Input> {
    let path = |before: &str| format!("{before}/{text}").into_bytes();
    let file = |path: Bytes, root| FileObject { path, root, ..object("", root) };
    let outside = || file(path("/etc"), RootMatch::Outside);
    let known =
        |pid| Known { pid, ppid: 1, start: 77, exe: path("/opt"), comm: text.as_bytes().to_vec() };
    let argv = vec![text.as_bytes().to_vec(), b"-x".to_vec()];
    let run = Exec {
        file: file(path("/usr/bin"), RootMatch::Outside),
        asked: path("/srv/repo"),
        argv,
        argv_complete: true,
        ppid: 1,
        start: 20,
    };
    let mut all = vec![
        by(1, What::Exec(Exec { ppid: 0, start: 10, ..run.clone() })),
        by(1, What::Fork { pid: 42, ppid: 1, start: 20 }),
        event(What::Exec(run)),
        env(&[text, "HOME"]),
    ];
    for op in FileOp::ALL {
        all.push(event(What::File {
            op: *op,
            object: outside(),
            other: Some(file(path("/srv/repo"), RootMatch::Below(1))),
            coverage: Coverage::Object,
        }));
    }
    let unplaced = file(path("/mnt"), RootMatch::Unknown);
    all.push(event(What::File {
        op: FileOp::OpenWrite,
        object: unplaced,
        other: None,
        coverage: Coverage::Argument,
    }));
    let addresses = ["203.0.113.9", "2001:db8::1", "192.0.2.1"];
    for (op, address) in NetOp::ALL.iter().zip(addresses) {
        let address: IpAddr = address.parse().unwrap();
        all.push(event(What::Net {
            op: *op,
            address,
            port: 443,
            protocol: 6,
            own: false,
            namespace: Namespace::Own,
        }));
    }
    for peer in
        [UnixPeer::File(outside()), UnixPeer::Abstract(text.as_bytes().to_vec()), UnixPeer::Unnamed]
    {
        all.push(event(What::Unix { op: NetOp::Connect, peer, own: false }));
    }
    for guard in [
        Guard::IoUring,
        Guard::CompatSyscall { number: 3 },
        Guard::Socket { family: 17, kind: 3, protocol: 0 },
        Guard::Entered { process: known(50), env: Some(vec![text.as_bytes().to_vec()]) },
        Guard::Escaped { pid: 42 },
        Guard::Reached { reach: Reach::Mount, detail: 0, pid: 0, object: Some(outside()) },
        Guard::Unknown { kind: 9, op: 9 },
    ] {
        all.push(event(What::Guard(guard)));
    }
    let note = |notice| Input::Notice { job: JOB, ts: T0 + 1, notice };
    all.push(note(Notice::Stopped { why: text.to_owned() }));
    all.push(note(Notice::CanaryFailed { why: text.to_owned() }));
    all.push(note(Notice::Leftovers { killed: 2 }));
    all.push(note(Notice::Killed { pid: Some(42), violation: 5 }));
    all.push(note(Notice::Repeated { counts: vec![(Class::File, 9)] }));
    all.push(note(Notice::Limit { limit: Limited::WallClock, value: 61 }));
    let lost = vec![(Class::File, 3)];
    all.push(Input::Gap { job: JOB, ts: T0 + 1, stage: Stage::Ring, lost });
    all.push(event(What::Exit { code: 0x100 }));
    all
}

/// The same with this text also where the operator puts one.
pub fn everywhere(text: &str) -> Bundle {
    let bytes = || text.as_bytes().to_vec();
    let start = Started {
        argv: vec![b"make".to_vec(), bytes()],
        name: text.to_owned(),
        host: text.to_owned(),
        kernel: text.to_owned(),
        cgroup: format!("/sys/fs/cgroup/{text}"),
        workspace: Some(bytes()),
        env: vec![bytes()],
        ..started()
    };
    Bundle::of(start, everything(text))
}
