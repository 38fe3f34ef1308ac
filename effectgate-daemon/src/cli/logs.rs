//! Logs: whether they hold. What is asked of their records is in `questions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{LogDiff, LogExport, LogQuery, LogTimeline, LogTree, LogWhoTouched};

#[derive(Debug, Args)]
pub struct Log {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Find any changed, removed, reordered or added byte, and say how far the
    /// log is good
    #[command(after_help = "Example:\n  effectgate log verify out --key signer.pub\n\n\
        Exit codes: 0 it holds; 1 it does not; 2 wrong usage, or a file could not be read.")]
    Verify(LogVerify),
    /// Prove to somebody who has only the public key that the log holds a
    /// record, or that it continues an older checkpoint
    #[command(after_help = "Example:\n  effectgate log prove out 17 > record-17.tlog-proof\n  \
        effectgate log prove out --since older-checkpoint\n\n\
        Exit codes: 0 it is proven; 1 the log does not hold; 2 wrong usage, or a file could not be read.")]
    Prove(LogProve),
    /// Find records
    #[command(
        after_help = "Example:\n  effectgate log query /var/lib/effectgate/jobs --outside --since 7d\n  \
        effectgate log query out --class net --count=host\n  \
        effectgate log query out --path /etc --action open_write --format json\n\n\
        With --format json each record is printed as it stands in its log, one a line.\n\n\
        Exit codes: 0 every log was read to its end; 2 wrong usage, or a log could not be read, or not to\n\
        its end: what is printed is what its good records say."
    )]
    Query(LogQuery),
    /// Show the processes of each job, and what they did
    #[command(after_help = "Example:\n  effectgate log tree out\n\n\
        Exit codes: 0 every log was read to its end; 2 wrong usage, or a log could not be read, or not to\n\
        its end: what is printed is what its good records say.")]
    Tree(LogTree),
    /// Show what happened, in order
    #[command(after_help = "Example:\n  effectgate log timeline out --class net,exec\n\n\
        Exit codes: 0 every log was read to its end; 2 wrong usage, or a log could not be read, or not to\n\
        its end: what is printed is what its good records say.")]
    Timeline(LogTimeline),
    /// Say which jobs and processes touched a path, how, and when first and last
    #[command(
        after_help = "Example:\n  effectgate log who-touched /etc/passwd /var/lib/effectgate/jobs\n\n\
        Exit codes: 0 every log was read to its end; 2 wrong usage, or a log could not be read, or not to\n\
        its end: what is printed is what its good records say."
    )]
    WhoTouched(LogWhoTouched),
    /// Say what two runs did differently
    #[command(after_help = "Example:\n  effectgate log diff before/ after/\n\n\
        Exit codes: 0 they did the same; 1 they did not; 2 wrong usage, or a log could not be read to its end.")]
    Diff(LogDiff),
    /// Write records to a file that other programs can ask
    #[command(
        after_help = "Example:\n  effectgate log export /var/lib/effectgate/jobs --parquet november.parquet\n\n\
        Exit codes: 0 every log was read to its end; 2 wrong usage, or a log could not be read, or not to\n\
        its end: the file holds its good records; or the file could not be written."
    )]
    Export(LogExport),
}

#[derive(Debug, Args)]
pub struct LogVerify {
    /// An evidence directory, packed or not, a log (events.jsonl), a proof of one
    /// record, or the daemon's dropped.jsonl
    pub path: PathBuf,
    /// The public key that the checkpoint must be signed by (PEM)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LogProve {
    /// The evidence directory
    #[arg(value_name = "DIR")]
    pub path: PathBuf,
    /// The record's number
    #[arg(value_name = "SEQ", required_unless_present = "since", conflicts_with = "since")]
    pub seq: Option<u64>,
    /// A checkpoint that was taken of the same log before
    #[arg(long, value_name = "FILE")]
    pub since: Option<PathBuf>,
}
