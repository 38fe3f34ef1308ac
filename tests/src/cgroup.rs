//! The cgroup v2 hierarchy, wherever it is mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Its mount point.
///
/// # Panics
/// When it is mounted nowhere.
#[must_use]
pub fn mount() -> PathBuf {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
    table
        .lines()
        .find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            after.starts_with("cgroup2 ").then(|| before.split(' ').nth(4).map(PathBuf::from))?
        })
        .expect("cgroup v2 is mounted nowhere")
}

/// A cgroup that this test made; removed at the end, with what is in it.
#[derive(Debug)]
pub struct Cgroup(PathBuf);

impl Default for Cgroup {
    fn default() -> Self {
        Self::new()
    }
}

impl Cgroup {
    /// # Panics
    /// When it cannot be made, as when the test does not run as root.
    #[must_use]
    pub fn new() -> Cgroup {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = mount().join(format!("effectgate-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Cgroup(path)
    }

    /// One below this one, to be dropped before it.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn below(&self, name: &str) -> Cgroup {
        let path = self.0.join(name);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Cgroup(path)
    }

    /// Whether no process is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|text| text.is_empty())
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Moves a process into it.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
            .unwrap_or_else(|error| panic!("{}: {error}", self.0.display()));
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        let path = self.0.clone();
        let _ = std::panic::catch_unwind(|| {
            crate::wait::until("the cgroup is empty", || fs::remove_dir(&path).ok());
        });
    }
}
