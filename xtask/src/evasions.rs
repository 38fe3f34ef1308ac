//! `cargo xtask evasions`: plays every attempt to get around the gate on the
//! pinned kernels, and writes down what came of it: the table that the tests
//! are held against, and the document that people read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum as _;

use crate::repo::Repo;
use crate::{run, setup, vm};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A pinned kernel (repeatable), `here` for this machine's, or `all`; what is
    /// known of others stays
    #[arg(long = "kernel", value_name = "NAME", default_value = "all")]
    kernels: Vec<String>,
    /// Which backend the attempts are played against (repeatable); every one
    /// when absent
    #[arg(long = "backend", value_name = "BACKEND")]
    backends: Vec<vm::Backend>,
    /// Only attempts whose names contain one of these
    attempts: Vec<String>,
}

/// The committed table: a line for each attempt, kernel, backend and mode.
const TABLE: &str = "tests/evasion/results.tsv";
pub const DOCUMENT: &str = "docs/evasions.md";

/// This machine's kernel among the arguments.
const HERE: &str = "here";

/// Where machines leave what they tell, below the target directory.
const RESULTS: &str = "evasions";

/// What stands before a line that a test tells.
const TOLD: &str = "@@effectgate result ";

/// Its name in [`vm`], whose tests it is.
pub const BINARY: &str = "evasion";

/// What each group tries.
const GROUPS: [&str; 21] = [
    "Operations that change or open something, done outside the policy",
    "io_uring",
    "io_uring by the kernel's own threads",
    "TCP Fast Open",
    "Many destinations in one call, data that no call names",
    "Raw, packet and other sockets",
    "Unix sockets of other programs",
    "What a name leads to",
    "Hard links",
    "Bind mounts and moved mounts",
    "Mounts that are mounted nowhere",
    "Namespaces and other roots",
    "Overlays",
    "Descriptors and handles in the place of names",
    "Files without a name",
    "Programs that are not listed",
    "Content changed without `write`",
    "Descriptors from outside",
    "Other cgroups, daemons",
    "Blinding the observer",
    "Floods, depth, length, other ways to ask",
];

/// Columns of the document: backend and mode.
const COLUMNS: [(&str, &str); 4] =
    [("lsm", "enforce"), ("lsm", "observe"), ("fentry", "observe"), ("tracepoint", "observe")];

