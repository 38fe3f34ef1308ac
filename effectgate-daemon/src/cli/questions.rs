//! Questions to logs: `effectgate log query` and its like.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Where the logs are.
#[derive(Debug, Args)]
pub struct Logs {
    /// Logs, evidence directories, or directories with many of them below,
    /// such as the daemon's
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
}

/// What is asked about. Of one option's values one must fit, of the options
/// all.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Which effects")]
pub struct Which {
    /// Of this class: file, exec, env, net, tool, limit, guard (repeatable, as
    /// are the others)
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub class: Vec<String>,
    /// This action, such as open_read or connect
    #[arg(long, value_name = "ACTION", value_delimiter = ',')]
    pub action: Vec<String>,
    /// allowed, recorded, denied or killed
    #[arg(long, value_name = "DECISION", value_delimiter = ',')]
    pub decision: Vec<String>,
    /// Outside the policy
    #[arg(long, conflicts_with = "inside")]
    pub outside: bool,
    /// Inside the policy
    #[arg(long)]
    pub inside: bool,
    /// On this path or anything below it
    #[arg(long, value_name = "PATH")]
    pub path: Vec<PathBuf>,
    /// With this host: a name, *.NAME, an address or a network, with :PORT or
    /// without
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// By this program: its file, or the file's or the thread's name
    #[arg(long, value_name = "PROGRAM")]
    pub program: Vec<PathBuf>,
    /// By the process of this number
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Of this job
    #[arg(long, value_name = "NAME")]
    pub job: Vec<String>,
    /// Decided by the rule of this name
    #[arg(long, value_name = "RULE")]
    pub rule: Vec<String>,
    /// From this time on: 2026-01-31T12:00:00Z, a day (UTC), or how long ago
    /// (90s, 5m, 2h, 3d, 1w)
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Before this time; a day is included
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
}

#[derive(Debug, Args)]
pub struct LogQuery {
    #[command(flatten)]
    pub logs: Logs,
    #[command(flatten)]
    pub which: Which,
    /// At most so many records (default: 1000 on a terminal, all elsewhere)
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Leave out so many first: the next page
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: u64,
    /// How many there are, by class or what is named, instead of which
    #[arg(
        long,
        value_name = "BY",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "class",
        conflicts_with_all = ["limit", "skip"]
    )]
    pub count: Option<By>,
}

/// What records are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Class,
    Action,
    Decision,
    Rule,
    Job,
    Program,
    Pid,
    Path,
    Host,
}

#[derive(Debug, Args)]
pub struct LogTree {
    #[command(flatten)]
    pub logs: Logs,
    #[command(flatten)]
    pub which: Which,
    /// Show each process, also those that are alike
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct LogTimeline {
    #[command(flatten)]
    pub logs: Logs,
    #[command(flatten)]
    pub which: Which,
    /// Effects of a program that are alike are one entry within this time, in
    /// milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub window: u64,
}

#[derive(Debug, Args)]
pub struct LogWhoTouched {
    /// A file, or a directory with all that is below it
    #[arg(value_name = "PATH")]
    pub touched: PathBuf,
    #[command(flatten)]
    pub logs: Logs,
    #[command(flatten)]
    pub which: Which,
}

#[derive(Debug, Args)]
pub struct LogDiff {
    /// The log of one run
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// The log of another
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    #[command(flatten)]
    pub which: Which,
}

#[derive(Debug, Args)]
pub struct LogExport {
    #[command(flatten)]
    pub logs: Logs,
    #[command(flatten)]
    pub which: Which,
    /// Write the records to this file, which must not be there yet, as Parquet
    #[arg(long, value_name = "FILE")]
    pub parquet: PathBuf,
}
