//! Finds or installs what the other commands need, and says what it did.
//! Each command asks for its own needs, so that a demonstration does not
//! install an emulator.

mod apt;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::repo::{self, Repo};
use crate::run::{run, succeeds, which};
use crate::toolchain::{self, Toolchain};

/// What there must be on the machine to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Need {
    /// Building the kernel programs and the daemon
    Build,
    /// Formatting, lints, licences and the native tests
    Test,
    /// The tests in virtual machines
    Vm,
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what this is for; everything when absent
    #[arg(long = "for", value_name = "WHAT", value_delimiter = ',')]
    needs: Vec<Need>,
}

/// A program and the Debian package that brings it. An absolute path asks for
/// the package's own program: the guest gets a copy of the package, and a job
/// of the tests looks nowhere else.
struct Tool {
    needs: &'static [Need],
    program: &'static str,
    package: &'static str,
}

const fn tool(needs: &'static [Need], program: &'static str, package: &'static str) -> Tool {
    Tool { needs, program, package }
}

#[rustfmt::skip]
const TOOLS: &[Tool] = &[
    tool(BUILD, "cc", "build-essential"),
    tool(BUILD, "c++", "build-essential"),
    tool(TEST, "/bin/btrfs", "btrfs-progs"),
    tool(TEST, "curl", "curl"),
    tool(TEST, "npm", "npm"),
    tool(TEST, "openssl", "openssl"),
    tool(TEST, "promtool", "prometheus"),
    tool(TEST, "xmllint", "libxml2-utils"),
    tool(TEST_AND_VM, "/usr/bin/gcc", "build-essential"),
    tool(TEST_AND_VM, "/usr/bin/git", "git"),
    tool(TEST_AND_VM, "/usr/bin/go", "golang-go"),
    tool(TEST_AND_VM, "/usr/bin/make", "build-essential"),
    tool(TEST_AND_VM, "/usr/bin/node", "nodejs"),
    tool(TEST_AND_VM, "/usr/bin/python3", "python3"),
    tool(VM, "qemu-system-x86_64", "qemu-system-x86"),
    tool(VM, "busybox", "busybox-static"),
    tool(VM, "dpkg-deb", "dpkg"),
    tool(VM, "mke2fs", "e2fsprogs"),
    tool(VM, "xz", "xz-utils"),
];

const BUILD: &[Need] = &[Need::Build];
const TEST: &[Need] = &[Need::Test];
const VM: &[Need] = &[Need::Vm];
const TEST_AND_VM: &[Need] = &[Need::Test, Need::Vm];

/// Debian's compiler with its library sources, and the LLVM it was built
/// with, against which bpf-linker is linked.
const DEBIAN_BPF: &[&str] = &["rustc-web", "rust-web-src", "llvm-22-dev", "build-essential"];
const DEBIAN_LLVM: &str = "/usr/lib/llvm-22";

/// `cargo xtask setup`
pub fn main(args: &Args) -> Result<()> {
    let every = [Need::Build, Need::Test, Need::Vm];
    let needs = if args.needs.is_empty() { &every[..] } else { &args.needs };
    if !ensure(needs)? {
        eprintln!("setup: nothing was missing");
    }
    Ok(())
}

/// Installs what is missing for `needs`; returns whether anything was.
pub fn ensure(needs: &[Need]) -> Result<bool> {
    let mut changed = programs(needs)?;
    if needs.contains(&Need::Build) {
        changed |= bpf_toolchain()?;
        changed |= bpf_linker()?;
    }
    if needs.contains(&Need::Test) {
        changed |= component("rustfmt", "fmt")?;
        changed |= component("clippy", "clippy")?;
        changed |= kernel_clippy()?;
        changed |= cargo_tool("cargo-nextest", "0.9.143")?;
        changed |= cargo_tool("cargo-deny", "0.20.2")?;
        changed |= python_packages(&Repo::find()?)?;
    }
    Ok(changed)
}

fn programs(needs: &[Need]) -> Result<bool> {
    let mut packages: Vec<_> = TOOLS
        .iter()
        .filter(|tool| tool.needs.iter().any(|need| needs.contains(need)))
        .filter(|tool| which(tool.program).is_none())
        .map(|tool| tool.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        return Ok(false);
    }
    apt::install(&packages)?;
    Ok(true)
}