/// Keeps what a machine has told, for [`main`].
pub fn keep(repo: &Repo, kernel: &str, lines: &[String]) -> Result<()> {
    let directory = repo.target.join(RESULTS);
    let path = directory.join(format!("{kernel}.tsv"));
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&path, lines.join("\n") + "\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Returns whether every attempt came out as its row says. The table is written
/// either way: what is new in it is for a reader to judge.
pub fn main(args: &Args) -> Result<bool> {
    let repo = Repo::find()?;
    setup::ensure(&[setup::Need::Build, setup::Need::Vm])?;
    crate::build::all(&repo)?;
    let backends = match args.backends.as_slice() {
        [] => vm::Backend::value_variants(),
        some => some,
    };
    let _ = fs::remove_dir_all(repo.target.join(RESULTS));
    let mut count = vm::Count::default();
    let pinned: Vec<_> = args.kernels.iter().filter(|name| *name != HERE).cloned().collect();
    if !pinned.is_empty() {
        let plan = vm::Plan::evasions(&pinned, backends, &args.attempts);
        count = vm::execute(&repo, &plan)?;
    }
    let here_too = args.kernels.iter().any(|name| name == HERE || name == "all");
    if here_too && backends.contains(&vm::Backend::TracePoint) && run::is_root() {
        let (passed, failed) = here(&repo, &args.attempts)?;
        count.passed += passed;
        count.failed += failed;
    }

    let mut table = Table::of(&repo)?;
    for entry in fs::read_dir(repo.target.join(RESULTS)).into_iter().flatten() {
        table.take(&fs::read_to_string(entry?.path())?)?;
    }
    for (path, text) in [(TABLE, table.text()), (DOCUMENT, table.document())] {
        let path = repo.root.join(path);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(count.failed == 0)
}

/// The tests on this machine's kernel: the program that runs in the machines too.
pub fn native(repo: &Repo) -> Command {
    let mut cargo = repo.cargo();
    cargo
        .args(["test", "--release", "-p", "effectgate-tests", "--test", BINARY, "--"])
        .env("EFFECTGATE_TEST_BACKEND", "tracepoint")
        .env("EFFECTGATE_BIN", repo.effectgate())
        .env("EFFECTGATE_TRIGGER", repo.trigger());
    cargo
}

/// Plays the attempts here, where only system calls can be relied on to be seen;
/// gives how many came out as they should and how many did not.
fn here(repo: &Repo, attempts: &[String]) -> Result<(usize, usize)> {
    let told = repo.target.join("evasions-here");
    let _ = fs::remove_file(&told);
    let mut cargo = native(repo);
    cargo.args(attempts);
    cargo.env("EFFECTGATE_TEST_ACCEPT", "1").env("EFFECTGATE_TEST_RESULTS", &told);
    eprintln!("$ {}", run::show(&cargo));
    let ended = cargo.stdout(Stdio::piped()).output().context("cargo cannot be started")?;
    let text = String::from_utf8_lossy(&ended.stdout);
    print!("{text}");
    let said = fs::read_to_string(&told).context("the tests here told nothing")?;
    let lines: Vec<_> = said.lines().filter_map(|line| line.strip_prefix(TOLD)).collect();
    keep(repo, "here", &lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())?;
    fs::remove_file(&told).context("what was told cannot be removed")?;
    let result = text.lines().find(|line| line.starts_with("test result: ")).unwrap_or_default();
    let count = |what| vm::number_before(result, what).unwrap_or(0);
    Ok((count("passed"), count("failed")))
}

/// What is known: by group and attempt; then by kernel, backend and mode.
#[derive(Debug, Default)]
pub struct Table(BTreeMap<(usize, String), BTreeMap<Place, String>>);

/// Kernel, backend, mode.
type Place = (String, String, String);

impl Table {
    /// The committed one.
    pub fn of(repo: &Repo) -> Result<Table> {
        let path = repo.root.join(TABLE);
        let text = fs::read_to_string(&path);
        Table::read(&text.with_context(|| format!("cannot read {}", path.display()))?)
    }

    fn read(text: &str) -> Result<Table> {
        let mut table = Table::default();
        table.take(text)?;
        Ok(table)
    }

    /// Later lines take the place of earlier ones.
    fn take(&mut self, text: &str) -> Result<()> {
        for line in text.lines().filter(|line| !line.is_empty()) {
            let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
            let Ok([group, name, kernel, backend, mode, result]) = <[String; 6]>::try_from(fields)
            else {
                bail!("{TABLE}: a line has other than six fields: {line}")
            };
            let group = group.parse().ok().filter(|group| *group < GROUPS.len());
            let group = group.with_context(|| format!("{TABLE}: no such group: {line}"))?;
            let row = self.0.entry((group, name)).or_default();
            row.insert((kernel, backend, mode), result);
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for ((group, name), row) in &self.0 {
            for ((kernel, backend, mode), result) in row {
                // Writing into a string cannot fail.
                let _ = writeln!(text, "{group}\t{name}\t{kernel}\t{backend}\t{mode}\t{result}");
            }
        }
        text
    }

    /// Fails when an attempt was not made on a pinned kernel where others were. On
    /// others it would do its harm to a machine that goes on.
    pub fn complete(&self) -> Result<()> {
        let pinned = vm::pinned()?;
        let places = self.0.values().flat_map(BTreeMap::keys);
        let places: BTreeSet<_> = places.filter(|(on, ..)| pinned.contains(on)).collect();
        for ((_, name), row) in &self.0 {
            if let Some((kernel, backend, mode)) =
                places.iter().find(|place| !row.contains_key(**place))
            {
                bail!(
                    "{TABLE}: `{name}` was not tried on {kernel} with {backend} under {mode}; \
                     run `cargo xtask evasions` and commit the result"
                );
            }
        }
        Ok(())
    }

    pub fn document(&self) -> String {
        let mut text = String::from(
            "<!-- Generated by `cargo xtask evasions` from what the tests of `tests/evasion` found. -->\n\
             # Evasions\n\n\
             What came of every attempt to do harm without being seen. Each was made on \
             pinned kernels, under a manifest that allows none of it, after it had done its harm \
             unwatched. A cell holds for every kernel unless it names some. On kernels that are \
             not pinned, but those of the machine that the tests ran on, only `tracepoint` was \
             tried, and nothing that harms that machine.\n\n\
             | word | meaning |\n|---|---|\n\
             | denied | it failed with EPERM, did no harm, and is a violation that names the object |\n\
             | seen | it happened, and is a violation that names the object |\n\
             | indeterminate | the verdict says that something may have gone unseen |\n\
             | no verdict | the observer is gone, and nothing says `pass` |\n\
             | harmless | it does no harm and is allowed; with \"recorded\" there is a record of it |\n\
             | not possible here | it fails unwatched, with this error |\n\
             | NOT SEEN | it happened, and the verdict is `pass` |\n\
             | — | not played yet |\n",
        );
        for (group, title) in GROUPS.iter().enumerate() {
            let rows: Vec<_> = self.0.iter().filter(|((of, _), _)| *of == group).collect();
            if rows.is_empty() {
                continue;
            }
            let number = if group == 0 { String::new() } else { format!("{group}. ") };
            let _ = write!(text, "\n## {number}{title}\n\n| attempt |");
            for (backend, mode) in COLUMNS {
                let _ = write!(text, " `{backend}`, {mode} |");
            }
            text.push_str(&format!("\n|---|{}\n", "---|".repeat(COLUMNS.len())));
            for ((_, name), row) in rows {
                let _ = write!(text, "| {} |", name.replace('_', " "));
                for column in COLUMNS {
                    let _ = write!(text, " {} |", cell(row, column));
                }
                text.push('\n');
            }
        }
        text
    }
}

/// `denied`, or `6.1: seen; 6.12, 7.3: denied`.
fn cell(row: &BTreeMap<Place, String>, (backend, mode): (&str, &str)) -> String {
    let mut by_result: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut here: Vec<_> =
        row.iter().filter(|((_, of, under), _)| of == backend && under == mode).collect();
    here.sort_by_key(|((kernel, ..), _)| version(kernel));
    for ((kernel, ..), result) in here {
        match by_result.iter_mut().find(|(known, _)| known == result) {
            Some((_, kernels)) => kernels.push(kernel),
            None => by_result.push((result, vec![kernel])),
        }
    }
    match by_result.as_slice() {
        [] => "—".to_owned(),
        [(one, _)] => (*one).to_owned(),
        several => {
            let each = several.iter().map(|(result, on)| format!("{}: {result}", on.join(", ")));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

fn version(kernel: &str) -> Vec<u32> {
    kernel.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "8\told\t6.1\tlsm\tobserve\tseen\n\
                         8\told\t6.12\tlsm\tobserve\tindeterminate\n\
                         8\told\t7.3\tlsm\tobserve\tindeterminate\n";

    #[test]
    fn a_cell_names_kernels_only_where_they_differ() {
        let table = Table::read(LINES).unwrap();
        let row = &table.0[&(8, "old".to_owned())];
        assert_eq!(cell(row, ("lsm", "observe")), "6.1: seen; 6.12, 7.3: indeterminate");
        assert_eq!(cell(row, ("lsm", "enforce")), "—");
    }

    #[test]
    fn a_table_is_read_as_it_was_written_and_later_lines_count() {
        let mut table = Table::read(LINES).unwrap();
        assert_eq!(table.text(), LINES);
        table.take("8\told\t6.1\tlsm\tobserve\tdenied\n").unwrap();
        assert!(table.text().starts_with("8\told\t6.1\tlsm\tobserve\tdenied\n"));
        assert!(table.take("8 old").is_err());
    }

    #[test]
    fn an_attempt_that_was_not_made_somewhere_is_found() {
        let mut table = Table::read(LINES).unwrap();
        assert!(table.complete().is_ok());
        table.take("8\tnew\t6.1\tlsm\tobserve\tseen\n").unwrap();
        assert!(table.complete().is_err());
    }
}
