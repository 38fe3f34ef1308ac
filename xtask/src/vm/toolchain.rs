//! This machine's C compiler, make and git for the guest, so that a test can
//! build real software there. What to take is read from the package database.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::guest::merged;
use super::libraries;
use super::tree::Tree;
use crate::run::output;

/// Their packages are taken whole, apart from [`LEFT_OUT`].
const PROGRAMS: &[&str] = &["gcc", "cpp", "as", "make", "git"];
const PACKAGES: &[&str] = &["libc6-dev", "linux-libc-dev"];

/// Large, and of no use to a C build without sanitizers, profiles or link
/// time optimisation, nor to git on local repositories.
const LEFT_OUT: &[&str] = &[
    "/usr/share/doc",
    "/usr/share/man",
    "/usr/share/locale",
    "/usr/share/lintian",
    "/usr/share/bash-completion",
    "/usr/share/bug",
    "/usr/share/gdb",
    "/usr/lib/git-core/git-remote-",
    "/usr/lib/git-core/git-http-",
    "/usr/lib/git-core/git-imap-send",
    "/usr/lib/git-core/git-daemon",
    "/var/lib/git",
];
const LEFT_OUT_NAMES: &[&str] = &["lto1", "cc1plus", "g++-mapper-server", "gdb", "dwp"];

/// Adds the files of the packages, and the libraries of the programs in them.
pub fn add(root: &mut Tree) -> Result<()> {
    let mut libraries_needed = BTreeSet::new();
    for file in files(&packages()?)? {
        let path = merged(&file);
        let metadata = fs::symlink_metadata(&file)
            .with_context(|| format!("a package lists {}, which is not there", file.display()))?;
        if metadata.is_symlink() {
            root.link(&path, fs::read_link(&file)?);
        } else if metadata.is_file() {
            root.host(&path, &file)?;
            if is_elf_program(&file)? {
                libraries_needed.extend(libraries::of(&file)?);
            }
        }
    }
    for library in libraries_needed {
        let path = merged(&library);
        if !root.contains(&path) {
            root.host(path, &library)?;
        }
    }
    // Debian's alternatives, which no package lists.
    if !root.contains(Path::new("/usr/bin/cc")) {
        root.link("/usr/bin/cc", "gcc");
    }
    Ok(())
}

/// The packages that own the programs here, whatever their versions.
fn packages() -> Result<BTreeSet<String>> {
    let mut packages: BTreeSet<_> = PACKAGES.iter().map(|&name| name.to_owned()).collect();
    for program in PROGRAMS {
        // The package's own, though another may come first in PATH.
        let path = Path::new("/usr/bin").join(program);
        packages.insert(owner(&path)?);
        packages.insert(owner(&path.canonicalize()?)?);
    }
    // The compiler's own start files and headers.
    let runtime = output(Command::new("gcc").arg("-print-libgcc-file-name"))?;
    packages.insert(owner(Path::new(runtime.trim()))?);
    let compiler = output(Command::new("gcc").arg("-print-prog-name=cc1"))?;
    packages.insert(owner(Path::new(compiler.trim()))?);
    Ok(packages)
}

fn owner(path: &Path) -> Result<String> {
    let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let candidates = [path.to_owned(), canonical.clone(), unmerged(&canonical)];
    let mut last = None;
    for candidate in candidates {
        match output(Command::new("dpkg-query").arg("--search").arg(candidate)) {
            Ok(found) => {
                let package = found.split(": ").next().unwrap_or_default();
                return Ok(package.to_owned());
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("no path to look up")?)
        .with_context(|| {
        let path = path.display();
        format!("no Debian package owns {path}; `cargo xtask setup --for vm` installs what the guest needs")
    })
}

/// The name that the database knows for a file reached through Debian's links
/// from `/bin` and `/lib` into `/usr`.
fn unmerged(path: &Path) -> PathBuf {
    path.strip_prefix("/usr").map_or_else(|_| path.to_owned(), |rest| Path::new("/").join(rest))
}

fn files(packages: &BTreeSet<String>) -> Result<BTreeSet<PathBuf>> {
    let listed = output(Command::new("dpkg-query").arg("--listfiles").args(packages))?;
    let wanted = listed.lines().filter(|line| line.starts_with('/') && is_wanted(line));
    Ok(wanted.map(PathBuf::from).collect())
}

fn is_wanted(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let sanitizer = name.ends_with("san.a") || name.contains("san_preinit");
    !(sanitizer
        || LEFT_OUT.iter().any(|prefix| path.starts_with(prefix))
        || LEFT_OUT_NAMES.contains(&name))
}

fn is_elf_program(file: &Path) -> Result<bool> {
    use std::io::Read as _;
    let mut start = [0; 18];
    let read = fs::File::open(file)?.read(&mut start)?;
    // Type at offset 16: 2 is an executable, 3 a position-independent one or
    // a library; objects (1) need no libraries.
    Ok(read == start.len() && start.starts_with(b"\x7fELF") && matches!(start[16], 2 | 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_and_sanitizers_stay_behind() {
        assert!(is_wanted("/usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a"));
        assert!(!is_wanted("/usr/lib/gcc/x86_64-linux-gnu/12/libasan.a"));
        assert!(!is_wanted("/usr/lib/gcc/x86_64-linux-gnu/12/lto1"));
        assert!(!is_wanted("/usr/share/doc/git/README"));
    }
}
