//! Whether what was attached still is. A link of a cgroup's can be detached, or
//! given another program, by any root process (`bpf(2)`, `BPF_LINK_DETACH`,
//! `BPF_LINK_UPDATE`); those of other kinds can not, and are asked all the same.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// What the kernel says of each descriptor of this process.
pub(super) const DESCRIPTORS: &str = "/proc/self/fdinfo";

/// Links, and what the kernel said of each when it was made: type, number,
/// program, and where it is attached (`bpf_link_show_fdinfo`).
#[derive(Debug)]
pub struct Links(BTreeMap<PathBuf, String>);

impl Links {
    /// This process's links to these programs.
    ///
    /// # Errors
    /// When the descriptors cannot be listed.
    pub fn to(programs: &[u32]) -> Result<Links> {
        let mut links = BTreeMap::new();
        let listed = fs::read_dir(DESCRIPTORS).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in listed.with_context(|| format!("cannot read {DESCRIPTORS}"))? {
            // The one that the directory itself was read through is gone.
            let Ok(said) = said(&entry.path()) else { continue };
            if program(&said).is_some_and(|id| programs.contains(&id)) {
                links.insert(entry.path(), said);
            }
        }
        Ok(Links(links))
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Compares what the kernel says now.
    ///
    /// # Errors
    /// When it says something else of one, which was detached or given another
    /// program.
    pub fn check(&self) -> Result<()> {
        for (path, before) in &self.0 {
            let now = said(path).with_context(|| format!("cannot read {}", path.display()))?;
            if now != *before {
                let id = program(before).unwrap_or(0);
                bail!("the program {id} was detached, or another one took its place");
            }
        }
        Ok(())
    }
}

/// Beside what it says of every file.
fn said(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let general = |line: &&str| {
        !["pos:", "flags:", "mnt_id:", "ino:"].iter().any(|key| line.starts_with(key))
    };
    Ok(text.lines().filter(general).collect::<Vec<_>>().join("\n"))
}

/// The program of a link.
fn program(said: &str) -> Option<u32> {
    said.lines().find(|line| line.starts_with("link_type:"))?;
    said.lines().find_map(|line| line.strip_prefix("prog_id:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "link_type:\tcgroup\nlink_id:\t7\nprog_tag:\t00ff\nprog_id:\t32\ncgroup_id:\t1\nattach_type:\t10";

    #[test]
    fn a_link_names_its_program_and_nothing_else_does() {
        assert_eq!(program(LINK), Some(32));
        assert_eq!(program("prog_type:\t9\nprog_id:\t32"), None);
    }

    #[test]
    fn what_changes_is_noticed() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), format!("pos:\t0\nflags:\t02\n{LINK}\n")).expect("written");
        let links = Links(BTreeMap::from([(file.path().to_owned(), LINK.to_owned())]));
        assert!(links.check().is_ok());
        fs::write(file.path(), LINK.replace("cgroup_id:\t1", "cgroup_id:\t0")).expect("written");
        assert!(links.check().is_err());
    }
}
