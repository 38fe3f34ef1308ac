//! `cargo xtask`: everything a contributor runs, in one place.
#![forbid(unsafe_code)]

mod bench;
mod build;
mod demo;
mod evasions;
mod repo;
mod run;
mod schema;
mod setup;
mod test;
mod toolchain;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a contributor of EffectGate runs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is missing; fast and silent about nothing when all is there
    Setup(setup::Args),
    /// Build the kernel programs, then the binary that carries them
    Build,
    /// Run the kernel tests on the pinned kernels, in virtual machines
    Vm(vm::Args),
    /// Play every evasion on the pinned kernels, and write down what came of it
    Evasions(evasions::Args),
    /// Run every check and every test, and say what could not be tested
    Test(test::Args),
    /// Generate the documents that derive from code
    Schema(schema::Args),
    /// Build, then show what EffectGate does
    Demo,
    /// Build, then measure what EffectGate costs
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let passed = match Cli::parse().command {
        Command::Setup(args) => setup::main(&args).map(|()| true),
        Command::Build => build::main().map(|()| true),
        Command::Vm(args) => vm::main(&args),
        Command::Evasions(args) => evasions::main(&args),
        Command::Test(args) => test::main(&args),
        Command::Schema(args) => schema::main(&args).map(|()| true),
        Command::Demo => demo::main().map(|()| true),
        Command::Bench(args) => bench::main(&args).map(|()| true),
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Every error says what, where and what to do; a backtrace of this
        // program would only bury that.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
