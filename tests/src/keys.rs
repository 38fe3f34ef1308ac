//! Keys that sign evidence, as a user makes them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A private key in the directory, and its public half beside it.
///
/// # Panics
/// When openssl is not there or makes none.
#[must_use]
pub fn make(dir: &Path) -> (PathBuf, PathBuf) {
    for words in
        ["genpkey -algorithm ed25519 -out key.pem", "pkey -in key.pem -pubout -out public.pem"]
    {
        let mut openssl = Command::new("openssl");
        let done = openssl.args(words.split(' ')).current_dir(dir).output();
        assert!(done.expect("openssl is there").status.success(), "{words}");
    }
    (dir.join("key.pem"), dir.join("public.pem"))
}
