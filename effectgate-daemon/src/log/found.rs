//! What a log comes to when it is read whole, and held against what is beside
//! it.

use std::path::Path;

use anyhow::{Context, Result};
use effectgate_core::{
    Outcome,
    bundle::{CHECKPOINT, DIGESTS, VERDICT, parse_digests},
    checkpoint::Note,
    replay::{Records, ReplayError},
    verdict,
};
use serde::Serialize;
use serde_json::Value;

use super::{
    files::{digest_of, small},
    reader::{Log, Place},
    segments::is_segment,
};
use crate::{sign::PublicKey, whole::directory};

/// What a log came to.
#[derive(Debug, Serialize)]
pub struct Found {
    pub holds: bool,
    pub job: Option<String>,
    /// Of the policy that the log was written under.
    pub policy_sha256: Option<String>,
    pub started: Option<String>,
    /// When the last good record was.
    pub ended: Option<String>,
    /// The good part: all of it, or what comes before the flaw.
    pub log: Option<verdict::Log>,
    pub bytes: u64,
    pub segments: Vec<String>,
    /// The verdict that it closes with.
    pub verdict: Option<&'static str>,
    pub checkpoint: Option<Against>,
    pub flaw: Option<Flaw>,
    /// What does not fit together with the log beside it.
    pub conflicts: Vec<String>,
    /// Files that a crash left; nothing is in them that is not in the log.
    pub left_over: Vec<String>,
}

/// Where the log stops to be good, and why.
#[derive(Debug, Serialize)]
pub struct Flaw {
    pub what: String,
    pub segment: String,
    pub line: u64,
    pub byte: u64,
    /// The number that the record there should have.
    pub seq: u64,
}

/// The checkpoint beside the log.
#[derive(Debug, Serialize)]
pub struct Against {
    pub records: u64,
    /// Whether the log begins with these records.
    pub covers: bool,
    /// Whether the key that was given signed it; null without one.
    pub signed: Option<bool>,
}

impl Found {
    /// # Errors
    /// When a file cannot be read. What does not hold is found, and no error.
    pub fn of(path: &Path, key: Option<&PublicKey>) -> Result<Found> {
        let log = Log::open(path)?;
        if !path.is_dir() && log.segments().len() == 1 {
            return Found::of_log(path, log, key);
        }
        // What is beside it is read first, and the log opened after that: it may be
        // written to meanwhile, and then grows past what is said of it.
        let beside = Beside::of(directory_of(path))?;
        Found::with(path, Log::open(path)?, Some(&beside), key)
    }

    /// The same of one file that was opened, and of which nothing was taken.
    ///
    /// # Errors
    /// As [`Found::of`].
    pub fn of_log(path: &Path, log: Log, key: Option<&PublicKey>) -> Result<Found> {
        Found::with(path, log, None, key)
    }

    fn with(
        path: &Path,
        mut log: Log,
        beside: Option<&Beside<'_>>,
        key: Option<&PublicKey>,
    ) -> Result<Found> {
        let mut conflicts = Vec::new();
        let note = beside.and_then(|beside| beside.checkpoint.as_deref());
        let note = note.and_then(|note| match Note::parse(&String::from_utf8_lossy(note)) {
            Ok(note) => Some(note),
            Err(why) => {
                conflicts.push(format!("{CHECKPOINT} is no checkpoint: {why}"));
                None
            }
        });
        if note.is_none() && key.is_some() {
            conflicts.push("there is no checkpoint that the key could have signed".to_owned());
        }
        let mut found = Found {
            holds: false,
            job: None,
            policy_sha256: None,
            started: None,
            ended: None,
            log: None,
            bytes: 0,
            segments: log.segments().map(str::to_owned).collect(),
            verdict: None,
            checkpoint: None,
            flaw: None,
            conflicts,
            left_over: log.left_over().to_vec(),
        };
        let mut at_note = None;
        if let Err(error) = found.read(&mut log, note.as_ref(), &mut at_note) {
            let ReplayError::Flawed { good, byte, flaw, line } = error else {
                return Err(error).with_context(|| format!("the log {}", path.display()));
            };
            let Place { segment, line, byte } = match found.segments.as_slice() {
                // Not read again: it may be a pipe.
                [only] => Place { segment: only.clone(), line, byte },
                _ => log.place(byte)?,
            };
            found.flaw = Some(Flaw { what: flaw.to_string(), segment, line, byte, seq: good });
        }
        if let Some(note) = note {
            let is_whole = beside.is_some_and(|beside| beside.digests.is_some());
            found.check_checkpoint(&note, at_note.as_ref(), is_whole, key);
        }
        if let Some(beside) = beside {
            found.check_beside(beside)?;
        }
        found.holds = found.flaw.is_none() && found.conflicts.is_empty();
        Ok(found)
    }

