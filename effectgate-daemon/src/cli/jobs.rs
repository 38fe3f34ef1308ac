//! The daemon and its jobs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{MinCoverage, Mode, PolicyArgs};

#[derive(Debug, Args)]
pub struct Daemon {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Job {
    /// The daemon's socket
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "EFFECTGATE_SOCKET",
        default_value = crate::serve::SOCKET
    )]
    pub socket: PathBuf,
    #[command(subcommand)]
    pub command: JobCommand,
}

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Watch a cgroup from now on; prints the job's number
    Start {
        /// The job's cgroup (v2), an absolute path
        #[arg(long, value_name = "PATH")]
        cgroup: PathBuf,
        /// The job's name; also that of its evidence directory
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        policy: PolicyArgs,
        /// What a manifest's roots are relative to (default: the current
        /// directory)
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// What is done about a violation; a manifest can ask for more
        #[arg(long, value_enum, default_value_t = Mode::Observe)]
        mode: Mode,
        /// Refuse to start where effects would be known less well than this
        #[arg(long, value_enum, default_value_t = MinCoverage::Argument)]
        min_coverage: MinCoverage,
    },
    /// Kill what is left of a job, judge it, and print the verdict
    Finish {
        /// The number that `start` printed
        job: u64,
    },
    /// Show one job
    Status {
        /// The number that `start` printed
        job: u64,
    },
    /// Show all jobs
    List,
}