fn bpf_toolchain() -> Result<bool> {
    let Err(missing) = Toolchain::find() else { return Ok(false) };
    if std::env::var_os(toolchain::OVERRIDE).is_some() {
        // Nothing that could be installed would be used.
        return Err(missing);
    }
    if apt::offers(DEBIAN_BPF) {
        apt::install(DEBIAN_BPF)?;
    } else if which("rustup").is_some() {
        eprintln!("setup: no Debian packages {DEBIAN_BPF:?} here; asking rustup for its nightly");
        let mut install = Command::new("rustup");
        install.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
        install.args(["--component", "rust-src", "--component", "clippy"]);
        run(&mut install)?;
    } else {
        return Err(missing);
    }
    Toolchain::find()
        .context("installed a compiler for the kernel programs, yet none is usable")?;
    Ok(true)
}

/// Linked against Debian's LLVM where that compiler is used; elsewhere
/// against the LLVM that rustup's compiler brings.
fn bpf_linker() -> Result<bool> {
    const VERSION: &str = "bpf-linker@0.13.0";
    if which("bpf-linker").is_some() {
        return Ok(false);
    }
    let mut install = cargo_install(VERSION);
    if matches!(Toolchain::find()?, Toolchain::Bootstrap { .. }) {
        if !Path::new(DEBIAN_LLVM).is_dir() {
            apt::install(&["llvm-22-dev", "build-essential"])?;
        }
        install.args(["--no-default-features", "--features", "llvm-22"]);
        install.env("LLVM_PREFIX", DEBIAN_LLVM).env("LLVM_SYS_221_PREFIX", DEBIAN_LLVM);
    }
    run(&mut install)?;
    Ok(true)
}

/// The clippy of the compiler that builds the kernel programs.
fn kernel_clippy() -> Result<bool> {
    let Ok(toolchain) = Toolchain::find() else { return Ok(false) };
    if toolchain.has_clippy() {
        return Ok(false);
    }
    match toolchain {
        Toolchain::Nightly => {
            let mut add = Command::new("rustup");
            run(add.args(["component", "add", "clippy", "--toolchain", "nightly"]))?;
        }
        // A compiler that someone named is theirs to complete.
        Toolchain::Bootstrap { rustc } if rustc == Path::new("/usr/bin/rustc") => {
            apt::install(&["rust-web-clippy"])?;
        }
        Toolchain::Bootstrap { .. } => return Ok(false),
    }
    Ok(true)
}

fn component(name: &str, subcommand: &str) -> Result<bool> {
    if succeeds(repo::cargo().args([subcommand, "--version"])) {
        return Ok(false);
    }
    run(Command::new("rustup").args(["component", "add", name]))?;
    Ok(true)
}

fn cargo_tool(name: &str, version: &str) -> Result<bool> {
    if which(name).is_some() {
        return Ok(false);
    }
    run(&mut cargo_install(&format!("{name}@{version}")))?;
    Ok(true)
}

/// The packages by which others verify what EffectGate signs, in an environment
/// of their own.
fn python_packages(repo: &Repo) -> Result<bool> {
    const PYTHON: &str = "/usr/bin/python3";
    let wanted = repo.root.join("effectgate-daemon/tests/independent/requirements.txt");
    let home = repo.python_home();
    // Written last: what is there is whole.
    let installed = home.join("requirements.txt");
    let list = fs::read(&wanted).with_context(|| format!("cannot read {}", wanted.display()))?;
    if fs::read(&installed).is_ok_and(|found| found == list) {
        return Ok(false);
    }
    if !succeeds(Command::new(PYTHON).args(["-c", "import ensurepip"])) {
        apt::install(&["python3-venv"])?;
    }
    run(Command::new(PYTHON).args(["-m", "venv", "--clear"]).arg(&home))?;
    let mut install = Command::new(repo.python());
    install.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&wanted);
    run(&mut install)?;
    fs::write(&installed, list).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(true)
}

/// Optimised for a short build: none of these programs runs for long.
fn cargo_install(package: &str) -> Command {
    let mut install = repo::cargo();
    install
        .args(["install", "--locked", package])
        // Its leavings do not belong into this repository's.
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    install
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demonstration_needs_no_emulator() {
        let of = |need| TOOLS.iter().filter(move |tool| tool.needs.contains(&need));
        assert!(of(Need::Build).all(|tool| !tool.program.contains("qemu")));
        assert!(of(Need::Vm).any(|tool| tool.program.contains("qemu")));
    }
}
