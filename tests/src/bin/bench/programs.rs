//! The kernel programs, one by one: what the verifier went through, and what
//! one run takes, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use aya::sys::{Stats, enable_stats};
use effectgate_common::hooks::{HOOKS, Watches};
use effectgate_tests::daemon::Daemon;
use effectgate_tests::gate;

use crate::house::House;
use crate::operations;

struct Program {
    name: &'static str,
    /// Instructions that the verifier went through.
    verified: u64,
    runs: u64,
    nanos: u64,
}

/// `@@effectgate verified BACKEND PROGRAM COUNT` for each.
pub fn verified() -> Result<()> {
    let daemon = Daemon::start();
    for program in of(daemon.pid())? {
        let Program { name, verified, .. } = program;
        println!("@@effectgate verified {} {name} {verified}", gate::backend());
    }
    Ok(())
}

/// Every operation, outside and inside, by program.
pub fn costs(house: &House, millis: usize) -> Result<()> {
    let words = operations::all(&house.place, millis)?;
    let pid = house.daemon.pid();
    let counted = enable_stats(Stats::RunTime).context("the kernel counts no run times")?;
    let start = of(pid)?;
    house.outside(&words)?;
    let middle = of(pid)?;
    house.inside(&words)?;
    let end = of(pid)?;
    drop(counted);

    println!("nanoseconds for one run of a program, reading the clock included");
    println!("{:<22}{:>14}{:>12}{:>14}{:>12}", "", "runs outside", "each", "runs inside", "each");
    for ((start, middle), end) in start.iter().zip(&middle).zip(&end) {
        let outside = (middle.runs - start.runs, middle.nanos - start.nanos);
        let inside = (end.runs - middle.runs, end.nanos - middle.nanos);
        if outside.0 + inside.0 > 0 {
            println!(
                "{:<22}{:>14}{:>12}{:>14}{:>12}",
                end.name,
                outside.0,
                each(outside),
                inside.0,
                each(inside)
            );
        }
    }
    println!();
    Ok(())
}

fn each((runs, nanos): (u64, u64)) -> String {
    if runs == 0 { "-".to_owned() } else { format!("{:.0}", nanos as f64 / runs as f64) }
}

/// The programs that a process holds, in the order in which it loaded them.
fn of(pid: u32) -> Result<Vec<Program>> {
    let mut held = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        // The daemon may close it meanwhile.
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        // A link has the number of its program too, and no more of it.
        if let (Some(verified), Some(id)) =
            (number(&text, "verified_insns"), number(&text, "prog_id"))
        {
            let count = |key| number(&text, key).unwrap_or(0);
            held.insert(id, (verified, count("run_cnt"), count("run_time_ns")));
        }
    }
    let names = names()?;
    ensure!(names.len() == held.len(), "{} programs for {} hooks", held.len(), names.len());
    let programs = names.into_iter().zip(held);
    Ok(programs
        .map(|(name, (_, (verified, runs, nanos)))| Program { name, verified, runs, nanos })
        .collect())
}

fn number(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

/// The programs of the backend under test, in that order. The kernel itself keeps only the
/// beginnings of their names.
fn names() -> Result<Vec<&'static str>> {
    let backend = match gate::backend().as_str() {
        "lsm" => Watches::Lsm,
        "fentry" => Watches::Fentry,
        "tracepoint" => Watches::TracePoint,
        other => bail!("no backend is called {other}"),
    };
    let mut attached: Vec<_> =
        HOOKS.iter().filter(|hook| hook.attached(backend, gate::kernel())).collect();
    attached.sort_by_key(|hook| !hook.goes_first());
    Ok(attached.into_iter().map(|hook| hook.program).collect())
}
