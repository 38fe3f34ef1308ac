//! To run a command as a job, and to sign what came of it.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::Args;

use super::{Backend, MinCoverage, Mode, PolicyArgs, values::duration};
use crate::log::{SEGMENT_BYTES, SMALLEST_SEGMENT};
use crate::sign::{KEY_VARIABLE, Source};

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// What is done about a violation; a manifest can ask for more
    #[arg(long, value_enum, default_value_t = Mode::Observe)]
    pub mode: Mode,
    /// How the kernel is watched
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub backend: Backend,
    /// Refuse to run where effects would be known less well than this
    #[arg(long, value_enum, default_value_t = MinCoverage::Argument)]
    pub min_coverage: MinCoverage,
    /// Working directory of the command, and what a manifest's roots are
    /// relative to (default: the current directory)
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// User to run the command as (default: the one who called sudo)
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Pass the whole environment on, and judge it
    #[arg(long)]
    pub keep_env: bool,
    /// Stop the job after this long (30s, 5m, 2h)
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Keep the evidence in this directory, which must be empty or absent
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// Close a segment of the log at this size, and compress it
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = SEGMENT_BYTES,
        value_parser = clap::value_parser!(u64).range(SMALLEST_SEGMENT..)
    )]
    pub segment_bytes: u64,
    #[command(flatten)]
    pub sign: Sign,
    /// Write metrics in Prometheus' text format to this file at the end
    #[arg(long, value_name = "FILE")]
    pub metrics_file: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Who signs the evidence.
#[derive(Debug, Args)]
pub struct Sign {
    /// Sign the evidence with this Ed25519 key (PKCS#8, PEM), which only its
    /// owner may read (default: the file that EFFECTGATE_SIGN_KEY names)
    #[arg(long, value_name = "FILE", conflicts_with = "sign_command")]
    pub sign_key: Option<PathBuf>,
    /// Have this program sign: it gets the bytes on standard input and writes
    /// the Ed25519 signature, raw or in Base64
    #[arg(long, value_name = "PROGRAM", requires = "sign_public")]
    pub sign_command: Option<PathBuf>,
    /// The public key of that program (SPKI, PEM)
    #[arg(long, value_name = "FILE", requires = "sign_command")]
    pub sign_public: Option<PathBuf>,
}

impl Sign {
    /// Where the key is; `None` when nothing is to be signed.
    ///
    /// # Errors
    /// When the options contradict each other.
    pub fn source(&self) -> anyhow::Result<Option<Source>> {
        Source::of(
            self.sign_key.clone(),
            self.sign_command.clone(),
            self.sign_public.clone(),
            std::env::var_os(KEY_VARIABLE).as_deref(),
        )
    }
}
