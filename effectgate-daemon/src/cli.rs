//! The command line (a contract: other tools rely on it).

mod questions;
mod values;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::sign::{KEY_VARIABLE, Source};
pub use questions::{
    By, LogDiff, LogExport, LogQuery, LogTimeline, LogTree, LogWhoTouched, Logs, Which,
};
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
    /// Tell what a job did, from its evidence
    #[command(after_help = "Example:\n  effectgate report out\n  \
        effectgate report out --html --output report.html\n  \
        effectgate report out --markdown >> \"$GITHUB_STEP_SUMMARY\"\n\n\
        The log is judged again by the policy in the bundle; the report says what that came to.\n\n\
        Exit codes: 0 the report was made, whatever the verdict; 2 wrong usage, or the bundle could not\n\
        be read or its log does not hold.")]
    Report(Report),
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
    /// Say what follows from two runs of one job by two runners
    #[command(
        after_help = "Example:\n  effectgate decide --left one/verdict.json --right other/verdict.json \\\n    \
        --ledger freeze_ledger.tsv --key public.pem\n\n\
        Both bundles must hold. A violation fails, whatever the runners and the ledger say; so does what\n\
        was not observed. Where the runners disagree on a property outside the envelope, a live row of\n\
        the ledger for exactly that lets it pass.\n\n\
        Exit codes: 0 pass; 1 fail, hold or indeterminate; 2 wrong usage, or a file could not be read."
    )]
    Decide(Decide),
    /// Keep the ledger of frozen properties
    #[command(
        after_help = "Example:\n  effectgate freeze add --property ranking/top-10 --left one --right other \\\n    \
        --owner 'A. Person' --reason 'the index is rebuilt' --expires 2026-12-31\n  \
        effectgate freeze check\n\n\
        What an envelope covers cannot be frozen. Days are calendar days in UTC; a row holds through its\n\
        last day.\n\n\
        Exit codes: 0 it was added, or every row holds; 1 it may not be, or one does not; 2 wrong usage,\n\
        or a file could not be read or written."
    )]
    Freeze(Freeze),
    /// Complete an evidence directory, sign it, or pack it into one file
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
    /// Add what the runner says of properties: JSON (effectgate.properties/v1)
    /// or JUnit XML
    #[arg(long, value_name = "FILE")]
    pub properties: Option<PathBuf>,
    /// The runner's name, for JUnit XML
    #[arg(long, value_name = "NAME", requires = "properties")]
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
