//! Who vouches for evidence: Ed25519 keys (RFC 8032), from a file, from a path
//! in the environment, or kept by a command that signs for us.

mod ask;
mod file;
mod public;

use std::{ffi::OsStr, path::PathBuf};

use anyhow::{Context, Result, bail};
use ed25519_dalek::{Signature, Signer as _, SigningKey};
use effectgate_core::{checkpoint::Checkpoint, verdict::Log};

pub use public::PublicKey;

/// Names the file of the private key where no option does.
pub const KEY_VARIABLE: &str = "EFFECTGATE_SIGN_KEY";

/// Length of a signature, bytes.
pub const SIGNATURE: usize = Signature::BYTE_SIZE;

/// Where the key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file with the private key: PKCS#8 in PEM, read by its owner alone.
    File(PathBuf),
    /// A program that signs what it gets, and the file of its public key.
    Command { program: PathBuf, public: PathBuf },
}

impl Source {
    /// What the options say; where they say nothing, what the variable
    /// [`KEY_VARIABLE`] says; `None` where nothing is to be signed.
    ///
    /// # Errors
    /// When a command is named without its public key, or with a key as well.
    pub fn of(
        key: Option<PathBuf>,
        command: Option<PathBuf>,
        public: Option<PathBuf>,
        variable: Option<&OsStr>,
    ) -> Result<Option<Source>> {
        match (key, command, public) {
            (Some(_), Some(_), _) => bail!("a key signs, or a command does: name one of them"),
            (None, Some(program), Some(public)) => Ok(Some(Source::Command { program, public })),
            (None, Some(program), None) => bail!(
                "{} signs, but its public key is not known: name its file as well",
                program.display()
            ),
            (_, None, Some(public)) => {
                bail!(
                    "the public key {} belongs to a command that signs: name it",
                    public.display()
                )
            }
            (Some(key), None, None) => Ok(Some(Source::File(key))),
            (None, None, None) => {
                let named = variable.filter(|name| !name.is_empty());
                Ok(named.map(|name| Source::File(name.into())))
            }
        }
    }

    /// What of it a job has no business with.
    #[must_use]
    pub fn private(&self) -> Option<PathBuf> {
        match self {
            Source::File(key) => Some(key.clone()),
            Source::Command { .. } => None,
        }
    }
}

/// Signs.
#[derive(Debug)]
pub struct Signer {
    key: Key,
    public: PublicKey,
}

enum Key {
    Held(SigningKey),
    Asked(PathBuf),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Held(_) => f.write_str("Held"),
            Key::Asked(program) => f.debug_tuple("Asked").field(program).finish(),
        }
    }
}

impl Signer {
    /// A checkpoint over a log, signed.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn checkpoint(&self, log: Log) -> Result<String> {
        let checkpoint = Checkpoint::of(log);
        let signature = self.sign(checkpoint.to_string().as_bytes())?;
        Ok(checkpoint.note(&self.public.bytes(), &signature).to_string())
    }

    /// Reads the key, or has the command sign something once: a key that does
    /// not sign is to be known before it is needed.
    ///
    /// # Errors
    /// When a file cannot be read, is no such key, or may be read by others;
    /// when the command does not sign.
    pub fn new(source: &Source) -> Result<Signer> {
        match source {
            Source::File(path) => {
                let key = file::read(path)
                    .with_context(|| format!("the private key {}", path.display()))?;
                let public = PublicKey::of(key.verifying_key())?;
                Ok(Signer { key: Key::Held(key), public })
            }
            Source::Command { program, public } => {
                let public = PublicKey::read(public)?;
                let signer = Signer { key: Key::Asked(program.clone()), public };
                signer.sign(b"effectgate: does this key sign?")?;
                Ok(signer)
            }
        }
    }

    /// A signature, which holds under [`Self::public`]: what a command answers
    /// is verified.
    ///
    /// # Errors
    /// When the command does not answer in time, or with another signature.
    pub fn sign(&self, message: &[u8]) -> Result<[u8; SIGNATURE]> {
        match &self.key {
            Key::Held(key) => Ok(key.sign(message).to_bytes()),
            Key::Asked(program) => {
                let what = || format!("the command that signs, {}", program.display());
                let signature = ask::signature(program, message).with_context(what)?;
                if !self.public.verifies(message, &signature) {
                    bail!(
                        "{}: its signature does not hold under the public key {}",
                        what(),
                        self.public.id()
                    );
                }
                Ok(signature)
            }
        }
    }

    /// By which others verify.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }
}

#[cfg(test)]
mod tests;
