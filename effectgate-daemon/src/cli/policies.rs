//! Policy files, and what is held against them.

use std::path::PathBuf;

use clap::Args;

/// The policy file: exactly one.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PolicyFile {
    /// The envelope (JSON); its pin is looked for beside it (FILE.sha256)
    #[arg(long, value_name = "FILE")]
    pub envelope: Option<PathBuf>,
    /// The manifest (agent-egress.yml), with its pin beside it
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(flatten)]
    pub file: PolicyFile,
    /// The SHA-256 that the policy file must have
    #[arg(long, value_name = "HEX", conflicts_with = "digest_file")]
    pub digest: Option<String>,
    /// A file with that digest, in the format of sha256sum
    #[arg(long, value_name = "FILE")]
    pub digest_file: Option<PathBuf>,
    /// A review note that covers a drift of the digest
    #[arg(long, value_name = "FILE")]
    pub review_note: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Check {
    /// Policy files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The directory that a manifest's roots are in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
}

#[derive(Debug, Args)]
pub struct Pin {
    /// The policy file; its pin is FILE.sha256
    pub file: PathBuf,
    /// Verify the pin instead of writing it
    #[arg(long)]
    pub verify: bool,
    /// A review note that covers a drift of the digest
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub review_note: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// The policy as it was
    pub old: PathBuf,
    /// The policy as it is to be
    pub new: PathBuf,
    /// A review note from the old digest to the new one; a file that is not
    /// there covers nothing
    #[arg(long, value_name = "FILE")]
    pub review_note: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Draft {
    /// The recorded log (an evidence directory, or its events.jsonl), or a
    /// trace of the agent's harness
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// Propose an envelope instead of a manifest
    #[arg(long)]
    pub envelope: bool,
    /// The manifest's agent_id, or the envelope's id
    #[arg(long, value_name = "ID")]
    pub agent_id: Option<String>,
    /// The people who answer for the manifest
    #[arg(long, value_name = "NAME", conflicts_with = "envelope")]
    pub owner: Option<String>,
    /// What roots are relative to (default: where the command was started)
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Cut roots to this many components (default: they are exact)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub root_depth: Option<u16>,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The manifest
    #[arg(long, value_name = "FILE")]
    pub manifest: PathBuf,
    /// The trace
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// The repository's directory, in which the agent worked
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
}

#[derive(Debug, Args)]
pub struct Packet {
    /// The packet
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Write first what follows from manifest and trace
    #[arg(long)]
    pub assemble: bool,
    /// The repository's directory, in which the agent worked (default: the
    /// current one to assemble, the one that the packet names to verify)
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}
