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

    /// Fails when one of these attempts was not made in every column on a pinned
    /// kernel, or when the table holds another. On kernels that are not pinned it
    /// would do its harm to a machine that goes on.
    pub fn complete(&self, attempts: &BTreeSet<(usize, String)>, pinned: &[String]) -> Result<()> {
        const HELP: &str = "run `cargo xtask evasions` and commit the result";
        if let Some((_, name)) = self.0.keys().find(|attempt| !attempts.contains(*attempt)) {
            bail!("{TABLE}: no test is called `{name}` any more; take its lines out");
        }
        for attempt in attempts {
            let name = &attempt.1;
            let row = self.0.get(attempt);
            let row = row.with_context(|| format!("{TABLE}: `{name}` was never tried; {HELP}"))?;
            for (kernel, (backend, mode)) in pinned.iter().flat_map(|on| COLUMNS.map(|of| (on, of)))
            {
                if !row.contains_key(&(kernel.clone(), backend.to_owned(), mode.to_owned())) {
                    bail!(
                        "{TABLE}: `{name}` was not tried on {kernel} with {backend} under {mode}; {HELP}"
                    );
                }
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

/// The attempts that the tests make: lines of `rows!`, each a group, a name and
/// the words in quotes.
pub fn attempts(repo: &Repo) -> Result<BTreeSet<(usize, String)>> {
    let directory = repo.root.join("tests/evasion");
    let mut attempts = BTreeSet::new();
    let cannot = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(&directory).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            attempts.extend(text.lines().filter_map(attempt));
        }
    }
    Ok(attempts)
}

fn attempt(line: &str) -> Option<(usize, String)> {
    let mut words = line.split_whitespace();
    let (group, name) = (words.next()?.parse().ok()?, words.next()?);
    words.next()?.starts_with('"').then(|| (group, name.to_owned()))
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
    fn what_was_not_tried_somewhere_is_found() {
        let pinned = ["6.1".to_owned(), "6.12".to_owned()];
        let attempts = ["old", "new"].map(|name| (8, name.to_owned()));
        let line = |name, kernel, (backend, mode)| {
            format!("8\t{name}\t{kernel}\t{backend}\t{mode}\tseen\n")
        };
        let lines: Vec<_> = ["old", "new"]
            .into_iter()
            .flat_map(|name| pinned.iter().map(move |kernel| (name, kernel)))
            .flat_map(|(name, kernel)| COLUMNS.map(|column| line(name, kernel, column)))
            .collect();
        let complete = |lines: &[String], attempts: &[(usize, String)]| {
            let attempts = attempts.iter().cloned().collect();
            Table::read(&lines.concat()).unwrap().complete(&attempts, &pinned).is_ok()
        };
        assert!(complete(&lines, &attempts));
        assert!(!complete(&lines, &attempts[..1]), "one that is no test any more");
        for left_out in 0..lines.len() {
            let mut some = lines.clone();
            some.remove(left_out);
            assert!(!complete(&some, &attempts), "without {}", lines[left_out]);
        }
        assert!(!complete(&lines[..8], &attempts), "one that was never tried");
    }

    #[test]
    fn attempts_are_the_lines_of_the_tests() {
        let words = r#"    20 name_of_it "true , exec {file}" => "a/b" { harm: Done };"#;
        assert_eq!(attempt(words), Some((20, "name_of_it".to_owned())));
        for other in ["", "rows! {", "    let 20 = x;", "// 8 words", "8 name"] {
            assert_eq!(attempt(other), None, "{other}");
        }
    }
}
