//! The evidence directory: the policy, the log, its checkpoint, the verdict,
//! and their digests.

use std::{
    fs,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    held::Held,
    lock::try_lock,
    log::{Writer, digest_of},
    sign::Signer,
};
use anyhow::{Context, Result, bail, ensure};
use effectgate_core::{
    Verdict,
    bundle::{CHECKPOINT, DIGESTS, Digests, EVENTS, NOTE, POLICY, VERDICT, format_digests},
    pin,
    verdict::Log,
};

/// How long a running job's records may be without a checkpoint that covers
/// them.
const CHECKPOINTS: Duration = Duration::from_secs(10);

/// What a job's evidence is made of, beside its log.
#[derive(Debug)]
pub struct Kept<'a> {
    /// The policy file's bytes.
    pub policy: &'a [u8],
    /// The review note's bytes.
    pub note: Option<&'a [u8]>,
    /// Size at which a segment of the log is closed, in bytes.
    pub segment_bytes: u64,
    /// Who signs checkpoints; without one there are none.
    pub signer: Option<Arc<Signer>>,
}

/// An evidence directory in the making.
#[derive(Debug)]
pub struct Evidence {
    /// Locked as long as it is written to.
    dir: Held,
    /// Nobody else made the directory.
    is_new: bool,
    log: Writer,
    signer: Option<Arc<Signer>>,
    signing: Option<JoinHandle<()>>,
    /// When a checkpoint was last begun, or the log was.
    signed: Instant,
    /// Of the files written so far.
    files: Digests,
}

/// Evidence that was written to its end, and whose directory is still held.
#[derive(Debug)]
pub struct Written {
    dir: Held,
    /// Of everything in it, as it was written; the list of them is not in it.
    files: Digests,
}

impl Evidence {
    /// Makes the directory and opens its log.
    ///
    /// # Errors
    /// When the directory holds something already, is being written to, or
    /// cannot be written.
    pub fn create(dir: &Path, kept: Kept<'_>) -> Result<Evidence> {
        let what = || format!("cannot make the evidence directory {}", dir.display());
        let is_new = !dir.exists();
        fs::create_dir_all(dir).with_context(what)?;
        let held = Held::open(dir).with_context(what)?;
        ensure!(
            held.is_own().with_context(what)?,
            "others can write in the evidence directory {}, and so change what is in it: name one \
             that is not there yet",
            dir.display()
        );
        ensure!(
            try_lock(held.file()).with_context(what)?,
            "the evidence directory {} is being written to: give each run its own",
            dir.display()
        );
        if fs::read_dir(held.path()).with_context(what)?.next().is_some() {
            bail!("the evidence directory {} is not empty: give each run its own", dir.display());
        }
        let log = Writer::create(&held, kept.segment_bytes).inspect_err(|_| {
            if is_new {
                let _ = fs::remove_dir(dir);
            }
        })?;
        let mut evidence = Evidence {
            log,
            dir: held,
            is_new,
            signer: kept.signer,
            signing: None,
            signed: Instant::now(),
            files: Digests::new(),
        };
        let mut put = evidence.put(POLICY, kept.policy);
        if let Some(note) = kept.note.filter(|_| put.is_ok()) {
            put = evidence.put(NOTE, note);
        }
        match put {
            Ok(()) => Ok(evidence),
            Err(error) => {
                evidence.discard();
                Err(error)
            }
        }
    }

    /// Takes away what was begun: there is no job that it is of.
    pub fn discard(self) {
        for name in self.files.keys().map(String::as_str).chain([EVENTS]) {
            let _ = fs::remove_file(self.dir.at(name));
        }
        if self.is_new {
            let _ = fs::remove_dir(self.dir.name());
        }
    }

    /// Adds a line to the log.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        self.log.append(line)
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// When the file cannot be written or synced.
    pub fn sync(&mut self) -> Result<()> {
        self.log.sync()
    }

