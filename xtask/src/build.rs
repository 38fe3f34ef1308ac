//! Builds the kernel object with its own compiler, then the daemon that
//! embeds it, with stable Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::repo::Repo;
use crate::run::{run, which};
use crate::setup::{self, Need};
use crate::toolchain::Toolchain;

const TARGET: &str = "bpfel-unknown-none";
const PACKAGE: &str = "effectgate-ebpf";

/// `cargo xtask build`
pub fn main() -> Result<()> {
    let repo = Repo::find()?;
    setup::ensure(&[Need::Build])?;
    all(&repo)?;
    println!("{}", repo.effectgate().display());
    Ok(())
}

/// The kernel object, `effectgate`, and the tests' programs.
pub fn all(repo: &Repo) -> Result<()> {
    let object = kernel_object(repo)?;
    user_space(repo, &object)
}

/// Builds the kernel programs and returns the object file.
pub fn kernel_object(repo: &Repo) -> Result<PathBuf> {
    let toolchain = Toolchain::find()?;
    if which("bpf-linker").is_none() {
        bail!("bpf-linker is not in PATH; run `cargo xtask setup --for build`");
    }
    eprintln!("kernel programs: built with {}", toolchain.describe());
    run(&mut kernel_cargo(repo, &toolchain, "build"))?;
    let object = kernel_target(repo).join(TARGET).join("release").join(PACKAGE);
    if !object.is_file() {
        bail!("cargo succeeded but left no kernel object at {}", object.display());
    }
    Ok(object)
}

/// A cargo command over the kernel programs with the flags that make one
/// object load on every supported kernel.
pub fn kernel_cargo(repo: &Repo, toolchain: &Toolchain, subcommand: &str) -> Command {
    let mut command = toolchain.cargo(subcommand);
    command
        .current_dir(&repo.root)
        // Its own directory: cargo locks it, and another rustc's artefacts
        // would be thrown out at every turn.
        .env("CARGO_TARGET_DIR", kernel_target(repo))
        .env("CARGO_ENCODED_RUSTFLAGS", kernel_flags())
        .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", "bpf-linker")
        .args(["--release", "--target", TARGET, "-Z", "build-std=core", "-p", PACKAGE]);
    command
}

fn kernel_target(repo: &Repo) -> PathBuf {
    repo.target.join("bpf")
}

/// Debug information becomes the object's BTF. It must cover `core` too:
/// the verifier refuses callees (memcpy) without function information.
fn kernel_flags() -> String {
    ["--cfg=bpf_target_arch=\"x86_64\"", "-Cdebuginfo=2", "-Clink-arg=--btf", CPU].join("\x1f")
}

/// The instruction set: atomics that return what was there came with version 3
/// (kernel 5.12).
const CPU: &str = "-Ctarget-cpu=v3";

/// The daemon's build script embeds the object that this variable names.
fn user_space(repo: &Repo, object: &Path) -> Result<()> {
    let mut daemon = repo.cargo();
    daemon
        .args(["build", "--release", "-p", "effectgate-daemon", "--bin", "effectgate"])
        .env("EFFECTGATE_BPF_OBJECT", object);
    run(&mut daemon)?;
    let mut tests = repo.cargo();
    tests.args(["build", "--release", "-p", "effectgate-tests"]);
    tests.args(["--bin", "trigger", "--bin", "bench"]);
    run(&mut tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_flags_survive_the_quotes_in_the_architecture() {
        let flags = kernel_flags();
        let words: Vec<_> = flags.split('\x1f').collect();
        assert_eq!(words.len(), 4);
        assert_eq!(words[0], r#"--cfg=bpf_target_arch="x86_64""#);
    }
}
