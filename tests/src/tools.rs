//! Real programs for tests of real work.
//!
//! Where a machine lacks them, `EFFECTGATE_TEST_NO_TOOLCHAIN=1` says so;
//! without it, a missing program fails the test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether this is a virtual machine, where work takes seconds.
#[must_use]
pub fn in_vm() -> bool {
    std::env::var_os("EFFECTGATE_TEST_VM").is_some()
}

/// Whether all these programs can be found: by name in `PATH`, or by path.
///
/// # Panics
/// When one cannot, and nobody said so.
#[must_use]
pub fn have(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &&&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let missing: Vec<_> = programs.iter().filter(|name| !found(name)).collect();
    if missing.is_empty() {
        return true;
    }
    let declared = std::env::var("EFFECTGATE_TEST_NO_TOOLCHAIN").is_ok_and(|value| value == "1");
    assert!(
        declared,
        "{missing:?} are not installed; `cargo xtask setup` installs them, \
         or set EFFECTGATE_TEST_NO_TOOLCHAIN=1"
    );
    println!("not tested: {missing:?} are not installed");
    false
}

/// The toolchain's own cargo, beside its rustc. The one of rustup looks for
/// settings in a home that a job may not have.
///
/// # Panics
/// When rustc names a toolchain without cargo.
#[must_use]
pub fn cargo() -> Option<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO").map(PathBuf::from)
        && cargo.with_file_name("rustc").is_file()
    {
        return Some(cargo);
    }
    if !have(&["rustc"]) {
        return None;
    }
    let output =
        Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc can be started");
    let sysroot = String::from_utf8(output.stdout).expect("UTF-8");
    let cargo = Path::new(sysroot.trim()).join("bin/cargo");
    assert!(cargo.is_file(), "{} is not there", cargo.display());
    Some(cargo)
}
