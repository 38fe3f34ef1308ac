use std::process::ExitCode;

use clap::Parser;
use effectgate_daemon::{cli::Cli, commands, diagnose::Look, engine};
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    engine::run_if_canary();
    let cli = Cli::parse();
    let level = match cli.verbose {
        0 => LevelFilter::INFO,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(Look::of(&std::io::stderr()).colours)
        .init();
    match commands::dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("effectgate: {:#}", failure.error);
            ExitCode::from(failure.code)
        }
    }
}
