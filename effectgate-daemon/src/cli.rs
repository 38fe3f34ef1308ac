//! The command line (a contract: other tools rely on it).

mod values;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::sign::{KEY_VARIABLE, Source};
use values::duration;
pub use values::{Backend, Format, MinCoverage, Mode, Wanted};

use crate::log::{SEGMENT_BYTES, SMALLEST_SEGMENT};

/// Tells from inside the kernel what a job really did, holds it against an
/// envelope written beforehand, and fails closed.
#[derive(Debug, Parser)]
#[command(name = "effectgate", version, max_term_width = 100)]
pub struct Cli {
    /// Say more on standard error (repeat for more)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// How results are printed on standard output
    #[arg(long, global = true, value_enum, default_value_t = Wanted::Text)]
    pub format: Wanted,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command as a job and judge what it did
    #[command(
        after_help = "Example:\n  effectgate run --envelope agent.json --evidence out -- make test\n  \
        effectgate run --manifest agent-egress.yml --workspace . -- make test\n\n\
        Exit codes: the command's own when the verdict is pass; 120 fail; 121 indeterminate;\n\
        122 refused before anything ran; 125 the observer itself failed; 2 wrong usage."
    )]
    Run(Run),
    /// Report every fault of policy files
    #[command(after_help = "Example:\n  effectgate check agent-egress.yml\n  \
        effectgate check policies/*.json --format sarif\n\n\
        Exit codes: 0 every file holds; 1 one does not; 2 wrong usage, or one cannot be read.")]
    Check(Check),
    /// Pin a policy file by its digest, or verify the pin
    #[command(
        after_help = "Example:\n  effectgate pin agent-egress.yml\n  effectgate pin agent-egress.yml --verify"
    )]
    Pin(Pin),
    /// Say what a changed policy permits that the one before did not
    #[command(
        after_help = "Example:\n  effectgate diff old/agent.json agent.json --review-note review.json\n\n\
        Exit codes: 0 nothing more is permitted, or a review note covers it; 1 more is permitted;\n\
        2 wrong usage, or a file could not be read."
    )]
    Diff(Diff),
    /// Propose the smallest policy under which a recorded run passes
    #[command(
        after_help = "Example:\n  effectgate draft --from out/events.jsonl > agent-egress.yml\n\n\
        The draft goes to standard output. `effectgate check` refuses it until people have filled in\n\
        what only they can: the owner, and who reviewed each exception.\n\n\
        Exit codes: 0 the run passes under the draft; 1 it does not: something cannot be allowed, and is\n\
        listed; 2 wrong usage, or the log could not be read or does not hold."
    )]
    Draft(Draft),
    /// Judge a recorded log again
    #[command(after_help = "Example:\n  effectgate replay out/events.jsonl --envelope agent.json")]
    Replay(Replay),
    /// Verify a log, or prove that it holds one record
    #[command(after_help = "Example:\n  effectgate log verify out --key signer.pub\n  \
        effectgate log prove out 17 > record-17.tlog-proof\n  \
        effectgate log verify record-17.tlog-proof --key signer.pub\n\n\
        Exit codes: 0 it holds; 1 it does not; 2 wrong usage, or a file could not be read.")]
    Log(Log),
    /// Hold a trace against a manifest
    #[command(
        after_help = "Example:\n  effectgate compare --manifest agent-egress.yml --trace trace.jsonl\n\n\
        The trace is what an agent's harness wrote down (JSON lines with ts, type, name, binary,\n\
        argv, cwd, host), or EffectGate's own events.jsonl.\n\n\
        Exit codes: 0 it holds; 1 it does not; 2 wrong usage, or a file could not be read."
    )]
    Compare(Compare),
    /// Verify an evidence packet, or assemble it first
    #[command(
        after_help = "Example:\n  effectgate packet --assemble packet\n  effectgate packet packet\n\n\
        A packet is a directory with agent-egress.yml, agent-egress.yml.sha256 and trace.jsonl;\n\
        --assemble writes check.json, compare.json, secrets.json, bounds.json and MANIFEST.sha256.\n\n\
        Exit codes: 0 it holds; 1 it does not; 2 wrong usage, or a file could not be read."
    )]
    Packet(Packet),
    /// Sign an evidence directory, or pack it into one file
    #[command(
        after_help = "Example:\n  effectgate bundle out --sign-key key.pem --output out.tar.zst\n\n\
        A bundle that does not hold is neither signed nor packed. A key is made with\n\
        `openssl genpkey -algorithm ed25519 -out key.pem`, its public half with\n\
        `openssl pkey -in key.pem -pubout -out public.pem`.\n\n\
        Exit codes: 0 it was signed or packed; 1 it does not hold; 2 wrong usage, or a file could not be\n\
        read or written."
    )]
    Bundle(Bundle),
    /// Verify an evidence bundle, offline
    #[command(after_help = "Example:\n  effectgate verify out.tar.zst --key public.pem\n\n\
        Holds every file against its digest, the signature against the key, the policy against its pin\n\
        and the log, and judges the log again: it must come to the verdict that is there.\n\n\
        Exit codes: 0 it holds, whatever its verdict is; 1 it does not; 2 wrong usage, or it could not be\n\
        read. Without --key, 0 says only that its files fit together: anybody can make such a bundle.")]
    Verify(Verify),
    /// Say what this kernel allows, per backend and class, and how to get more
    #[command(after_help = "Example:\n  sudo effectgate doctor")]
    Doctor,
    /// Watch many jobs at once; jobs are started and finished over a socket
    #[command(after_help = "Example:\n  sudo effectgate daemon --config /etc/effectgate.json\n\n\
        The configuration is one JSON object; every key may be left out:\n  \
        {\"socket\": \"/run/effectgate.sock\", \"metrics_listen\": \"127.0.0.1:9464\",\n   \
        \"state_dir\": \"/var/lib/effectgate\", \"backend\": \"auto\", \"ring_bytes\": 16777216}")]
    Daemon(Daemon),
    /// Start, finish and list the daemon's jobs
    #[command(
        after_help = "Example:\n  effectgate job start --cgroup /sys/fs/cgroup/ci/42 --envelope agent.json\n  \
        effectgate job finish 1"
    )]
    Job(Job),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  effectgate completions bash > /etc/bash_completion.d/effectgate"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

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
pub struct Replay {
    /// The log: an evidence directory, or its events.jsonl
    pub events: PathBuf,
    /// The policy to judge by
    #[command(flatten)]
    pub policy: PolicyFile,
}

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
}

#[derive(Debug, Args)]
pub struct LogVerify {
    /// An evidence directory, a log (events.jsonl), a proof of one record, or
    /// the daemon's dropped.jsonl
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

#[derive(Debug, Args)]
pub struct Bundle {
    /// The evidence directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub sign: Sign,
    /// Pack the bundle into this file (.tar.zst), which must not be there
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The bundle: a directory or a .tar.zst
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// The public key of whoever must have signed it (SPKI, PEM)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
