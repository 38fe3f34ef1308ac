//! The evidence directory: the policy, the log, its checkpoint, the verdict,
//! and their digests.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_core::{
    Verdict,
    bundle::{CHECKPOINT, DIGESTS, Digests, EVENTS, NOTE, POLICY, VERDICT, format_digests},
    checkpoint::Checkpoint,
    pin,
    verdict::Log,
};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    log::{Writer, digest_of},
    sign::Signer,
    whole::{self, Part},
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
    dir: PathBuf,
    /// Nobody else made the directory.
    is_new: bool,
    log: Writer,
    signer: Option<Arc<Signer>>,
    signing: Option<JoinHandle<()>>,
    /// When a checkpoint was last begun, or the log was.
    signed: Instant,
    /// Of the files written so far.
    files: Digests,
    /// The directory, locked as long as it is written to.
    lock: File,
}

/// Evidence that was written to its end, and whose directory is still held.
#[derive(Debug)]
pub struct Written {
    /// What the directory was called.
    path: PathBuf,
    lock: File,
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
        let lock = lock(dir).with_context(what)?;
        let Some(lock) = lock else {
            bail!(
                "the evidence directory {} is being written to: give each run its own",
                dir.display()
            );
        };
        if fs::read_dir(dir).with_context(what)?.next().is_some() {
            bail!("the evidence directory {} is not empty: give each run its own", dir.display());
        }
        let mut evidence = Evidence {
            dir: dir.to_owned(),
            is_new,
            log: Writer::create(dir, kept.segment_bytes)?,
            signer: kept.signer,
            signing: None,
            signed: Instant::now(),
            files: Digests::new(),
            lock,
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
            let _ = fs::remove_file(self.dir.join(name));
        }
        if self.is_new {
            let _ = fs::remove_dir(&self.dir);
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
        let (signer, path) = (Arc::clone(signer), self.dir.join(CHECKPOINT));
        let work = move || {
            let written =
                note(&signer, log).and_then(|note| whole::replace(&path, note.as_bytes()));
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
            let path = self.dir.join(CHECKPOINT);
            match note(signer, verdict.log.clone()) {
                Ok(note) => {
                    whole::replace(&path, note.as_bytes())?;
                    self.files.insert(CHECKPOINT.to_owned(), pin::digest(note.as_bytes()));
                }
                // The verdict counts more; one of a running job stands for
                // less than the log, and whoever signs the whole says so too.
                Err(error) => {
                    tracing::error!("the log has no last checkpoint: {error:#}");
                    let _ = fs::remove_file(&path);
                }
            }
        }
        let mut json = serde_json::to_vec_pretty(verdict).context("cannot write the verdict")?;
        json.push(b'\n');
        self.put(VERDICT, &json)?;
        self.files.extend(self.log.close()?);
        // Written last of all: with it, the evidence is whole.
        whole::create(&self.dir.join(DIGESTS), format_digests(&self.files).as_bytes())?;
        let synced = self.lock.sync_all();
        synced.with_context(|| format!("cannot sync {}", self.dir.display()))?;
        let written = Written { path: self.dir, lock: self.lock, files: self.files };
        written.confirm()?;
        Ok(written)
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When it is there already or cannot be written.
    pub fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        whole::create(&self.dir.join(name), bytes)?;
        self.files.insert(name.to_owned(), pin::digest(bytes));
        Ok(())
    }
}

impl Written {
    /// What the directory was called when it was made.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory itself, wherever its name leads by now.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.lock.as_raw_fd()))
    }

    /// Digests of everything in it, as it was written.
    #[must_use]
    pub fn files(&self) -> &Digests {
        &self.files
    }

    /// Whoever owns the directory, or the one that it is in, can put something
    /// else in its place: then there is no evidence, and no verdict.
    fn confirm(&self) -> Result<()> {
        let path = self.path.display();
        let own = self.lock.metadata().context("cannot tell which directory holds the evidence")?;
        let same = |named: fs::Metadata| (named.dev(), named.ino()) == (own.dev(), own.ino());
        ensure!(
            fs::metadata(&self.path).is_ok_and(same),
            "the evidence directory {path} is not any more where it was made: it was moved, or \
             another was put in its place"
        );
        let list = format_digests(&self.files);
        let (name, digest) = (DIGESTS.to_owned(), pin::digest(list.as_bytes()));
        for (name, digest) in self.files.iter().chain([(&name, &digest)]) {
            let found = digest_of(&self.dir().join(name))?;
            ensure!(
                found.as_ref() == Some(digest),
                "the evidence {path} is not what was written: {name} was changed or taken away"
            );
        }
        Ok(())
    }

    /// Adds a file, also to the list.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        add(&self.dir(), name, bytes, &mut self.files)
    }
}

/// The lock of an evidence directory; `None` where another holds it.
///
/// # Errors
/// When the directory cannot be opened or locked.
pub fn lock(dir: &Path) -> io::Result<Option<File>> {
    locked(File::open(dir)?)
}

/// The file, locked; `None` where another holds it.
///
/// # Errors
/// When it cannot be locked.
pub fn locked(file: File) -> io::Result<Option<File>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A signed checkpoint over a log.
///
/// # Errors
/// When it cannot be signed.
pub fn note(signer: &Signer, log: Log) -> Result<String> {
    let checkpoint = Checkpoint::of(log);
    let signature = signer.sign(checkpoint.to_string().as_bytes())?;
    Ok(checkpoint.note(&signer.public().bytes(), &signature).to_string())
}

/// Adds a file to evidence that is whole, and to the list of digests; one of this
/// name is replaced. Both are written before either is there.
///
/// # Errors
/// When it cannot be written. The evidence then is as it was.
pub fn add(dir: &Path, name: &str, bytes: &[u8], files: &mut Digests) -> Result<()> {
    let mut with = files.clone();
    let old = with.insert(name.to_owned(), pin::digest(bytes));
    let (file, list) = (dir.join(name), dir.join(DIGESTS));
    let written = || -> io::Result<()> {
        let part = Part::of(&file, bytes)?;
        let listed = Part::of(&list, format_digests(&with).as_bytes())?;
        part.replace(&file)?;
        listed.replace(&list).inspect_err(|_| {
            if old.is_none() {
                let _ = fs::remove_file(&file);
            }
        })?;
        File::open(dir)?.sync_all()
    };
    written().with_context(|| format!("cannot write {}", file.display()))?;
    *files = with;
    Ok(())
}
