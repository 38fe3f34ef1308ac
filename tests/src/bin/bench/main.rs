//! What watching costs.
//!
//! | words | measures |
//! |---|---|
//! | `[ROUNDS] [MILLISECONDS]` | on this machine: rates and ratios, start-up, single programs, flatness, a flood, the size of a bundle |
//! | `guest` | in a machine whose clock counts instructions: operations, single programs, flatness |
//! | `verified` | what the verifier went through, for each program |
//!
//! As root, with `EFFECTGATE_BIN` set.

mod bundle;
mod flat;
mod flood;
mod house;
mod native;
mod operations;
mod programs;

use anyhow::{Result, bail};

use house::House;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words.as_slice() {
        ["guest"] => guest(),
        ["verified"] => programs::verified(),
        ref numbers => {
            let numbers: Result<Vec<usize>, _> = numbers.iter().map(|word| word.parse()).collect();
            match numbers?.as_slice() {
                [] => natively(5, 300),
                [rounds] => natively(*rounds, 300),
                [rounds, millis] => natively(*rounds, *millis),
                _ => bail!("two numbers at most: rounds, milliseconds"),
            }
        }
    }
}

fn natively(rounds: usize, millis: usize) -> Result<()> {
    native::main(rounds.max(1), millis.max(1))?;
    let house = House::new()?;
    programs::costs(&house, millis)?;
    flat::main(millis)?;
    flood::main()?;
    bundle::main()
}

/// Guest time in milliseconds for each measurement: instructions do not vary,
/// so little is enough.
const GUEST: usize = 10;

fn guest() -> Result<()> {
    let bare = operations::bare(&House::scene()?, GUEST)?;
    let house = House::new()?;
    operations::table(&house, &bare, GUEST)?;
    programs::costs(&house, GUEST)?;
    drop(house);
    flat::main(GUEST)
}
