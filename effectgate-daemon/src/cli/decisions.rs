//! Two runners of one job, and the ledger of what they may differ in.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct Decide {
    #[command(flatten)]
    pub sides: Sides,
    /// The freeze ledger (default: nothing is frozen)
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
}

/// Two runs of one job.
#[derive(Debug, Args)]
pub struct Sides {
    /// One runner's bundle: a directory, its verdict.json, or a .tar.zst
    #[arg(long, value_name = "VERDICT")]
    pub left: PathBuf,
    /// The other runner's bundle
    #[arg(long, value_name = "VERDICT")]
    pub right: PathBuf,
    /// A public key by which a bundle may be signed (SPKI, PEM; repeat for
    /// more); without one, signatures are not asked for
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Freeze {
    /// The ledger
    #[arg(long, global = true, value_name = "FILE", default_value = "freeze_ledger.tsv")]
    pub ledger: PathBuf,
    #[command(subcommand)]
    pub command: FreezeCommand,
}

#[derive(Debug, Subcommand)]
pub enum FreezeCommand {
    /// Add a row: a property on which two runners disagree
    Add {
        /// The property, as both runners name it
        #[arg(long, value_name = "NAME")]
        property: String,
        #[command(flatten)]
        sides: Sides,
        /// The person who answers for it
        #[arg(long, value_name = "NAME")]
        owner: String,
        /// Why the runners disagree
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// The last day on which it holds, YYYY-MM-DD, in UTC
        #[arg(long, value_name = "DAY")]
        expires: String,
    },
    /// Show the rows
    List,
    /// Report every fault of the ledger, and every row that has expired
    Check,
}
