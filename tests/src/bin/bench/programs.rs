//! The kernel programs, one by one: what the verifier went through, and what
//! one run takes, as the kernel counts it.

use std::fs;

use anyhow::{Context, Result, ensure};
use aya::programs::loaded_programs;
use aya::sys::{Stats, enable_stats};
use effectgate_common::hooks::HOOKS;
use effectgate_tests::daemon::Daemon;
use effectgate_tests::gate;

use crate::house::House;
use crate::operations;

/// The kernel keeps so many bytes of a program's name (`BPF_OBJ_NAME_LEN`).
const NAME: usize = 15;

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
        ensure!(start.name == end.name, "the daemon loaded other programs meanwhile");
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

/// The programs that a process holds, by name.
fn of(pid: u32) -> Result<Vec<Program>> {
    let names: Vec<(u32, String)> = loaded_programs()
        // Another one's may go away while they are listed.
        .filter_map(Result::ok)
        .map(|info| (info.id(), info.name_as_str().unwrap_or_default().to_owned()))
        .collect();
    let mut programs = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        // The daemon may close it meanwhile.
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        if let (Some(verified), Some(id)) =
            (number(&text, "verified_insns"), number(&text, "prog_id"))
        {
            let name = names.iter().find(|(known, _)| u64::from(*known) == id);
            let (_, name) = name.context("a program has no number")?;
            programs.push(Program {
                name: whole(name)?,
                verified,
                runs: number(&text, "run_cnt").unwrap_or(0),
                nanos: number(&text, "run_time_ns").unwrap_or(0),
            });
        }
    }
    programs.sort_unstable_by_key(|program| program.name);
    programs.dedup_by_key(|program| program.name);
    Ok(programs)
}

fn number(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

/// The table's name of a program whose name the kernel has cut.
fn whole(name: &str) -> Result<&'static str> {
    let cut = |program: &str| program.get(..NAME).unwrap_or(program).to_owned();
    let mut fitting = HOOKS.iter().map(|hook| hook.program).filter(|program| cut(program) == name);
    let first = fitting.next().with_context(|| format!("no hook has the program {name}"))?;
    ensure!(fitting.next().is_none(), "more than one program begins with {name}");
    Ok(first)
}
