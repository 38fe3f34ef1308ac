//! The commands, one room each.

mod bundle;
mod check;
mod compare;
mod daemon;
mod decide;
mod diff;
mod doctor;
mod draft;
mod freeze;
mod job;
mod leads;
mod log;
mod packet;
mod pin;
pub mod policy;
mod replay;
mod report;
mod run;
mod verify;

use std::{
    io::Write,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::CommandFactory;
use effectgate_core::Verdict;

use crate::{
    cli::{Cli, Command, Format},
    diagnose::{Finding, sarif},
    exit::{self, Code, Outcomes},
    report as reports,
};

/// Does what the command line says.
///
/// # Errors
/// What went wrong, with the exit code for it.
pub fn dispatch(cli: Cli) -> Outcomes {
    // The code of these is a job's verdict, which stands in its evidence too.
    let of_job = matches!(cli.command, Command::Run(_) | Command::Job(_));
    let code = command(cli)?;
    let unwritten = UNWRITTEN.load(Ordering::Relaxed) && !of_job;
    Ok(if unwritten && code == exit::HOLDS { exit::USAGE } else { code })
}

fn command(cli: Cli) -> Outcomes {
    let format = cli.format;
    match cli.command {
        Command::Bundle(args) => bundle::bundle(&args, format.plain()?),
        Command::Decide(args) => decide::decide(&args, format.plain()?),
        Command::Freeze(args) => freeze::freeze(&args, format.plain()?),
        Command::Verify(args) => verify::verify(&args, format.plain()?),
        Command::Run(args) => run::run(args, format.plain()?),
        Command::Check(args) => check::check(&args, format),
        Command::Diff(args) => diff::diff(&args, format),
        Command::Draft(args) => draft::draft(&args, format.plain()?),
        Command::Pin(args) => pin::pin(&args, format.plain()?),
        Command::Replay(args) => replay::replay(&args, format.plain()?),
        Command::Report(args) => report::report(&args, format),
        Command::Log(args) => log::log(&args.command, format.plain()?),
        Command::Compare(args) => compare::compare(&args, format),
        Command::Packet(args) => packet::packet(&args, format.plain()?),
        Command::Doctor => doctor::doctor(format.plain()?),
        Command::Daemon(args) => daemon::daemon(&args),
        Command::Job(args) => job::job(args, format.plain()?),
        Command::Completions { shell } => {
            let mut command = Cli::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "effectgate", &mut script);
            print(&String::from_utf8_lossy(&script));
            Ok(exit::HOLDS)
        }
    }
}

/// Whether a result could not be written: half of one is none.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Prints a result. That nobody reads it is no failure of ours; that it could
/// not be written is said, and the exit code tells.
fn print(text: &str) {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            UNWRITTEN.store(true, Ordering::Relaxed);
            tracing::error!("cannot write to standard output: {error}");
        }
        _ => {}
    }
}

/// Tells a person what belongs beside a result, on standard error.
fn tell(text: &str) {
    // Nobody need listen.
    let _ = writeln!(std::io::stderr(), "effectgate: {text}");
}

/// Prints a result as one JSON document, in which nothing can steer a terminal.
fn print_json(value: &impl serde::Serialize) -> Result<(), exit::Failure> {
    let mut line = reports::json::line(value).code(exit::OBSERVER)?;
    line.push(b'\n');
    print(&String::from_utf8_lossy(&line));
    Ok(())
}

/// Prints findings as SARIF, with what could not be read.
fn print_sarif(findings: &[Finding], unread: &[String]) -> Result<(), exit::Failure> {
    let here = std::env::current_dir().code(exit::USAGE)?;
    print_json(&sarif::log(findings, &here, unread))
}

/// A verdict: in text, each violation on a line, and the verdict last.
fn print_verdict(verdict: &Verdict, format: Format) -> Result<(), exit::Failure> {
    match format {
        Format::Json => print_json(verdict),
        Format::Text => {
            print(&reports::text(verdict));
            Ok(())
        }
    }
}
