//! Reads a policy and holds it against its pin, before anything runs.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use effectgate_core::{
    pin::{self, ReviewNote},
    policy::{self, Fault, Kind, Policy},
};

use crate::{
    cli::{PolicyArgs, PolicyFile},
    clock::today,
    diagnose::{self, Look, counted, shell_path, visible},
};

/// A policy whose digest holds.
#[derive(Debug)]
pub struct Pinned {
    pub policy: Policy,
    pub bytes: Vec<u8>,
    pub note: Option<(ReviewNote, Vec<u8>)>,
    /// The digest that was written down.
    pub digest: String,
}

/// Reads the policy, its pin and its review note.
///
/// # Errors
/// When one cannot be read, is malformed, or the digest differs and no note
/// covers it.
pub fn load(args: &PolicyArgs) -> Result<Pinned> {
    let (policy, bytes) = of_kind(&args.file, &today())?;
    let path = args.file.path();
    let note = args.review_note.as_deref().map(read_note).transpose()?;
    let pinned = match (&args.digest, &args.digest_file) {
        (Some(digest), _) => pin::parse_digest(digest).context("--digest")?,
        (None, Some(file)) => read_pin(file)?,
        (None, None) => {
            let beside = pin_path(path);
            if !beside.exists() {
                bail!(
                    "{} is not pinned: review it, then write its digest down with `effectgate pin {}`, or give --digest",
                    path.display(),
                    shell_path(path)
                );
            }
            read_pin(&beside)?
        }
    };
    let covered = note.as_ref().map(|(note, _)| note);
    pin::verify(&policy.sha256, &pinned, covered)
        .with_context(|| format!("{} may not be used", path.display()))?;
    Ok(Pinned { policy, bytes, note, digest: pinned })
}

/// Reads and parses the policy that was named as of a day, `YYYY-MM-DD`; it
/// must be of the kind that it was called.
///
/// # Errors
/// As [`read`], or when it is of the other kind.
pub fn of_kind(file: &PolicyFile, today: &str) -> Result<(Policy, Vec<u8>)> {
    let path = file.path();
    let (policy, bytes) = read_on(path, today)?;
    match (policy.kind, &file.manifest) {
        (Kind::Manifest, None) => bail!("{} is a manifest: use --manifest", path.display()),
        (Kind::Envelope, Some(_)) => bail!("{} is an envelope: use --envelope", path.display()),
        _ => Ok((policy, bytes)),
    }
}

impl PolicyFile {
    /// The file that was named.
    #[must_use]
    pub fn path(&self) -> &Path {
        // The command line has exactly one of them.
        self.envelope.as_ref().or(self.manifest.as_ref()).map_or(Path::new(""), PathBuf::as_path)
    }
}

/// The directory that a policy's relative roots are relative to: the one that
/// was named, else the current one; an envelope has no such roots.
///
/// # Errors
/// When there is no such directory.
pub fn workspace(policy: &Policy, named: Option<&Path>) -> Result<Option<PathBuf>> {
    if policy.kind == Kind::Envelope {
        return Ok(None);
    }
    let dir = named.unwrap_or(Path::new("."));
    let real = dir.canonicalize().with_context(|| format!("no workspace {}", dir.display()))?;
    Ok(Some(real))
}

/// Reads and parses a policy.
///
/// # Errors
/// When it cannot be read, or with all its faults.
pub fn read(path: &Path) -> Result<(Policy, Vec<u8>)> {
    read_on(path, &today())
}

/// A day on which no exception has expired.
pub const ANY_DAY: &str = "0000-01-01";

/// Reads and parses a policy as on that day, `YYYY-MM-DD`.
///
/// # Errors
/// When it cannot be read, or with all its faults.
pub fn read_on(path: &Path, day: &str) -> Result<(Policy, Vec<u8>)> {
    let bytes = bounded(path)?;
    let policy = policy::parse(&path.to_string_lossy(), &bytes, day)
        .map_err(|faults| all(faults, &bytes))?;
    Ok((policy, bytes))
}

/// The largest policy, pin, note or other file of a packet that is read, but
/// for traces and logs; bytes.
pub const LARGEST: u64 = 16 << 20;

/// A file's bytes, unless it is larger than any file of its kind.
///
/// # Errors
/// When it cannot be read, or is larger.
pub fn bounded(path: &Path) -> Result<Vec<u8>> {
    let what = || format!("cannot read {}", visible(&path.to_string_lossy()));
    match fs::File::open(path).and_then(at_most).with_context(what)? {
        Some(bytes) => Ok(bytes),
        None => bail!("{}: is larger than {LARGEST} bytes", what()),
    }
}

/// What a file holds; `None` when it is larger than [`LARGEST`].
///
/// # Errors
/// When it cannot be read.
pub fn at_most(file: fs::File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= LARGEST))
}

/// Where the pin of a policy file is looked for.
#[must_use]
pub fn pin_path(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".sha256");
    path.into()
}

/// Reads a pin file.
///
/// # Errors
/// When it cannot be read or is no pin.
pub fn read_pin(path: &Path) -> Result<String> {
    let bytes = bounded(path).context("the pin")?;
    pin::read_pin(&path.to_string_lossy(), &bytes).map_err(|fault| all(vec![fault], &bytes))
}

/// Reads a review note.
///
/// # Errors
/// When it cannot be read, with all its faults, or when it was written on a day
/// that has not come.
pub fn read_note(path: &Path) -> Result<(ReviewNote, Vec<u8>)> {
    let bytes = bounded(path).context("the review note")?;
    let note =
        pin::parse_note(&path.to_string_lossy(), &bytes).map_err(|faults| all(faults, &bytes))?;
    if note.date > today() {
        let name = visible(&path.to_string_lossy());
        bail!(
            "{name}: the review is dated {}, a day that has not come; write the day of the review",
            note.date
        );
    }
    Ok((note, bytes))
}

/// All of a file's faults, drawn for standard error, where errors go.
pub fn all(faults: Vec<Fault>, bytes: &[u8]) -> anyhow::Error {
    let findings = diagnose::of_file(faults, bytes);
    let name = findings.first().map(|finding| visible(&finding.file)).unwrap_or_default();
    let drawn = diagnose::text(&findings, Look::of(&io::stderr()));
    let count = counted(findings.len());
    anyhow::anyhow!("{name} does not hold: {count}\n\n{}", drawn.trim_end())
}
