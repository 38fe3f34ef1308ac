//! The place where a test happens: a directory that the envelope allows, one
//! that it does not, the same things in both, and an envelope.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A temporary directory with this in it:
///
/// ```text
/// root/               allowed
///   file other        regular files, one byte each
///   directory/        empty
///   to-outside        symbolic link to ../outside
/// outside/            not allowed, otherwise the same
///   to-root           symbolic link to ../root
/// envelope.json      pinned in envelope.json.sha256
/// ```
#[derive(Debug)]
pub struct Scene {
    base: TempDir,
    resolved: PathBuf,
    runs: AtomicU32,
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// # Panics
    /// When the temporary directory cannot be written.
    #[must_use]
    pub fn new() -> Scene {
        let base = tempfile::Builder::new()
            .prefix("effectgate-test-")
            .tempdir()
            .expect("the temporary directory can be written");
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        let resolved = base.path().canonicalize().expect("the directory was just made");
        let scene = Scene { base, resolved, runs: AtomicU32::new(0) };
        for (place, link) in [(scene.root(), "to-outside"), (scene.outside(), "to-root")] {
            fs::create_dir(&place).expect("mkdir");
            fs::create_dir(place.join("directory")).expect("mkdir");
            for name in ["file", "other"] {
                fs::write(place.join(name), "x").expect("write");
            }
            let target = link.replace("to-", "../");
            symlink(target, place.join(link)).expect("symlink");
        }
        scene.write_envelope(&scene.envelope_value());
        scene
    }

    /// Resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.resolved
    }

    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.resolved.join("root")
    }

    #[must_use]
    pub fn outside(&self) -> PathBuf {
        self.resolved.join("outside")
    }

    #[must_use]
    pub fn envelope(&self) -> PathBuf {
        self.resolved.join("envelope.json")
    }

    /// A directory for evidence, not yet there.
    #[must_use]
    pub fn new_evidence(&self) -> PathBuf {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        self.resolved.join(format!("evidence-{number}"))
    }

    /// An envelope that allows the root and nothing on the network.
    #[must_use]
    pub fn envelope_value(&self) -> Value {
        json!({
            "envelope_id": "test-envelope-v1",
            "allowed_roots": [self.root().to_str().expect("test paths are UTF-8")],
            "allowed_tools": [],
            "allowed_env": ["CI", "RUN_ID", "ENVELOPE_HASH"],
            "allowed_hosts": [],
            "network": "deny",
        })
    }

    /// Writes the envelope and its pin.
    pub fn write_envelope(&self, envelope: &Value) {
        let text = serde_json::to_string_pretty(envelope).expect("a value can be written");
        self.write_envelope_text(&(text + "\n"));
    }

    /// Writes an envelope that may be none, and its pin.
    pub fn write_envelope_text(&self, text: &str) {
        self.write_unpinned(text);
        self.write_pin(&digest(text.as_bytes()));
    }

    /// Writes the envelope and leaves the pin as it is.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write_unpinned(&self, text: &str) {
        fs::write(self.envelope(), text).expect("write");
    }

    /// # Panics
    /// When the file cannot be written.
    pub fn write_pin(&self, digest: &str) {
        fs::write(self.pin(), format!("{digest}  envelope.json\n")).expect("write");
    }

    /// Where the pin is.
    #[must_use]
    pub fn pin(&self) -> PathBuf {
        self.resolved.join("envelope.json.sha256")
    }

    /// SHA-256 of the envelope as it stands.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&fs::read(self.envelope()).expect("read"))
    }

    /// Changes the envelope, before any run.
    pub fn allow(&self, change: impl FnOnce(&mut Value)) {
        let mut envelope = self.envelope_value();
        change(&mut envelope);
        self.write_envelope(&envelope);
    }

    /// Allows these hosts.
    pub fn allow_hosts(&self, hosts: &[String]) {
        self.allow(|envelope| {
            envelope["network"] = json!("allowlist");
            envelope["allowed_hosts"] = json!(hosts);
        });
    }

    /// Where a manifest is, outside the root.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.resolved.join("agent-egress.yml")
    }

    /// Writes a manifest and its pin.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn write_manifest(&self, text: &str) {
        fs::write(self.manifest(), text).expect("write");
        let pin = self.manifest().with_extension("yml.sha256");
        fs::write(pin, format!("{}  agent-egress.yml\n", digest(text.as_bytes()))).expect("write");
    }

    /// Gives everything in the root to another user, who is not root.
    ///
    /// # Panics
    /// When this test does not run as root.
    pub fn give_root_to(&self, uid: u32, gid: u32) {
        for path in [self.root(), self.root().join("directory"), self.root().join("file")] {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).expect("chown needs root");
        }
    }

    /// A copy of a program where every user can reach it.
    ///
    /// # Panics
    /// When it cannot be copied.
    #[must_use]
    pub fn copy_of(&self, program: &Path) -> PathBuf {
        let copy = self.resolved.join(program.file_name().unwrap_or(OsStr::new("program")));
        fs::copy(program, &copy).expect("the program can be copied");
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("chmod");
        copy
    }

    /// Keeps the directory for a look at it, and says where it is.
    #[must_use]
    pub fn keep(self) -> PathBuf {
        self.base.keep()
    }
}

/// SHA-256, lower-case hexadecimal.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
