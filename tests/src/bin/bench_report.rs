//! What reports cost, side by side with judging the log again, which each of
//! them begins with: seconds, and bytes for each 1,000 effects.
//!
//! `bench_report [ROUNDS]`, with `EFFECTGATE_BIN` set.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use effectgate_core::input::{
    Backend, Class, Coverage, Coverages, Event, Exec, Exit, FileObject, FileOp, Input, Mode, Root,
    RootMatch, Started, What,
};
use effectgate_core::policy::{self, Rights};
use effectgate_core::{State, step};

const SIZES: [u32; 3] = [1_000, 10_000, 100_000];
const FORMS: [&str; 7] = ["html", "markdown", "sarif", "junit", "ocsf", "otlp", "annotations"];
/// One effect in this many is outside.
const OUTSIDE: u32 = 1_000;
const POLICY: &str = r#"{
  "envelope_id": "bench", "allowed_roots": ["/srv/repo"], "allowed_tools": [],
  "allowed_env": [], "allowed_hosts": [], "network": "deny"
}
"#;

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map(|arg| arg.parse()).transpose()?.unwrap_or(3).max(1);
    let program = std::env::var_os("EFFECTGATE_BIN").context("EFFECTGATE_BIN is not set")?;
    let program = PathBuf::from(program);
    println!("reports, {rounds} rounds, medians: seconds, and bytes for each 1,000 effects");
    print!("{:<10}{:>9}", "effects", "replay");
    FORMS.iter().for_each(|form| print!("{form:>20}"));
    println!();
    for size in SIZES {
        let dir = tempfile::tempdir()?;
        bundle(dir.path(), size)?;
        let log = dir.path().join("events.jsonl");
        let policy = dir.path().join("policy");
        let replay = median(rounds, || {
            let mut replay = Command::new(&program);
            replay.arg("replay").arg(&log).arg("--envelope").arg(&policy);
            timed(&mut replay, &[0, 1])
        })?;
        print!("{size:<10}{:>9.2}", replay.as_secs_f64());
        for form in FORMS {
            let out = dir.path().join("out");
            let took = median(rounds, || {
                let mut report = Command::new(&program);
                report.arg("report").arg(dir.path()).arg(format!("--{form}"));
                timed(report.arg("--output").arg(&out), &[0])
            })?;
            let bytes = fs::metadata(&out)?.len() * 1_000 / u64::from(size);
            fs::remove_file(&out)?;
            print!("{:>20}", format!("{:.2} s {bytes} B", took.as_secs_f64()));
        }
        println!();
    }
    Ok(())
}

fn timed(command: &mut Command, expected: &[i32]) -> Result<Duration> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let took = start.elapsed();
    ensure!(status.code().is_some_and(|code| expected.contains(&code)), "{command:?}: {status}");
    Ok(took)
}

fn median(rounds: usize, mut once: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut times = (0..rounds).map(|_| once()).collect::<Result<Vec<_>>>()?;
    times.sort();
    times.get(rounds / 2).copied().context("no round was made")
}

/// A job that builds something: a process for every twenty files that it
/// writes, each of its own name.
fn bundle(dir: &Path, effects: u32) -> Result<()> {
    fs::write(dir.join("policy"), POLICY)?;
    let mut log = BufWriter::new(File::create(dir.join("events.jsonl"))?);
    let mut state = State::new();
    let mut take = |input: Input| -> Result<()> {
        for line in step(&mut state, input).records {
            log.write_all(&line.bytes)?;
            log.write_all(b"\n")?;
        }
        Ok(())
    };
    take(Input::Started(Box::new(started()?)))?;
    let seen = vec![Class::File, Class::Exec, Class::Env, Class::Net];
    take(Input::Canary { job: 1, ts: at(0), seen, missing: Vec::new() })?;
    take(Input::Launched { job: 1, ts: at(0) })?;
    take(event(0, 1, ran("/usr/bin/make", 0, 1)))?;
    let mut pid = 1;
    for n in 0..effects {
        if n % 20 == 0 {
            pid = 2 + n / 20;
            let start = u64::from(pid);
            take(event(n, 1, What::Fork { pid, ppid: 1, start }))?;
            take(event(n, pid, ran("/usr/bin/cc", 1, start)))?;
        }
        let is_outside = n % OUTSIDE == OUTSIDE - 1;
        let path = match is_outside {
            true => format!("/var/tmp/leak-{n}"),
            false => format!("/srv/repo/target/{}/deps/unit-{n}.o", n % 50),
        };
        let root = if is_outside { RootMatch::Outside } else { RootMatch::Below(1) };
        let object = FileObject { path: path.into(), root, ino: n.into(), ..FileObject::default() };
        let coverage = Coverage::Object;
        take(event(n, pid, What::File { op: FileOp::Create, object, other: None, coverage }))?;
    }
    take(Input::Finished { job: 1, ts: at(effects), exit: Some(Exit::Code(0)) })?;
    log.flush()?;
    Ok(())
}

fn event(n: u32, pid: u32, what: What) -> Input {
    let comm = b"cc".to_vec();
    Input::Event(Event { ts: at(n), job: 1, pid, tid: pid, uid: 1000, comm, kernel: None, what })
}

fn ran(path: &str, ppid: u32, start: u64) -> What {
    What::Exec(Exec {
        file: FileObject { path: path.into(), ..FileObject::default() },
        asked: path.into(),
        argv: vec![path.into(), b"-c".to_vec(), b"unit.c".to_vec()],
        argv_complete: true,
        ppid,
        start,
    })
}

/// A tenth of a millisecond for each effect.
fn at(n: u32) -> u64 {
    1_769_817_600_000_000_000 + u64::from(n) * 100_000
}

fn started() -> Result<Started> {
    let policy = policy::parse("agent.json", POLICY.as_bytes(), "2026-01-31")
        .map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    let object = Coverage::Object;
    let coverage =
        Coverages { file: object, exec: object, env: object, net: object, tool: Coverage::None };
    Ok(Started {
        job: 1,
        ts: at(0),
        boot_offset: 0,
        name: "bench".into(),
        policy,
        note: None,
        host: "host".into(),
        kernel: "6.12".into(),
        backend: Backend::Lsm,
        coverage,
        min_coverage: Coverage::Argument,
        mode: Mode::Observe,
        judged: false,
        programs: String::new(),
        argv: vec![b"make".to_vec()],
        cgroup: "/".into(),
        workspace: None,
        home: None,
        roots: vec![Root {
            id: 1,
            path: b"/srv/repo".to_vec(),
            entry: Some(0),
            rights: Rights::WRITE,
        }],
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
    })
}
