//! The daemon's configuration: one JSON object, every key optional.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use effectgate_core::input::Backend;
use serde::Deserialize;

use crate::{
    log,
    observe::kernel,
    sign::{KEY_VARIABLE, Source},
};

/// What the daemon is told.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Unix socket for `effectgate job`.
    pub socket: PathBuf,
    /// Address of the metrics; port 0 takes a free one and logs it.
    pub metrics_listen: SocketAddr,
    /// Evidence goes to `jobs/NAME` below it.
    pub state_dir: PathBuf,
    /// `auto`, `lsm`, `fentry` or `tracepoint`.
    pub backend: String,
    /// Size of each ring in bytes: a power of two, at least 4096.
    pub ring_bytes: u32,
    /// Size at which a segment of a job's log is closed, in bytes.
    pub segment_bytes: u64,
    /// Days for which a job's evidence is kept; null: for ever.
    pub keep_days: Option<u64>,
    /// Bytes of evidence that are kept, all jobs together; null: any number.
    pub keep_bytes: Option<u64>,
    /// The private key that signs the evidence.
    pub sign_key: Option<PathBuf>,
    /// Or a program that signs it, and the public key of that.
    pub sign_command: Option<PathBuf>,
    pub sign_public: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            socket: super::SOCKET.into(),
            metrics_listen: ([127, 0, 0, 1], 9464).into(),
            state_dir: "/var/lib/effectgate".into(),
            backend: "auto".to_owned(),
            ring_bytes: kernel::RING_BYTES,
            segment_bytes: log::SEGMENT_BYTES,
            keep_days: None,
            keep_bytes: None,
            sign_key: None,
            sign_command: None,
            sign_public: None,
        }
    }
}

impl Config {
    /// Reads a configuration; without a file, the defaults.
    ///
    /// # Errors
    /// With file, line and column when it is malformed or makes no sense.
    pub fn read(file: Option<&Path>) -> Result<Config> {
        let Some(file) = file else { return Ok(Config::default()) };
        let what = || format!("configuration {}", file.display());
        let bytes = fs::read(file).with_context(what)?;
        // serde would take a list of the values in order as well.
        ensure!(
            bytes.trim_ascii_start().starts_with(b"{"),
            "configuration {}: is no JSON object",
            file.display()
        );
        let config: Config = serde_json::from_slice(&bytes).with_context(what)?;
        config.backend().with_context(what)?;
        config.sign().with_context(what)?;
        ensure!(
            config.ring_bytes.is_power_of_two() && config.ring_bytes >= 4096,
            "configuration {}: ring_bytes is {}, but a ring's size is a power of two from 4096 up",
            file.display(),
            config.ring_bytes
        );
        ensure!(
            config.segment_bytes >= log::SMALLEST_SEGMENT,
            "configuration {}: segment_bytes is {}, but a segment has room for {} bytes at least",
            file.display(),
            config.segment_bytes,
            log::SMALLEST_SEGMENT
        );
        ensure!(
            config.keep_days != Some(0) && config.keep_bytes != Some(0),
            "configuration {}: keep_days and keep_bytes are at least 1; null keeps everything",
            file.display()
        );
        Ok(config)
    }

    /// Who signs the evidence; `None` when nobody does.
    ///
    /// # Errors
    /// When a key and a command are named, or one of a command and its public
    /// key alone.
    pub fn sign(&self) -> Result<Option<Source>> {
        Source::of(
            self.sign_key.clone(),
            self.sign_command.clone(),
            self.sign_public.clone(),
            std::env::var_os(KEY_VARIABLE).as_deref(),
        )
    }

    /// The backend asked for; `None` for `auto`.
    ///
    /// # Errors
    /// When there is no such backend.
    pub fn backend(&self) -> Result<Option<Backend>> {
        if self.backend == "auto" {
            return Ok(None);
        }
        let backend = Backend::from_name(&self.backend);
        backend.map(Some).with_context(|| {
            format!("there is no backend {:?}: write auto, lsm, fentry or tracepoint", self.backend)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), text)?;
        Config::read(Some(file.path()))
    }

    #[test]
    fn an_empty_object_is_the_default() {
        let config = read("{}").expect("it is valid");
        assert_eq!(config.socket, Path::new(super::super::SOCKET));
        assert_eq!(config.backend().expect("auto"), None);
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for bad in [
            "",
            "[]",
            "{\"sockt\": \"/x\"}",
            "{\"metrics_listen\": \"nowhere\"}",
            "{\"backend\": \"magic\"}",
            "{\"ring_bytes\": 5000}",
            "{\"ring_bytes\": 0}",
            "{\"segment_bytes\": 4095}",
            "{\"keep_days\": 0}",
            "{\"keep_bytes\": 0}",
            "{\"keep_days\": -1}",
            "{\"sign_command\": \"/sign\"}",
            "{\"sign_key\": \"k\", \"sign_command\": \"/s\", \"sign_public\": \"p\"}",
        ] {
            let error = format!("{:#}", read(bad).expect_err(bad));
            assert!(error.contains("configuration /"), "{error}");
        }
    }
}
