//! The evidence directory: the policy, the log, its checkpoint, the verdict,
//! and their digests.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use effectgate_core::{
    Verdict,
    bundle::{CHECKPOINT, DIGESTS, Digests, NOTE, POLICY, VERDICT, format_digests},
    checkpoint::Checkpoint,
    pin,
    verdict::Log,
};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use tempfile::NamedTempFile;

use crate::{log::Writer, sign::Signer};

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
    log: Writer,
    signer: Option<Arc<Signer>>,
    signing: Option<JoinHandle<()>>,
    /// When a checkpoint was last begun, or the log was.
    signed: Instant,
    /// Of the files written so far.
    files: Digests,
    /// Locked as long as it is written to.
    _lock: File,
}

impl Evidence {
    /// Makes the directory and opens its log.
    ///
    /// # Errors
    /// When the directory holds something already, is being written to, or
    /// cannot be written.
    pub fn create(dir: &Path, kept: Kept<'_>) -> Result<Evidence> {
        let what = || format!("cannot make the evidence directory {}", dir.display());
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
            log: Writer::create(dir, kept.segment_bytes)?,
            signer: kept.signer,
            signing: None,
            signed: Instant::now(),
            files: Digests::new(),
            _lock: lock,
        };
        evidence.put(POLICY, kept.policy)?;
        if let Some(note) = kept.note {
            evidence.put(NOTE, note)?;
        }
        Ok(evidence)
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
            let written = note(&signer, log).and_then(|note| replace(&path, note.as_bytes()));
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

    /// Writes the last checkpoint, the verdict and the digests.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn close(mut self, verdict: &Verdict) -> Result<()> {
        self.log.sync()?;
        if let Some(signing) = self.signing.take() {
            let _ = signing.join();
        }
        if let Some(signer) = &self.signer {
            let path = self.dir.join(CHECKPOINT);
            match note(signer, verdict.log.clone()) {
                Ok(note) => {
                    replace(&path, note.as_bytes())?;
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
        write_new(&self.dir.join(DIGESTS), format_digests(&self.files).as_bytes())?;
        let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.with_context(|| format!("cannot sync {}", self.dir.display()))
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When it is there already or cannot be written.
    pub fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        write_new(&self.dir.join(name), bytes)?;
        self.files.insert(name.to_owned(), pin::digest(bytes));
        Ok(())
    }
}

/// The lock of an evidence directory; `None` where another holds it.
///
/// # Errors
/// When the directory cannot be opened or locked.
pub fn lock(dir: &Path) -> io::Result<Option<File>> {
    let file = File::open(dir)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn note(signer: &Signer, log: Log) -> Result<String> {
    let checkpoint = Checkpoint::of(log);
    let signature = signer.sign(checkpoint.to_string().as_bytes())?;
    Ok(checkpoint.note(&signer.public().bytes(), &signature).to_string())
}

/// Writes a file that readers find whole, as it was before or as it is now, with
/// the mode that it had.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = || -> io::Result<()> {
        let part = part(path, bytes)?;
        if let Ok(found) = fs::metadata(path) {
            part.as_file().set_permissions(found.permissions())?;
        }
        part.persist(path)?;
        File::open(directory(path))?.sync_all()
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

/// The same where no file is: whoever dies over it leaves all of it, or nothing
/// by this name.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = part(path, bytes).and_then(|part| Ok(part.persist_noclobber(path)?));
    written.map(drop).with_context(|| format!("cannot create {}", path.display()))
}

fn part(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut part = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(directory(path))?;
    part.write_all(bytes)?;
    part.as_file().sync_all()?;
    Ok(part)
}

fn directory(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
