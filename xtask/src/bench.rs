//! `cargo xtask bench`: builds, then measures what EffectGate costs.

use anyhow::Result;

use crate::build;
use crate::repo::Repo;
use crate::run::run;
use crate::setup::{self, Need};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Handed to the benchmark program
    #[arg(last = true)]
    args: Vec<String>,
}

pub fn main(args: &Args) -> Result<()> {
    let repo = Repo::find()?;
    setup::ensure(&[Need::Build])?;
    build::all(&repo)?;
    let mut bench = repo.cargo();
    bench
        .args(["run", "--release", "-p", "effectgate-tests", "--bin", "bench", "--"])
        .args(&args.args)
        .env("EFFECTGATE_BIN", repo.effectgate())
        .env("EFFECTGATE_TRIGGER", repo.trigger());
    run(&mut bench)?;
    let mut policies = repo.cargo();
    policies.args(["run", "--release", "-p", "effectgate-tests", "--bin", "bench_policy"]);
    run(&mut policies)?;
    let mut traces = repo.cargo();
    traces
        .args(["run", "--release", "-p", "effectgate-tests", "--bin", "bench_compare"])
        .env("EFFECTGATE_BIN", repo.effectgate());
    run(&mut traces)
}
