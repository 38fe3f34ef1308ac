//! A private key in a file.

use std::{fs::File, io::Read as _, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::{Context, Result, bail, ensure};
use ed25519_dalek::{SigningKey, pkcs8::DecodePrivateKey as _};
use zeroize::Zeroizing;

use super::public::LARGEST;

/// Reads PKCS#8 in PEM (RFC 8410), as `openssl genpkey -algorithm ed25519`
/// writes it.
///
/// # Errors
/// When it cannot be read, is no such key, or others than its owner may read it.
pub fn read(path: &Path) -> Result<SigningKey> {
    let file = File::open(path).context("cannot be read")?;
    let found = file.metadata().context("cannot be read")?;
    ensure!(found.is_file(), "is no plain file");
    let others = found.mode() & 0o077;
    ensure!(
        others == 0,
        "others than its owner may read or change it (mode {:04o}): write `chmod 600 {}`",
        found.mode() & 0o7777,
        path.display()
    );
    let mut text = Zeroizing::new(String::new());
    file.take(LARGEST + 1).read_to_string(&mut text).context("cannot be read as text")?;
    ensure!(text.len() as u64 <= LARGEST, "is larger than any key");
    if text.contains("ENCRYPTED PRIVATE KEY") {
        bail!(
            "is encrypted, and nobody is there to ask for the passphrase: \
             `openssl pkey -in KEY -out PLAIN` takes it off, or let a command sign"
        );
    }
    SigningKey::from_pkcs8_pem(&text).map_err(|error| {
        anyhow::anyhow!(
            "is no Ed25519 private key in PEM ({error}): `openssl genpkey -algorithm ed25519` makes one"
        )
    })
}
