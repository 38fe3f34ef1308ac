use std::{io::IsTerminal, process::ExitCode};

use clap::Parser;
use effectgate_daemon::{cli::Cli, commands, engine};
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
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .init();
    match commands::dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("effectgate: {:#}", failure.error);
            ExitCode::from(failure.code)
        }
    }
}