    /// Records that are durable.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.log.synced()
    }

    /// Signs what is durable, now and then, and in the background: a key that
    /// is kept elsewhere may take its time.
    pub fn checkpoint(&mut self, log: impl FnOnce() -> Option<Log>) {
        let Some(signer) = &self.signer else { return };
        let busy = self.signing.as_ref().is_some_and(|signing| !signing.is_finished());
        if busy || self.signed.elapsed() < CHECKPOINTS {
            return;
        }
        let Some(log) = log() else { return };
        self.signed = Instant::now();
        let (signer, dir) = (Arc::clone(signer), self.dir.clone());
        let work = move || {
            let written =
                signer.checkpoint(log).and_then(|note| dir.replace(CHECKPOINT, note.as_bytes()));
            if let Err(error) = written {
                // The next one stands for this one as well, and the last must be.
                tracing::warn!("no checkpoint of a running job: {error:#}");
            }
        };
        let thread = thread::Builder::new().name("checkpoint".to_owned());
        self.signing = thread
            .spawn(work)
            .inspect_err(|error| tracing::warn!("no checkpoint of a running job: {error}"))
            .ok();
    }

    /// Writes the last checkpoint, the verdict and the digests. Whoever signs may
    /// take its time.
    ///
    /// # Errors
    /// When they cannot be written, or what is there is not what was written.
    pub fn close(mut self, verdict: &Verdict) -> Result<Written> {
        self.log.sync()?;
        if let Some(signing) = self.signing.take() {
            let _ = signing.join();
        }
        if let Some(signer) = &self.signer {
            match signer.checkpoint(verdict.log.clone()) {
                Ok(note) => {
                    self.dir.replace(CHECKPOINT, note.as_bytes())?;
                    self.files.insert(CHECKPOINT.to_owned(), pin::digest(note.as_bytes()));
                }
                // The verdict counts more; one of a running job stands for
                // less than the log, and whoever signs the whole says so too.
                Err(error) => {
                    tracing::error!("the log has no last checkpoint: {error:#}");
                    let _ = fs::remove_file(self.dir.at(CHECKPOINT));
                }
            }
        }
        let mut json = serde_json::to_vec_pretty(verdict).context("cannot write the verdict")?;
        json.push(b'\n');
        self.put(VERDICT, &json)?;
        self.files.extend(self.log.close()?);
        // Written last of all: with it, the evidence is whole.
        self.dir.create(DIGESTS, format_digests(&self.files).as_bytes())?;
        let synced = self.dir.file().sync_all();
        synced.with_context(|| format!("cannot sync {}", self.dir.name().display()))?;
        let written = Written { dir: self.dir, files: self.files };
        written.confirm()?;
        Ok(written)
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When it is there already or cannot be written.
    pub fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.dir.create(name, bytes)?;
        self.files.insert(name.to_owned(), pin::digest(bytes));
        Ok(())
    }
}

impl Written {
    #[must_use]
    pub fn dir(&self) -> &Held {
        &self.dir
    }

    /// Digests of everything in it, as it was written.
    #[must_use]
    pub fn files(&self) -> &Digests {
        &self.files
    }

    /// Whoever owns the directory that it is in can put another in its place: then
    /// there is no evidence, and no verdict.
    fn confirm(&self) -> Result<()> {
        let path = self.dir.name().display();
        let what = || format!("cannot read the evidence {path} again");
        ensure!(
            self.dir.is_where_it_was().with_context(what)?,
            "the evidence directory {path} is not any more where it was made: it was moved, or \
             another was put in its place"
        );
        let list = pin::digest(format_digests(&self.files).as_bytes());
        for entry in fs::read_dir(self.dir.path()).with_context(what)? {
            let name = entry.with_context(what)?.file_name();
            let known =
                name.to_str().is_some_and(|name| name == DIGESTS || self.files.contains_key(name));
            ensure!(known, "the evidence {path} is not what was written: {name:?} was put into it");
        }
        let files = self.files.iter().map(|(name, digest)| (name.as_str(), digest));
        for (name, digest) in files.chain([(DIGESTS, &list)]) {
            ensure!(
                digest_of(&self.dir.at(name))?.as_ref() == Some(digest),
                "the evidence {path} is not what was written: {name} was changed or taken away"
            );
        }
        Ok(())
    }
}
