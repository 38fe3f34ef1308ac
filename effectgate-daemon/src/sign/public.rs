//! The public half of a key.

use std::{fs::File, io::Read as _, path::Path};

use anyhow::{Context, Result, ensure};
use ed25519_dalek::{
    Signature, VerifyingKey,
    pkcs8::{DecodePublicKey as _, EncodePublicKey as _},
};
use effectgate_core::pin;

use super::SIGNATURE;

/// No PEM file of a key is larger, bytes.
pub(super) const LARGEST: u64 = 64 << 10;

/// An Ed25519 public key with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    key: VerifyingKey,
    id: String,
}

impl PublicKey {
    /// Reads SPKI in PEM (RFC 8410), as `openssl pkey -pubout` writes it.
    ///
    /// # Errors
    /// When it cannot be read or is no such key.
    pub fn read(path: &Path) -> Result<PublicKey> {
        let what = || format!("the public key {}", path.display());
        let mut text = String::new();
        let file = File::open(path).with_context(what)?;
        file.take(LARGEST + 1).read_to_string(&mut text).with_context(what)?;
        ensure!(text.len() as u64 <= LARGEST, "{}: it is larger than any key", what());
        ensure!(
            !text.contains("PRIVATE KEY"),
            "{}: it is a private key, which nobody else must see; \
             `openssl pkey -in KEY -pubout` writes the public one",
            what()
        );
        let key = VerifyingKey::from_public_key_pem(&text).map_err(|error| {
            anyhow::anyhow!("{}: it is no Ed25519 public key in PEM: {error}", what())
        })?;
        PublicKey::of(key)
    }

    /// Its name is the SHA-256 of its SPKI in DER, lower-case hexadecimal: what
    /// `openssl pkey -pubin -outform DER | sha256sum` says.
    ///
    /// # Errors
    /// When the key cannot be written so.
    pub fn of(key: VerifyingKey) -> Result<PublicKey> {
        let der = key.to_public_key_der().map_err(|error| anyhow::anyhow!("the key: {error}"))?;
        Ok(PublicKey { id: pin::digest(der.as_bytes()), key })
    }

    /// The key's name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The 32 bytes of RFC 8032.
    #[must_use]
    pub fn bytes(&self) -> [u8; 32] {
        self.key.to_bytes()
    }

    /// Whether the signature is this key's. Strictly: no key or point of small
    /// order, under which one signature would fit several messages.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = <[u8; SIGNATURE]>::try_from(signature) else { return false };
        self.key.verify_strict(message, &Signature::from_bytes(&signature)).is_ok()
    }
}
