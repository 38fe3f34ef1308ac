//! How fast a trace is held against a manifest, beside `jq` reading the same
//! file and doing nothing with it; and how much memory that takes.
//!
//! `bench_compare [ROUNDS] [MEGABYTES]...`, with `EFFECTGATE_BIN` set.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use effectgate_tests::gate;
use effectgate_tests::measure::{Measured, measure, median};

const SIZES: [u64; 2] = [100, 1000];
const MANIFEST: &str = "version: 1
agent_id: bench-agent
owner: team
workspace_roots: [\".\"]
write_roots: [out]
binaries: [git, make, python3, cc]
network: {mode: allowlist, hosts: [code.example]}
env_allow: [CI]
max_steps: 100000000
max_wall_clock_sec: 100000000
max_tool_calls_per_step: 100
mcp_servers:
  - name: repo
    command: [git, serve]
    digest: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    tools: [read_file]
";

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let rounds = numbers.next().transpose()?.unwrap_or(3).max(1);
    let mut sizes = numbers.collect::<Result<Vec<_>, _>>()?;
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    println!("traces, {rounds} rounds, medians; MB/s of wall time and of processor time");
    println!(
        "{:<10}{:>14}{:>14}{:>12}{:>12}{:>12}{:>16}",
        "MB", "compare wall", "processor", "jq wall", "processor", "ratio", "peak memory KiB"
    );
    let place = tempfile::TempDir::new()?;
    let (manifest, trace) =
        (place.path().join("agent-egress.yml"), place.path().join("trace.jsonl"));
    std::fs::write(&manifest, MANIFEST)?;
    for size in sizes {
        let written = write(&trace, size * 1_000_000)?;
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..rounds {
            let mut compare = Command::new(gate::binary());
            compare.arg("compare").arg("--manifest").arg(&manifest).arg("--trace").arg(&trace);
            compare.arg("--workspace").arg(place.path());
            ours.push(measure(&mut compare).context("compare")?);
            let mut jq = Command::new("jq");
            // Without jq, only what is ours is shown.
            theirs.extend(measure(jq.args(["-c", "empty"]).arg(&trace)).ok());
        }
        let rate = |time: Duration| written as f64 / 1e6 / time.as_secs_f64();
        let wall = |all: &[Measured]| rate(median(all.iter().map(|one| one.wall)));
        let processor = |all: &[Measured]| rate(median(all.iter().map(|one| one.processor)));
        let peak = ours.iter().map(|one| one.peak).max().unwrap_or_default();
        print!("{size:<10}{:>14.0}{:>14.0}", wall(&ours), processor(&ours));
        if theirs.is_empty() {
            print!("{:>12}{:>12}{:>12}", "-", "-", "-");
        } else {
            let ratio = processor(&ours) / processor(&theirs);
            print!("{:>12.0}{:>12.0}{ratio:>12.2}", wall(&theirs), processor(&theirs));
        }
        println!("{peak:>16}");
    }
    Ok(())
}

/// A trace as a harness writes it: builds, tests, tool calls and their output.
fn write(path: &Path, least: u64) -> Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let output = "running 3 tests of src/main.c: value = 3;\\n  warning: unused token in \
                  function `parse`, at line 12\\n    let key = path.file(); // ok\\n"
        .repeat(8);
    let mut written = 0;
    for index in 0_u64.. {
        let (step, dir, part) = (index / 20, index % 50, index % 500);
        let rest = match index % 10 {
            0 => format!(
                r#""type":"tool_call","name":"read_file","server":"repo","binary":null,"argv":["src/m{part}/main.c"],"host":null"#
            ),
            1 => format!(
                r#""type":"tool_result","name":"read_file","server":"repo","binary":null,"argv":[],"host":null,"output":"{output}""#
            ),
            2 => r#""type":"net","name":"connect","binary":"git","argv":["git","fetch","origin"],"host":"code.example:443""#.to_owned(),
            3 => format!(
                r#""type":"exec","name":"python3","binary":"python3","argv":["python3","-m","pytest","tests/test_{part}.py","-q"],"host":null,"env":["PATH","HOME","CI","LANG"]"#
            ),
            4..=6 => format!(
                r#""type":"exec","name":"cc","binary":"cc","argv":["cc","-O2","-Wall","-Iinclude","-c","src/m{part}.c","-o","out/m{part}.o"],"host":null"#
            ),
            _ => format!(
                r#""type":"exec","name":"make","binary":"make","argv":["make","-C","src/m{part}","-j8","check"],"host":null"#
            ),
        };
        let seconds = 1_769_860_800 + index / 100;
        let line = format!(
            "{{\"ts\":{seconds}.{:02},\"step\":{step},\"cwd\":\"src/a/m{dir}\",{rest}}}\n",
            index % 100
        );
        file.write_all(line.as_bytes())?;
        written += line.len() as u64;
        if written >= least {
            break;
        }
    }
    file.flush()?;
    Ok(written)
}
