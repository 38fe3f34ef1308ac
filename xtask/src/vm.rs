//! Runs the kernel tests on the pinned kernels, each in a virtual machine
//! without acceleration, so that it works wherever QEMU does.

mod apt;
mod cpio;
mod guest;
mod image;
mod kernel;
mod languages;
mod libraries;
mod measure;
mod pins;
mod qemu;
mod report;
mod session;
mod toolchain;
mod tree;
mod verified;

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Deserialize;

use crate::repo::Repo;
use crate::setup::{self, Need};
use crate::{build, evasions, run};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A pinned kernel (repeatable), or `all`
    #[arg(long = "kernel", value_name = "NAME", default_value = "all")]
    kernels: Vec<String>,
    /// Which backend the tests drive (repeatable); every one when absent
    #[arg(long = "backend", value_name = "BACKEND")]
    backends: Vec<Backend>,
    /// List the pinned kernels
    #[arg(long)]
    list: bool,
    /// Print what the mirrors offer now, in the form of the pin file
    #[arg(long, conflicts_with = "list")]
    pin: bool,
    /// Instead of testing, write down what the verifier goes through, here (as
    /// root) and there
    #[arg(long, conflicts_with_all = ["list", "pin"])]
    bless: bool,
    /// A machine that prints nothing for so long is taken for hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    hang: u64,
    /// The longest that one machine may run
    #[arg(long, value_name = "MINUTES", default_value_t = 45)]
    bound: u64,
    /// Only tests whose names contain one of these
    tests: Vec<String>,
}

/// How the kernel is watched in a run of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    Lsm,
    Fentry,
    #[value(name = "tracepoint")]
    TracePoint,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lsm => "lsm",
            Self::Fentry => "fentry",
            Self::TracePoint => "tracepoint",
        })
    }
}

pub use measure::main as measure;
pub use report::number_before;
pub use verified::{Snapshot, here as verified_here};

/// The test binaries that run in the machines: the single effects, real work
/// under `run`, the profiles with their tools, bad input, and the attempts to get
/// around it all.
const TESTS: [&str; 5] = ["kernel", "real", "profiles", "storm", evasions::BINARY];

/// What to run, on which kernels.
#[derive(Debug)]
pub struct Plan {
    kernels: Vec<String>,
    backends: Vec<Backend>,
    tests: Vec<String>,
    bless: bool,
    /// Nothing but the evasions, whatever the committed table says of them.
    evasions: bool,
    limits: qemu::Limits,
}

impl Plan {
    /// The evasions, to write down what comes of them.
    pub fn evasions(kernels: &[String], backends: &[Backend], attempts: &[String]) -> Self {
        Self {
            kernels: kernels.to_vec(),
            backends: backends.to_vec(),
            tests: attempts.to_vec(),
            evasions: true,
            ..Self::everything()
        }
    }

    /// Every test, on every pinned kernel, with every backend.
    pub fn everything() -> Self {
        Self {
            kernels: vec!["all".to_owned()],
            backends: Backend::value_variants().to_vec(),
            tests: Vec::new(),
            bless: false,
            evasions: false,
            limits: qemu::Limits {
                silence: Duration::from_secs(300),
                total: Duration::from_secs(45 * 60),
            },
        }
    }
}

/// Names of the pinned kernels.
pub fn pinned() -> Result<Vec<String>> {
    Ok(pins::Pins::read()?.all().iter().map(|kernel| kernel.name.clone()).collect())
}

/// What came of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
}

/// `cargo xtask vm`
pub fn main(args: &Args) -> Result<bool> {
    let repo = Repo::find()?;
    if args.list {
        print!("{}", pins::Pins::read()?);
        return Ok(true);
    }
    if args.pin {
        setup::ensure(&[Need::Vm])?;
        print!("{}", kernel::candidates(&repo, &pins::Pins::read()?)?);
        return Ok(true);
    }
    // A typing error is told before minutes of building.
    pins::Pins::read()?.select(&args.kernels)?;
    setup::ensure(&[Need::Build, Need::Vm])?;
    build::all(&repo)?;
    let plan = Plan {
        kernels: args.kernels.clone(),
        backends: match args.backends.as_slice() {
            [] => Backend::value_variants().to_vec(),
            some => some.to_vec(),
        },
        tests: args.tests.clone(),
        bless: args.bless,
        evasions: false,
        limits: qemu::Limits {
            silence: Duration::from_secs(args.hang),
            total: Duration::from_secs(args.bound * 60),
        },
    };
    let count = execute(&repo, &plan)?;
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(count.failed == 0)
}

