//! What the verifier goes through for each program, on each kernel, against
//! what was committed: a program that grows shows before a kernel refuses it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::Backend;
use crate::repo::Repo;
use crate::run::output;

/// The committed numbers.
const FILE: &str = "effectgate-ebpf/verified.tsv";

/// In percent: compilers differ a little from version to version.
const TOLERATED: u64 = 20;

/// How a program prints one: `@@effectgate verified BACKEND PROGRAM COUNT`.
const MARK: &str = "@@effectgate verified ";

/// Of one program under one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    backend: String,
    program: String,
    /// Instructions.
    count: u64,
}

impl Verified {
    /// Reads a printed line.
    pub fn of(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(MARK)?.split(' ').map(str::to_owned);
        let (backend, program) = (words.next()?, words.next()?);
        Some(Self { backend, program, count: words.next()?.parse().ok()? })
    }
}

/// What this machine's own kernel says, as root, with the backend that works
/// anywhere; and that kernel's version.
pub fn here(repo: &Repo) -> Result<(String, Vec<Verified>)> {
    let mut bench = Command::new(repo.bench());
    bench
        .arg("verified")
        .env("EFFECTGATE_BIN", repo.effectgate())
        .env("EFFECTGATE_TEST_BACKEND", Backend::TracePoint.to_string());
    let found = output(&mut bench)?.lines().filter_map(Verified::of).collect();
    let release = output(Command::new("uname").arg("-r"))?;
    let version: Vec<_> = release.split('.').take(2).collect();
    Ok((version.join("."), found))
}

/// Counts by kernel, backend and program.
#[derive(Debug, Default)]
pub struct Snapshot(BTreeMap<(String, String, String), u64>);

impl Snapshot {
    pub fn read(repo: &Repo) -> Result<Self> {
        let text = fs::read_to_string(repo.root.join(FILE))
            .with_context(|| format!("cannot read {FILE}; `cargo xtask vm --bless` writes it"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut counts = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split('\t').collect();
            let [kernel, backend, program, count] = fields[..] else {
                anyhow::bail!("{FILE}: not four columns: {line}");
            };
            let count = count.parse().with_context(|| format!("{FILE}: no number: {line}"))?;
            counts.insert((kernel.to_owned(), backend.to_owned(), program.to_owned()), count);
        }
        Ok(Self(counts))
    }

    pub fn write(&self, repo: &Repo) -> Result<()> {
        fs::write(repo.root.join(FILE), self.text())
            .with_context(|| format!("cannot write {FILE}"))?;
        println!("{FILE}");
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = "# Written by `cargo xtask vm --bless`: the instructions that the verifier went through.\n\
                        # kernel\tbackend\tprogram\tinstructions\n"
            .to_owned();
        for ((kernel, backend, program), count) in &self.0 {
            let _ = writeln!(text, "{kernel}\t{backend}\t{program}\t{count}");
        }
        text
    }

    pub fn knows(&self, kernel: &str) -> bool {
        self.0.keys().any(|(known, _, _)| known == kernel)
    }

    /// Takes over what was found on a kernel, for the backends that were tried.
    pub fn put(&mut self, kernel: &str, found: &[Verified]) {
        let is_tried = |backend: &String| found.iter().any(|one| one.backend == *backend);
        self.0.retain(|(known, backend, _), _| known != kernel || !is_tried(backend));
        for Verified { backend, program, count } in found {
            self.0.insert((kernel.to_owned(), backend.clone(), program.clone()), *count);
        }
    }

    /// What is not as it was committed, in words.
    pub fn faults(&self, kernel: &str, found: &[Verified]) -> Vec<String> {
        let mut faults = Vec::new();
        for Verified { backend, program, count } in found {
            let key = (kernel.to_owned(), backend.clone(), program.clone());
            let Some(committed) = self.0.get(&key) else {
                faults.push(format!(
                    "{FILE} has no line for {program} under {backend} on {kernel}; \
                     `cargo xtask vm --bless` writes it"
                ));
                continue;
            };
            if *count > committed + committed * TOLERATED / 100 {
                faults.push(format!(
                    "the verifier goes through {count} instructions of {program} under {backend} \
                     on {kernel}, where {committed} are committed ({TOLERATED} % more are \
                     tolerated); when that is meant, `cargo xtask vm --bless`"
                ));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: u64) -> Vec<Verified> {
        Vec::from_iter(Verified::of(&format!("@@effectgate verified lsm file_open {count}")))
    }

    #[test]
    fn a_little_more_is_tolerated_and_much_more_is_not() {
        let snapshot = Snapshot::parse("# head\n6.1\tlsm\tfile_open\t1000\n").unwrap();
        assert_eq!(snapshot.faults("6.1", &found(1200)), [""; 0]);
        assert_eq!(snapshot.faults("6.1", &found(10)), [""; 0]);
        let faults = snapshot.faults("6.1", &found(1201));
        assert!(faults[0].contains("1201") && faults[0].contains("1000"), "{faults:?}");
    }

    #[test]
    fn what_was_never_committed_is_a_fault() {
        assert_eq!(Snapshot::default().faults("6.1", &found(1)).len(), 1);
    }

    #[test]
    fn what_is_found_replaces_what_was_there_for_its_backend_only() {
        let text = "6.1\tlsm\tgone\t1\n6.1\ttracepoint\tkept\t2\n6.12\tlsm\tkept\t3\n";
        let mut snapshot = Snapshot::parse(text).unwrap();
        snapshot.put("6.1", &found(7));
        let kept: Vec<_> = snapshot.text().lines().skip(2).map(str::to_owned).collect();
        let expected = ["6.1\tlsm\tfile_open\t7", "6.1\ttracepoint\tkept\t2", "6.12\tlsm\tkept\t3"];
        assert_eq!(kept, expected);
        assert!(snapshot.knows("6.12") && !snapshot.knows("7.3"));
    }
}
