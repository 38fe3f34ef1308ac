//! `cargo xtask bench`: builds, then measures what EffectGate costs.

use std::process::Command;

use anyhow::Result;
use clap::ValueEnum as _;

use crate::repo::Repo;
use crate::run::run;
use crate::setup::{self, Need};
use crate::vm::Backend;
use crate::{build, vm};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// On the pinned kernels instead, in machines whose clocks count
    /// instructions
    #[arg(long)]
    vm: bool,
    /// A pinned kernel (repeatable), or `all`
    #[arg(long = "kernel", value_name = "NAME", default_value = "all", requires = "vm")]
    kernels: Vec<String>,
    /// Which backend is measured (repeatable); every one when absent
    #[arg(long = "backend", value_name = "BACKEND", requires = "vm")]
    backends: Vec<Backend>,
    /// Handed to the benchmark program
    #[arg(last = true)]
    args: Vec<String>,
}

pub fn main(args: &Args) -> Result<()> {
    let repo = Repo::find()?;
    setup::ensure(&[Need::Build])?;
    build::all(&repo)?;
    if args.vm {
        setup::ensure(&[Need::Vm])?;
        let backends = match args.backends.as_slice() {
            [] => Backend::value_variants(),
            some => some,
        };
        return vm::measure(&repo, &args.kernels, backends);
    }
    let mut bench = Command::new(repo.bench());
    bench
        .args(&args.args)
        .env("EFFECTGATE_BIN", repo.effectgate())
        .env("EFFECTGATE_TRIGGER", repo.trigger());
    run(&mut bench)?;
    for part in ["bench_policy", "bench_compare", "bench_log", "bench_report", "bench_questions"] {
        let mut cargo = repo.cargo();
        cargo
            .args(["run", "--release", "-p", "effectgate-tests", "--bin", part])
            .env("EFFECTGATE_BIN", repo.effectgate())
            .env("EFFECTGATE_PYTHON", repo.python());
        run(&mut cargo)?;
    }
    Ok(())
}
