//! What the size of a policy costs, side by side in one run: reading it, and
//! judging one effect of each kind by it.
//!
//! `bench_policy [ROUNDS]`

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use effectgate_core::input::{
    Backend, Bytes, Coverage, Coverages, Device, Exec, FileObject, FileOp, Found, Mode, Namespace,
    NetOp, Root, RootMatch, Started,
};
use effectgate_core::judge::{self, Origin, Peer, Tables};
use effectgate_core::policy::{self, Policy};

/// Entries of a policy, a fifth of them in each list.
const SIZES: [usize; 3] = [10, 1_000, 100_000];
const TODAY: &str = "2026-01-31";

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map(|arg| arg.parse()).transpose()?.unwrap_or(5).max(1);
    println!("policies, {rounds} rounds, medians; judgements per second");
    println!(
        "{:<10}{:>12}{:>12}{:>13}{:>13}{:>13}{:>13}{:>13}",
        "entries", "KiB", "read in ms", "path", "program", "key", "host", "tool"
    );
    for size in SIZES {
        let text = manifest(size / 5);
        let reading = median(rounds, || {
            let start = Instant::now();
            read(&text)?;
            Ok(start.elapsed())
        })?;
        let tables = Tables::new(started(read(&text)?));
        print!("{size:<10}{:>12}{:>12.2}", text.len() / 1024, reading.as_secs_f64() * 1000.0);
        for question in [path, program, key, host, tool] {
            let per_second = rate(rounds, size / 5, &tables, question)?;
            print!("{per_second:>13.0}");
        }
        println!();
    }
    Ok(())
}

/// A manifest with this many entries in each list.
fn manifest(each: usize) -> String {
    let mut text = "version: 2\nagent_id: bench-agent\nowner: team\nworkspace_roots: [\".\"]\n\
                    max_steps: 10\nmax_wall_clock_sec: 60\nmax_tool_calls_per_step: 10\n"
        .to_owned();
    let mut list = |head: &str, entry: fn(usize) -> String| {
        let _ = writeln!(text, "{head}");
        for index in 0..each {
            let _ = writeln!(text, "  - {}", entry(index));
        }
    };
    list("write_roots:", |index| format!("out/part-{index}"));
    list("binaries:", |index| format!("tool-{index}"));
    list("env_allow:", |index| format!("KEY_{index}"));
    list("network:\n  mode: allowlist\n  hosts:", |index| format!("{}", address(index)));
    text = text.replace("\n  - 10.", "\n    - 10.");
    text.push_str("mcp_servers:\n  - name: server\n    command: [\"server\"]\n    digest: ");
    text.push_str(&"a".repeat(64));
    text.push_str("\n    tools:\n");
    for index in 0..each {
        let _ = writeln!(text, "      - call_{index}");
    }
    text.replace("command: [\"server\"]", "command: [\"tool-0\"]")
}

fn address(index: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0001 + index as u32))
}

fn read(text: &str) -> Result<Policy> {
    policy::parse("agent-egress.yml", text.as_bytes(), TODAY).map_err(|faults| {
        anyhow!("{}", faults.first().map(ToString::to_string).unwrap_or_default())
    })
}

/// A job under the policy, with its roots and programs found.
fn started(policy: Policy) -> Started {
    let roots = policy.roots.entries.iter().zip(1..).map(|(entry, id)| Root {
        id,
        path: format!("/srv/{}", entry.path).into(),
        entry: Some(id as usize - 1),
        rights: entry.rights,
    });
    let binaries = policy.binaries.iter().flat_map(|list| list.entries()).enumerate();
    let binaries = binaries.map(|(entry, binary)| Found {
        entry,
        path: format!("/usr/bin/{}", binary.value.name).into(),
        dev: DEVICE,
        ino: entry as u64 + 1,
        twin: 0,
    });
    let object = Coverage::Object;
    Started {
        job: 1,
        ts: 1_769_817_600_000_000_000,
        boot_offset: 0,
        name: "bench".into(),
        note: None,
        host: "host".into(),
        kernel: "6.12".into(),
        backend: Backend::Lsm,
        coverage: Coverages {
            file: object,
            exec: object,
            env: object,
            net: object,
            tool: Coverage::None,
        },
        min_coverage: Coverage::Argument,
        mode: Mode::Observe,
        judged: false,
        programs: String::new(),
        argv: Vec::new(),
        cgroup: "/".into(),
        workspace: Some(b"/srv".to_vec()),
        home: None,
        roots: roots.collect(),
        binaries: binaries.collect(),
        sockets: Vec::new(),
        linked: Vec::new(),
        digests_hold: true,
        own: Vec::new(),
        hosts: Vec::new(),
        streams: Vec::new(),
        terminals: Vec::new(),
        env: Vec::new(),
        processes: Vec::new(),
        policy,
    }
}

const DEVICE: Device = Device { major: 8, minor: 1 };

/// A question about the entry with this index; whether it is allowed.
type Question = fn(&Tables, usize) -> bool;

fn path(tables: &Tables, index: usize) -> bool {
    // The workspace itself is the root before them.
    let object = FileObject {
        path: format!("/srv/out/part-{index}/file").into(),
        root: RootMatch::Below(index as u32 + 2),
        dev: DEVICE,
        ino: 7,
        mode: 0o100_644,
        ..FileObject::default()
    };
    judge::file(tables, 1, FileOp::OpenWrite, &object, None).within()
}

fn program(tables: &Tables, index: usize) -> bool {
    let exec = Exec {
        file: FileObject {
            path: format!("/usr/bin/tool-{index}").into(),
            dev: DEVICE,
            ino: index as u64 + 1,
            mode: 0o100_755,
            ..FileObject::default()
        },
        asked: Bytes::new(),
        argv: Vec::new(),
        argv_complete: true,
        ppid: 1,
        start: 1,
    };
    judge::exec(tables, &exec).judgement.within()
}

fn key(tables: &Tables, index: usize) -> bool {
    let names = [format!("KEY_{index}").into_bytes()];
    judge::env(tables, Origin::Inherited, &names, true).judgement.within()
}

fn host(tables: &Tables, index: usize) -> bool {
    let peer = Peer {
        address: address(index),
        port: 443,
        protocol: 6,
        own: false,
        namespace: Namespace::Own,
    };
    judge::net(tables, NetOp::Connect, peer).judgement.within()
}

fn tool(tables: &Tables, index: usize) -> bool {
    tables.started.policy.lists_tool(Some("server"), &format!("call_{index}")).is_some()
}

/// Answers per second, over entries all through the list.
fn rate(rounds: usize, each: usize, tables: &Tables, question: Question) -> Result<f64> {
    const ASKED: usize = 200_000;
    let passed = median(rounds, || {
        let start = Instant::now();
        for turn in 0..ASKED {
            let index = turn.wrapping_mul(7919) % each;
            anyhow::ensure!(question(tables, index), "entry {index} is not allowed");
        }
        Ok(start.elapsed())
    })?;
    Ok(ASKED as f64 / passed.as_secs_f64())
}

fn median(rounds: usize, mut once: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut times = (0..rounds).map(|_| once()).collect::<Result<Vec<_>>>()?;
    times.sort();
    times.get(rounds / 2).copied().context("no round was made")
}
