//! The evidence directory: the policy, the log, the verdict, and their digests.

use std::{
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use effectgate_core::{Verdict, pin};
use sha2::{Digest, Sha256};

/// An evidence directory in the making.
#[derive(Debug)]
pub struct Evidence {
    dir: PathBuf,
    log: BufWriter<File>,
    digest: Sha256,
    /// Names and digests of the files written so far.
    files: Vec<(&'static str, String)>,
    dirty: bool,
}

impl Evidence {
    /// Makes the directory and opens its log.
    ///
    /// # Errors
    /// When the directory holds something already or cannot be written.
    pub fn create(dir: &Path, policy: &[u8], note: Option<&[u8]>) -> Result<Evidence> {
        let what = || format!("cannot make the evidence directory {}", dir.display());
        fs::create_dir_all(dir).with_context(what)?;
        if fs::read_dir(dir).with_context(what)?.next().is_some() {
            bail!("the evidence directory {} is not empty: give each run its own", dir.display());
        }
        let log = create(&dir.join("events.jsonl"))?;
        let mut evidence = Evidence {
            dir: dir.to_owned(),
            log: BufWriter::with_capacity(1 << 16, log),
            digest: Sha256::new(),
            files: Vec::new(),
            dirty: false,
        };
        evidence.put("policy", policy)?;
        if let Some(note) = note {
            evidence.put("review-note.json", note)?;
        }
        Ok(evidence)
    }

    /// Adds a line to the log.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        self.dirty = true;
        self.digest.update(line);
        self.digest.update(b"\n");
        let written = self.log.write_all(line).and_then(|()| self.log.write_all(b"\n"));
        written.with_context(|| self.cannot_write())
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// When the file cannot be written or synced.
    pub fn sync(&mut self) -> Result<()> {
        if std::mem::take(&mut self.dirty) {
            let synced = self.log.flush().and_then(|()| self.log.get_ref().sync_data());
            synced.with_context(|| self.cannot_write())?;
        }
        Ok(())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write the log {}", self.dir.join("events.jsonl").display())
    }

    /// Writes the verdict and the digests.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn close(mut self, verdict: &Verdict) -> Result<()> {
        self.sync()?;
        let digest = pin::hex(&std::mem::take(&mut self.digest).finalize());
        self.files.push(("events.jsonl", digest));
        let mut json = serde_json::to_vec_pretty(verdict).context("cannot write the verdict")?;
        json.push(b'\n');
        self.put("verdict.json", &json)?;
        self.files.sort();
        let mut manifest = String::new();
        for (name, digest) in &self.files {
            let _ = writeln!(manifest, "{digest}  {name}");
        }
        self.put("MANIFEST.sha256", manifest.as_bytes())?;
        let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.with_context(|| format!("cannot sync {}", self.dir.display()))
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When it is there already or cannot be written.
    pub fn put(&mut self, name: &'static str, bytes: &[u8]) -> Result<()> {
        let path = self.dir.join(name);
        let mut file = create(&path)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.with_context(|| format!("cannot write {}", path.display()))?;
        self.files.push((name, pin::digest(bytes)));
        Ok(())
    }
}

fn create(path: &Path) -> Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.with_context(|| format!("cannot create {}", path.display()))
}
