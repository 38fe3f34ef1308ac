//! The command line (a contract: other tools rely on it).

mod decisions;
mod evidence;
mod jobs;
mod logs;
mod policies;
mod questions;
mod run;
mod values;

use clap::{ArgAction, Parser, Subcommand};

pub use decisions::{Decide, Freeze, FreezeCommand, Sides};
pub use evidence::{Bundle, Replay, Report, ReportKind, Verify};
pub use jobs::{Daemon, Job, JobCommand};
pub use logs::{Log, LogCommand, LogProve, LogVerify};
pub use policies::{Check, Compare, Diff, Draft, Packet, Pin, PolicyArgs, PolicyFile};
pub use questions::{
    By, LogDiff, LogExport, LogQuery, LogTimeline, LogTree, LogWhoTouched, Logs, Which,
};
pub use run::{Run, Sign};
pub use values::{Backend, Format, MinCoverage, Mode, Wanted};

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