/// Boots every kernel of the plan, once for each backend. One failed machine does
/// not stop the others; that no test ran anywhere is an error.
pub fn execute(repo: &Repo, plan: &Plan) -> Result<Count> {
    let pins = pins::Pins::read()?;
    let kernels = pins.select(&plan.kernels)?;
    let mut programs = vec![
        ("effectgate".to_owned(), repo.effectgate()),
        ("trigger".to_owned(), repo.trigger()),
        ("bench".to_owned(), repo.bench()),
    ];
    let tests = match (plan.bless, plan.evasions) {
        (true, _) => &[][..],
        (_, true) => &[evasions::BINARY],
        _ => &TESTS,
    };
    if !plan.bless {
        programs.extend(test_binaries(repo, tests)?);
    }
    let asks = plan.bless || plan.tests.is_empty() && !plan.evasions;
    let mut snapshot = match Snapshot::read(repo) {
        Err(_) if plan.bless => Snapshot::default(),
        read => read?,
    };
    let guest = guest::Guest {
        programs,
        tests: tests.iter().map(|&name| name.to_owned()).collect(),
        accepts: plan.evasions,
        filters: plan.tests.clone(),
        // Who asks for some tests waits for nothing else.
        measures: if asks { vec!["verified".to_owned()] } else { Vec::new() },
    };
    let root = image::of(repo, &guest.root()?)?;
    let session = session::Session {
        repo,
        guest: &guest,
        root: &root,
        committed: (asks && !plan.bless).then_some(&snapshot),
        limits: plan.limits,
    };
    let mut count = Count::default();
    let mut found = Vec::new();
    for (kernel, ran) in machines(&session, kernels, &plan.backends) {
        match ran {
            Ok((one, verified)) => {
                found.push((kernel, verified));
                count.passed += one.passed;
                count.failed += one.failed;
                count.ignored += one.ignored;
            }
            Err(error) => {
                eprintln!("{kernel}: {error:#}");
                count.failed += 1;
            }
        }
    }
    if plan.bless {
        for (kernel, verified) in found {
            snapshot.put(&kernel, &verified);
        }
        if run::is_root() {
            let (kernel, found) = verified::here(repo)?;
            snapshot.put(&kernel, &found);
        }
        snapshot.write(repo)?;
        return Ok(count);
    }
    if count == Count::default() {
        match plan.tests.as_slice() {
            [] => bail!("no test ran: the test binaries `{}` have none", TESTS.join("` and `")),
            names => bail!(
                "no test ran: no name in the test binaries `{}` contains `{}`",
                TESTS.join("` and `"),
                names.join("` or `")
            ),
        }
    }
    Ok(count)
}

type Ran = Result<(Count, Vec<verified::Verified>)>;

/// Boots each kernel with each backend, as many machines at a time as there are
/// processors: an emulated machine keeps one of them busy, whatever it has itself.
fn machines(
    session: &session::Session<'_>,
    kernels: Vec<&pins::Kernel>,
    backends: &[Backend],
) -> Vec<(String, Ran)> {
    let mut waiting = VecDeque::new();
    let mut ran = Vec::new();
    for pinned in kernels {
        // In turn: they share a folder of downloads.
        match kernel::fetch(session.repo, pinned) {
            Ok(kernel) => {
                let kernel = Arc::new(kernel);
                waiting.extend(backends.iter().map(|&backend| (Arc::clone(&kernel), backend)));
            }
            Err(error) => ran.push((pinned.name.clone(), Err(error))),
        }
    }
    let (waiting, ran) = (Mutex::new(waiting), Mutex::new(ran));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some((kernel, backend)) = next() {
                    let one = (kernel.name.clone(), session.run(&kernel, backend));
                    ran.lock().unwrap_or_else(PoisonError::into_inner).push(one);
                }
            });
        }
    });
    ran.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Builds the test binaries, whose paths only cargo's messages tell.
fn test_binaries(repo: &Repo, names: &[&str]) -> Result<Vec<(String, PathBuf)>> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
        target: Option<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    let mut cargo = repo.cargo();
    // An emulated machine feels the difference.
    cargo.args(["test", "--release", "--no-run", "-p", "effectgate-tests"]);
    cargo.args(names.iter().flat_map(|name| ["--test", name]));
    cargo.arg("--message-format=json-render-diagnostics");
    eprintln!("$ {}", run::show(&cargo));
    let built: Vec<_> = run::output(&mut cargo)?
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter_map(|message| {
            let target = message.target.filter(|target| target.kind.iter().any(|k| k == "test"))?;
            Some((target.name, message.executable?))
        })
        .collect();
    names
        .iter()
        .map(|name| {
            built.iter().find(|(built, _)| built == name).cloned().with_context(|| {
                format!(
                    "cargo built the tests but named no executable for the test target `{name}`"
                )
            })
        })
        .collect()
}
