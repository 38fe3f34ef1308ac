//! What is made of a job's evidence, and how it is verified.

use std::path::PathBuf;

use clap::Args;

use super::{PolicyFile, Sign};

#[derive(Debug, Args)]
pub struct Replay {
    /// The log: an evidence directory, or its events.jsonl
    pub events: PathBuf,
    /// The policy to judge by
    #[command(flatten)]
    pub policy: PolicyFile,
}

#[derive(Debug, Args)]
pub struct Report {
    /// The evidence directory of a job
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    #[command(flatten)]
    pub kind: ReportKind,
    /// Write the report to this file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What the report is for: at most one.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ReportKind {
    /// One self-contained HTML file
    #[arg(long)]
    pub html: bool,
    /// Markdown, for the summary of a step in a pipeline
    #[arg(long)]
    pub markdown: bool,
    /// Annotations of GitHub, at the lines of the policy
    #[arg(long)]
    pub annotations: bool,
    /// SARIF 2.1.0, for code scanning
    #[arg(long)]
    pub sarif: bool,
    /// JUnit XML, for test reports
    #[arg(long)]
    pub junit: bool,
    /// OCSF 1.8.0, a JSON event a line
    #[arg(long)]
    pub ocsf: bool,
    /// OpenTelemetry's logs, a JSON request a line
    #[arg(long)]
    pub otlp: bool,
}

#[derive(Debug, Args)]
pub struct Bundle {
    /// The evidence directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub sign: Sign,
    /// Add what the runner says of properties: JSON (effectgate.properties/v1)
    /// or JUnit XML
    #[arg(long, value_name = "FILE")]
    pub properties: Option<PathBuf>,
    /// The runner's name: with JUnit XML, or alone where its exit code is all
    /// that it says
    #[arg(long, value_name = "NAME")]
    pub runner: Option<String>,
    /// Pack the bundle into this file (.tar.zst), which must not be there
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The bundle: a directory or a .tar.zst
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// The public key of whoever must have signed it (SPKI, PEM); of several,
    /// one must
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
}
