//! The compiler for the kernel programs. There is no prebuilt `core` for the
//! BPF target, so it must be a compiler whose own library sources are
//! installed, and it may use unstable options (`-Z build-std`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{repo, run};

/// Names another compiler than the ones that are looked for.
pub const OVERRIDE: &str = "EFFECTGATE_BPF_RUSTC";

/// A compiler that can build the kernel programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// rustup's nightly with the component `rust-src`.
    Nightly,
    /// A stable compiler with its sources, told to accept unstable options.
    Bootstrap { rustc: PathBuf },
}

impl Toolchain {
    /// The first that is usable: the override, rustup's nightly, Debian's.
    pub fn find() -> Result<Self> {
        if let Some(rustc) = std::env::var_os(OVERRIDE) {
            let rustc = PathBuf::from(rustc);
            if !has_sources(&rustc) {
                bail!(
                    "{OVERRIDE} names {}, which does not run or has no library sources; \
                     name a rustc with `lib/rustlib/src/rust/library` in its sysroot, or unset it",
                    rustc.display()
                );
            }
            return Ok(Self::Bootstrap { rustc });
        }
        if let Some(rustc) = nightly_rustc()
            && has_sources(&rustc)
        {
            return Ok(Self::Nightly);
        }
        let debian = PathBuf::from("/usr/bin/rustc");
        if has_sources(&debian) {
            return Ok(Self::Bootstrap { rustc: debian });
        }
        bail!(
            "no compiler can build the kernel programs: they need one with its own library sources. \
             Install either of these, or run `cargo xtask setup --for build`:\n  \
             rustup toolchain install nightly --component rust-src\n  \
             apt-get install rustc-web rust-web-src   (Debian 12)\n\
             or point {OVERRIDE} at such a rustc"
        )
    }

    /// A cargo command that uses this compiler, whatever started this program.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = match self {
            Self::Nightly => {
                // Past the proxy's own variables: they would pin the toolchain
                // that runs this program.
                let mut command = Command::new("rustup");
                command.args(["run", "nightly", "cargo", subcommand]);
                command
            }
            Self::Bootstrap { rustc } => {
                let mut command = bootstrap_cargo(rustc, subcommand);
                command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", rustc);
                command
            }
        };
        for leaked in
            ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
        {
            command.env_remove(leaked);
        }
        if *self == Self::Nightly {
            for leaked in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
                command.env_remove(leaked);
            }
        }
        command
    }

    /// How to name it to a reader.
    pub fn describe(&self) -> String {
        match self {
            Self::Nightly => "rustup's nightly".to_owned(),
            Self::Bootstrap { rustc } => rustc.display().to_string(),
        }
    }

    /// Whether [`Self::cargo`] has a `clippy` that matches the compiler. A
    /// clippy of another version cannot read the `core` that was just built.
    pub fn has_clippy(&self) -> bool {
        match self {
            Self::Nightly => run::succeeds(self.cargo("clippy").arg("--version")),
            Self::Bootstrap { rustc } => {
                let beside = |name: &str| rustc.with_file_name(name).is_file();
                beside("cargo-clippy") && beside("clippy-driver")
            }
        }
    }
}

/// The cargo that runs this program drives another rustc well; only clippy
/// must be the compiler's own.
fn bootstrap_cargo(rustc: &Path, subcommand: &str) -> Command {
    if subcommand != "clippy" {
        let mut command = repo::cargo();
        command.arg(subcommand);
        return command;
    }
    let mut command = Command::new(rustc.with_file_name("cargo-clippy"));
    command.arg("clippy").env("CARGO", repo::cargo().get_program());
    command
}

fn nightly_rustc() -> Option<PathBuf> {
    let mut which = Command::new("rustup");
    which.args(["which", "rustc", "--toolchain", "nightly"]);
    run::output(&mut which).ok().map(|path| PathBuf::from(path.trim()))
}

fn has_sources(rustc: &Path) -> bool {
    sysroot(rustc).is_ok_and(|root| root.join("lib/rustlib/src/rust/library/core").is_dir())
}

fn sysroot(rustc: &Path) -> Result<PathBuf> {
    let printed = run::output(Command::new(rustc).args(["--print", "sysroot"]))
        .with_context(|| format!("{} does not print its sysroot", rustc.display()))?;
    Ok(PathBuf::from(printed.trim()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn set<'a>(command: &'a Command, name: &str) -> Option<Option<&'a OsStr>> {
        command.get_envs().find(|(key, _)| *key == OsStr::new(name)).map(|(_, value)| value)
    }

    #[test]
    fn the_nightly_does_not_inherit_the_toolchain_that_runs_this_program() {
        let command = Toolchain::Nightly.cargo("build");
        for name in ["RUSTUP_TOOLCHAIN", "RUSTC", "CARGO"] {
            assert_eq!(set(&command, name), Some(None), "{name}");
        }
    }

    #[test]
    fn a_stable_compiler_is_told_to_accept_unstable_options() {
        let toolchain = Toolchain::Bootstrap { rustc: "/opt/rustc".into() };
        let command = toolchain.cargo("build");
        assert_eq!(set(&command, "RUSTC"), Some(Some(OsStr::new("/opt/rustc"))));
        assert_eq!(set(&command, "RUSTC_BOOTSTRAP"), Some(Some(OsStr::new("1"))));
    }

    #[test]
    fn clippy_is_the_compilers_own() {
        let toolchain = Toolchain::Bootstrap { rustc: "/opt/rustc".into() };
        assert_eq!(toolchain.cargo("clippy").get_program(), "/opt/cargo-clippy");
    }
}
