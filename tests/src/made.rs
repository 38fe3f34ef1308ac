//! A job that never ran, and the log it would have written: the core's own step
//! over inputs that are made up.

use effectgate_core::input::{
    Backend, Class, Coverage, Coverages, Event, Exec, Exit, FileObject, FileOp, Input, Mode, Root,
    RootMatch, Started, What,
};
use effectgate_core::policy::{self, Rights};
use effectgate_core::{Output, State, Verdict, step};

pub const ENVELOPE: &[u8] = br#"{
  "envelope_id": "made-v1", "allowed_roots": ["/srv/shop"], "allowed_tools": [],
  "allowed_env": ["PATH"], "allowed_hosts": [], "network": "deny"
}
"#;

const JOB: u64 = 1;
const PID: u32 = 42;
const T0: u64 = 1_769_860_800_000_000_000;

/// Such a job, running.
#[derive(Debug)]
pub struct Job {
    state: State,
    opened: Vec<Vec<u8>>,
    ts: u64,
}

impl Job {
    /// From its start to the first program that it runs.
    #[must_use]
    pub fn begin() -> Job {
        let mut job = Job { state: State::new(), opened: Vec::new(), ts: T0 };
        let seen = vec![Class::File, Class::Exec, Class::Env, Class::Net];
        let inputs = [
            Input::Started(Box::new(started())),
            Input::Canary { job: JOB, ts: T0, seen, missing: Vec::new() },
            Input::Launched { job: JOB, ts: T0 },
            event(T0, What::Exec(exec())),
            event(T0, What::Env { names: vec![b"PATH".to_vec()], complete: true }),
        ];
        for input in inputs {
            let lines = job.step(input).records.into_iter().map(|line| line.bytes);
            job.opened.extend(lines);
        }
        job
    }

    /// The lines so far.
    pub fn opened(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.opened)
    }

    /// The lines of one more write, of a file of its own.
    pub fn write(&mut self, count: u64) -> Vec<Vec<u8>> {
        self.ts += 1000;
        let object = file(&format!("/srv/shop/out/{}/part-{count}.o", count % 100));
        let what = What::File {
            op: FileOp::OpenWrite,
            object: FileObject { ino: count, ..object },
            other: None,
            coverage: Coverage::Object,
        };
        self.step(event(self.ts, what)).records.into_iter().map(|line| line.bytes).collect()
    }

    /// The last lines, and the verdict.
    #[must_use]
    pub fn end(mut self) -> (Vec<Vec<u8>>, Verdict) {
        let finished = Input::Finished { job: JOB, ts: self.ts + 1, exit: Some(Exit::Code(0)) };
        let Output { records, verdict, .. } = self.step(finished);
        let lines = records.into_iter().map(|line| line.bytes).collect();
        (lines, verdict.expect("a finished job has its verdict"))
    }

    fn step(&mut self, input: Input) -> Output {
        step(&mut self.state, input)
    }
}

fn started() -> Started {
    let all = Coverage::Object;
    let policy = policy::parse("envelope.json", ENVELOPE, "2026-01-31").expect("it holds");
    let root = Root { id: 1, path: b"/srv/shop".to_vec(), entry: Some(0), rights: Rights::WRITE };
    Started {
        job: JOB,
        ts: T0,
        boot_offset: T0 - 1000,
        name: "made".to_owned(),
        policy,
        note: None,
        host: "build-1".to_owned(),
        kernel: "6.12.0".to_owned(),
        backend: Backend::Lsm,
        coverage: Coverages { file: all, exec: all, env: all, net: all, tool: Coverage::None },
        min_coverage: Coverage::Argument,
        mode: Mode::Observe,
        judged: false,
        programs: "00".repeat(32),
        argv: vec![b"make".to_vec()],
        cgroup: "/sys/fs/cgroup/made".to_owned(),
        workspace: None,
        home: None,
        roots: vec![root],
        binaries: Vec::new(),
        sockets: Vec::new(),
        linked: Vec::new(),
        digests_hold: true,
        own: Vec::new(),
        hosts: Vec::new(),
        streams: Vec::new(),
        terminals: Vec::new(),
        env: Vec::new(),
        processes: Vec::new(),
    }
}

fn exec() -> Exec {
    Exec {
        asked: b"/usr/bin/make".to_vec(),
        file: FileObject { root: RootMatch::Outside, ..file("/usr/bin/make") },
        argv: vec![b"make".to_vec(), b"-j8".to_vec()],
        argv_complete: true,
        ppid: 1,
        start: 5,
    }
}

fn file(path: &str) -> FileObject {
    FileObject {
        path: path.as_bytes().to_vec(),
        root: RootMatch::Below(1),
        ino: 5,
        mode: 0o100_644,
        ..FileObject::default()
    }
}

fn event(ts: u64, what: What) -> Input {
    let comm = b"make".to_vec();
    Input::Event(Event { ts, job: JOB, pid: PID, tid: PID, uid: 1000, comm, kernel: None, what })
}