    /// Reads all records; `at_note` is the log as the checkpoint saw it.
    fn read(
        &mut self,
        log: &mut Log,
        note: Option<&Note>,
        at_note: &mut Option<verdict::Log>,
    ) -> Result<(), ReplayError> {
        let mut records = Records::open(log)?;
        self.job = Some(records.job().to_owned());
        self.policy_sha256 = Some(records.policy_sha256().to_owned());
        self.started = Some(records.started().to_owned());
        let read = loop {
            match records.next() {
                Ok(Some((seq, line))) => {
                    if note.is_some_and(|note| note.checkpoint.size == seq + 1) {
                        *at_note = Some(records.log());
                    }
                    self.ended = line.value["ts"].as_str().map(str::to_owned);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.log = Some(records.log());
        self.bytes = records.length();
        self.verdict = records.verdict().map(Outcome::name);
        read
    }

    /// Of a log that has ended, the last checkpoint may still be under way, until
    /// what is written last is there.
    fn check_checkpoint(
        &mut self,
        note: &Note,
        seen: Option<&verdict::Log>,
        is_whole: bool,
        key: Option<&PublicKey>,
    ) {
        let tree = &note.checkpoint;
        let covers = seen.is_some_and(|log| log.origin == tree.origin && log.root == tree.root);
        let signed = key.map(|key| is_signed(note, key));
        if !covers {
            self.conflicts.push(format!(
                "the log does not begin with the {} records that the checkpoint speaks of",
                tree.size
            ));
        }
        if signed == Some(false) {
            self.conflicts.push("the checkpoint is not signed by the key".to_owned());
        }
        let closed = self.verdict.is_some() && is_whole;
        if closed && covers && self.log.as_ref().is_some_and(|log| log.records != tree.size) {
            self.conflicts.push("the checkpoint does not cover the whole log".to_owned());
        }
        self.checkpoint = Some(Against { records: tree.size, covers, signed });
    }

    /// What the verdict and the list of digests say of the log.
    fn check_beside(&mut self, beside: &Beside<'_>) -> Result<()> {
        if let Some(bytes) = &beside.verdict {
            let verdict: Option<Value> = serde_json::from_slice(bytes).ok();
            let said = verdict.as_ref().map(|verdict| &verdict["log"]);
            let found = self.log.as_ref().map(serde_json::to_value).transpose()?;
            // Verdicts of older versions name no root.
            let same = said.zip(found.as_ref()).is_some_and(|(said, found)| {
                let required = ["records", "head"].iter().all(|key| said[*key] == found[*key]);
                let optional = ["origin", "root"]
                    .iter()
                    .all(|key| said.get(key).is_none_or(|it| *it == found[*key]));
                required && optional
            });
            if !same {
                self.conflicts.push("verdict.json speaks of another log".to_owned());
            }
            // Of another log it says nothing.
            let word = verdict.as_ref().and_then(|verdict| verdict["verdict"].as_str());
            if let Some(closing) = self.verdict.filter(|closing| same && word != Some(closing)) {
                let word = word.unwrap_or("nothing");
                self.conflicts
                    .push(format!("verdict.json says {word}, and the log closes with {closing}"));
            }
        }
        if let Some(bytes) = &beside.digests {
            self.digests(beside.dir, bytes)?;
        }
        Ok(())
    }

    /// The files of the log are those of the list: compressed data has
    /// bytes that change nothing in what comes out of it.
    fn digests(&mut self, dir: &Path, list: &[u8]) -> Result<()> {
        let listed = match parse_digests(list) {
            Ok(listed) => listed,
            Err(problem) => {
                self.conflicts.push(format!("{DIGESTS}, {}", problem.message));
                return Ok(());
            }
        };
        for (name, digest) in listed.iter().filter(|(name, _)| is_segment(name)) {
            if digest_of(&dir.join(name))?.is_none_or(|found| found != *digest) {
                self.conflicts.push(format!("{name} is not the file that {DIGESTS} names"));
            }
        }
        for name in &self.segments {
            if !listed.contains_key(name) {
                self.conflicts.push(format!("{DIGESTS} does not name {name}"));
            }
        }
        Ok(())
    }
}

/// Whether a checkpoint is signed by this key.
#[must_use]
pub fn is_signed(note: &Note, key: &PublicKey) -> bool {
    let signature = note.signature_of(&key.bytes());
    signature.is_some_and(|signature| key.verifies(note.text.as_bytes(), signature))
}

/// What says something of a log beside it.
#[derive(Debug)]
struct Beside<'a> {
    dir: &'a Path,
    checkpoint: Option<Vec<u8>>,
    verdict: Option<Vec<u8>>,
    digests: Option<Vec<u8>>,
}

impl<'a> Beside<'a> {
    fn of(dir: &'a Path) -> Result<Beside<'a>> {
        let [checkpoint, verdict, digests] =
            [CHECKPOINT, VERDICT, DIGESTS].map(|name| small(&dir.join(name)));
        Ok(Beside { dir, checkpoint: checkpoint?, verdict: verdict?, digests: digests? })
    }
}

/// The directory that a log is the log of.
fn directory_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { directory(path) }
}
