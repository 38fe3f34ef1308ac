//! Where things are: the repository, the target directory and the cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::run;

/// The places that every command works in.
#[derive(Debug, Deserialize)]
pub struct Repo {
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    #[serde(rename = "target_directory")]
    pub target: PathBuf,
}

impl Repo {
    /// Asks cargo, which alone knows every way to move the target directory.
    pub fn find() -> Result<Self> {
        let mut metadata = cargo();
        metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
        // Set by `cargo run`. What was compiled in may name another checkout
        // that shares the target directory.
        let here = std::env::var_os("CARGO_MANIFEST_DIR");
        metadata.current_dir(here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()));
        serde_json::from_str(&run::output(&mut metadata)?)
            .context("`cargo metadata` printed something that is not its JSON")
    }

    /// A cargo command at the root of the repository.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }

    /// The daemon's binary as `cargo xtask build` leaves it.
    pub fn effectgate(&self) -> PathBuf {
        self.target.join("release/effectgate")
    }

    /// The program whose effects the tests provoke and expect.
    pub fn trigger(&self) -> PathBuf {
        self.target.join("release/trigger")
    }

    /// The program that measures.
    pub fn bench(&self) -> PathBuf {
        self.target.join("release/bench")
    }

    /// Where the Python packages are that the tests verify signatures with.
    pub fn python_home(&self) -> PathBuf {
        self.target.join("python")
    }

    /// The Python that has them.
    pub fn python(&self) -> PathBuf {
        self.python_home().join("bin/python3")
    }

    /// Kernel packages and all else worth keeping between runs. Set
    /// `EFFECTGATE_CACHE` to share it between checkouts or CI jobs.
    pub fn cache(&self) -> PathBuf {
        std::env::var_os("EFFECTGATE_CACHE").map_or_else(|| self.target.join("vm"), PathBuf::from)
    }
}

/// The cargo that started this program, or the one in `PATH`.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
