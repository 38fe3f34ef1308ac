//! `cargo xtask test`: every check and every test, each to its end, and an
//! account of what could not be tested.

mod steps;
mod tally;

use anyhow::Result;

use crate::repo::Repo;
use crate::setup::{self, Need};
use crate::{build, schema, vm};
use tally::Tally;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Leave out the virtual machines
    #[arg(long)]
    no_vm: bool,
}

/// Returns whether all is well. Nothing stops at the first failure: a
/// contributor wants to see all of them.
pub fn main(args: &Args) -> Result<bool> {
    let repo = Repo::find()?;
    let needs = [Need::Build, Need::Test, Need::Vm];
    setup::ensure(if args.no_vm { &needs[..2] } else { &needs })?;

    let mut tally = Tally::default();
    tally.check("format", steps::format(&repo));
    tally.check("lints", steps::clippy(&repo));
    tally.check("licences, bans and sources", steps::deny(&repo));
    tally.check("generated documents", schema::check(&repo));

    let built = build::all(&repo);
    let is_built = built.is_ok();
    tally.check("build", built);
    match steps::kernel_clippy(&repo) {
        Some(linted) => tally.check("lints of the kernel programs", linted),
        None => tally.not_tested("lints of the kernel programs: their compiler has no clippy"),
    }
    if is_built {
        steps::native(&repo, &mut tally);
        steps::evasions(&repo, &mut tally);
        steps::verified(&repo, &mut tally);
        steps::doc_tests(&repo, &mut tally);
    } else {
        tally.not_tested("native tests: the build failed");
    }

    if args.no_vm {
        tally.not_tested("backend lsm and the pinned kernels: --no-vm was given");
    } else if is_built {
        machines(&repo, &mut tally);
    } else {
        tally.not_tested("the pinned kernels: the build failed");
    }
    Ok(tally.conclude(std::env::var_os("CI").is_some_and(|ci| ci == "true")))
}

fn machines(repo: &Repo, tally: &mut Tally) {
    eprintln!("== kernel tests in virtual machines");
    match vm::execute(repo, &vm::Plan::everything()) {
        Ok(count) => {
            tally.count(count.passed, count.failed);
            if count.ignored > 0 {
                tally.not_tested(&format!("{} ignored tests in virtual machines", count.ignored));
            }
        }
        Err(error) => tally.check("kernel tests in virtual machines", Err(error)),
    }
}
