//! Debian packages as files, through an apt state of our own: the machine's
//! package lists and sources are read, never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::pins::{FILE, Package, Pins};
use crate::repo::Repo;
use crate::run::{is_root, output, run};

/// Names the mirror where the machine's own apt does not use one of Debian.
const MIRROR: &str = "EFFECTGATE_DEBIAN_MIRROR";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A private apt.
pub struct Apt {
    directory: PathBuf,
}

impl Apt {
    /// Sets it up for the suites of `pins` and fetches their lists.
    pub fn refreshed(repo: &Repo, pins: &Pins) -> Result<Self> {
        let apt = Self { directory: repo.cache().join("apt") };
        for part in ["lists/partial", "cache/archives/partial"] {
            let part = apt.directory.join(part);
            fs::create_dir_all(&part)
                .with_context(|| format!("cannot create {}", part.display()))?;
        }
        let mirror = mirror()?;
        let sources: String = pins
            .suites()
            .iter()
            .map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"))
            .collect();
        let path = apt.directory.join("sources.list");
        fs::write(&path, sources).with_context(|| format!("cannot write {}", path.display()))?;
        run(apt.command("apt-get").args(["--quiet", "update"]))?;
        Ok(apt)
    }

    /// Downloads the package and returns its file.
    pub fn download(&self, package: &Package, into: &Path) -> Result<PathBuf> {
        let Package { package: name, version, suite, .. } = package;
        let mut download = self.command("apt-get");
        download.args(["--quiet", "download", &format!("{name}={version}")]);
        run(download.current_dir(into)).with_context(|| {
            format!(
                "{name} {version} ({suite}) cannot be had. When the mirror no longer has it, \
                 see what it has with `cargo xtask vm --pin` and change {FILE}"
            )
        })?;
        let prefix = format!("{name}_");
        fs::read_dir(into)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.file_name().is_some_and(|f| f.to_string_lossy().starts_with(&prefix)))
            .with_context(|| format!("apt-get left no file {prefix}* in {}", into.display()))
    }

    /// What the lists say about the newest version of each package whose name
    /// starts with `prefix` and ends with `suffix`.
    pub fn describe(&self, prefix: &str, suffix: &str) -> Result<Vec<Described>> {
        let names = output(self.command("apt-cache").args(["pkgnames", prefix]))?;
        let names: Vec<_> = names.lines().filter(|name| name.ends_with(suffix)).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let shown =
            output(self.command("apt-cache").args(["show", "--no-all-versions"]).args(names))?;
        Ok(shown.split("\n\n").filter_map(Described::parse).collect())
    }

    fn command(&self, program: &str) -> Command {
        let option = |name: &str, value: &Path| format!("{name}={}", value.display());
        let mut command = Command::new(program);
        for (name, part) in [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::State::lists", "lists"),
            ("Dir::Cache", "cache"),
        ] {
            command.arg("-o").arg(option(name, &self.directory.join(part)));
        }
        command.args(["-o", "Dir::Etc::sourceparts=/dev/null"]);
        command.args(["-o", "Acquire::Languages=none"]);
        command.args(["-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]);
        command.args(["-o", "Acquire::Retries=3"]);
        if is_root() {
            // The target directory is seldom readable for apt's own user.
            command.args(["-o", "APT::Sandbox::User=root"]);
        }
        command
    }
}

/// One package in the lists.
#[derive(Debug, PartialEq, Eq)]
pub struct Described {
    pub package: String,
    pub version: String,
    pub sha256: String,
}

impl Described {
    fn parse(stanza: &str) -> Option<Self> {
        let field = |name: &str| {
            let value = stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.map(str::to_owned)
        };
        let (package, version) = (field("Package")?, field("Version")?);
        Some(Self { package, version, sha256: field("SHA256")? })
    }
}

/// The mirror of Debian that this machine already uses.
fn mirror() -> Result<String> {
    if let Ok(mirror) = std::env::var(MIRROR) {
        return Ok(mirror);
    }
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let listed = output(&mut targets)?;
    match pick_mirror(&listed) {
        Some(mirror) => Ok(mirror),
        None => bail!(
            "this machine's apt uses no mirror of Debian (an address that ends in `/debian`), and \
             the pinned kernels are Debian's; set {MIRROR} to the address of one"
        ),
    }
}

fn pick_mirror(listed: &str) -> Option<String> {
    listed
        .lines()
        .map(|line| line.trim().trim_end_matches('/'))
        .find(|address| address.ends_with("/debian"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_debians_and_not_its_security_archive() {
        let listed = "http://mirror.test/debian-security/\nhttp://mirror.test/debian/\n";
        assert_eq!(pick_mirror(listed).as_deref(), Some("http://mirror.test/debian"));
        assert_eq!(pick_mirror("http://mirror.test/ubuntu/\n"), None);
    }

    #[test]
    fn a_stanza_gives_what_a_pin_needs() {
        let stanza = "Package: linux-image-1\nVersion: 1-2\nDescription: Package: no\nSHA256: ab\n";
        let described = Described::parse(stanza).unwrap();
        assert_eq!((described.version.as_str(), described.sha256.as_str()), ("1-2", "ab"));
        assert_eq!(Described::parse("Package: x\n"), None);
    }
}
