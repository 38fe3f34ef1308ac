//! A job that does as much as it can on every processor at once: what is
//! reported, what is only counted, what is lost, and what the verdict says.

use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Result, ensure};
use effectgate_tests::attached;
use serde_json::Value;

use crate::house::House;
use crate::operations::said;

/// The trigger's word, what one turn does, and how often it turns.
const FLOODS: [(&str, &str, u64); 2] =
    [("open", "open for reading", 200_000), ("create", "create, unlink", 100_000)];

pub fn main() -> Result<()> {
    let house = House::new()?;
    let cores = available_parallelism()?.get();
    println!("a flood from {cores} processes at once");
    println!("{:<20}{:>12}{:>14}{:>12}{:>12}", "", "attempts", "per second", "repeated", "lost");
    for (what, name, turns) in FLOODS {
        let (cgroup, id) = house.start();
        let start = Instant::now();
        let mut children = Vec::new();
        for core in 0..cores {
            let argument = format!("{}{core}", house.place.argument("create")?);
            std::fs::write(&argument, "x")?;
            let argument = if what == "create" { format!("{argument}-new") } else { argument };
            let words = ["flood".to_owned(), what.to_owned(), turns.to_string(), argument];
            let mut command = house.place.command(&words);
            let door = attached::enter(&mut command, &cgroup);
            children.push(command.spawn()?);
            drop(door);
        }
        for mut child in children {
            ensure!(child.wait()?.success(), "a flood of `{what}` failed");
        }
        let passed = start.elapsed().as_secs_f64();
        let verdict = house.finish(&id)?;
        drop(cgroup);
        let attempts = turns * cores as u64 * if what == "create" { 2 } else { 1 };
        println!(
            "{name:<20}{attempts:>12}{:>14.0}{:>12}{:>12}   {}",
            attempts as f64 / passed,
            sum(&verdict["repeated"]),
            sum(&verdict["lost"]),
            said(&verdict)
        );
    }
    println!();
    Ok(())
}

/// The sum of the numbers by class.
fn sum(by_class: &Value) -> u64 {
    by_class.as_object().map_or(0, |classes| classes.values().filter_map(Value::as_u64).sum())
}
