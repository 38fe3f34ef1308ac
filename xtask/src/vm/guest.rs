//! What the virtual machine holds: a small Debian-like root with busybox, and
//! compilers, interpreters and git for tests of real work; and, in an archive
//! that is copied into it at the start, the programs under test.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::kernel::Unpacked;
use super::tree::Tree;
use super::{Backend, languages, libraries, toolchain};
use crate::run::{output, which};

/// Loadable in Debian's cloud kernels, and used by tests: overlay mounts,
/// loop devices, FUSE, and links between network namespaces.
const MODULES: &[&str] = &["overlay", "loop", "fuse", "veth"];

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
                      worker:x:1000:1000:worker:/home/worker:/bin/sh\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n";
const GROUP: &str = "root:x:0:\ntty:x:5:\nworker:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost effectgate-vm\n::1 localhost\n";

/// What runs in the machine.
#[derive(Debug)]
pub struct Guest {
    /// Programs by the names that they have in the guest's `/usr/bin`.
    pub programs: Vec<(String, PathBuf)>,
    /// Those of the programs that are test binaries, in the order they run in.
    pub tests: Vec<String>,
    /// Parts of test names; empty for all tests.
    pub filters: Vec<String>,
    /// What the benchmark program is told, run by run, before the tests.
    pub measures: Vec<String>,
    /// Whether the evasions may come out otherwise than the committed table
    /// says.
    pub accepts: bool,
}

impl Guest {
    /// What the machine starts from: it mounts the root and copies what lies in
    /// `/given` into it. All test binaries run once for each backend.
    pub fn start(&self, kernel: &Unpacked, backends: &[Backend]) -> Result<Tree> {
        let mut start = Tree::default();
        for directory in ["/dev", "/root"] {
            start.directory(directory);
        }
        let busybox = which("busybox").context("no busybox; run `cargo xtask setup --for vm`")?;
        program(&mut start, "/bin/busybox", &busybox)?;
        modules(&mut start, kernel)?;
        start.bytes("/init", *include_bytes!("start.sh"), 0o755);
        start.bytes("/given/init", *include_bytes!("init.sh"), 0o755);
        start.bytes("/given/etc/effectgate-vm", self.plan(backends), 0o644);
        for (name, host) in &self.programs {
            start.host(format!("/given/usr/bin/{name}"), host)?;
        }
        Ok(start)
    }

    /// The root file system, the same for every kernel.
    pub fn root(&self) -> Result<Tree> {
        let mut root = skeleton();
        busybox(&mut root)?;
        for (_, host) in &self.programs {
            add_libraries(&mut root, host)?;
        }
        // busybox's are also a shell, and its packages are no real ones.
        for name in ["cat", "dpkg", "dpkg-deb", "dpkg-split", "ls", "tar"] {
            let path = Path::new("/usr/bin").join(name);
            program(&mut root, &path.to_string_lossy(), &path)?;
        }
        toolchain::add(&mut root)?;
        languages::add(&mut root)?;
        Ok(root)
    }

    /// Read by `init.sh`.
    fn plan(&self, backends: &[Backend]) -> String {
        let backends: Vec<_> = backends.iter().map(ToString::to_string).collect();
        let mut plan = format!(
            "backends='{}'\nbinaries='{}'\nmeasures='{}'\naccepts={}\nset --",
            backends.join(" "),
            self.tests.join(" "),
            self.measures.join(" "),
            u8::from(self.accepts)
        );
        for filter in &self.filters {
            let _ = write!(plan, " '{}'", filter.replace('\'', r"'\''"));
        }
        plan.push('\n');
        plan
    }
}

/// Adds a program of this machine with the libraries it needs.
pub fn program(root: &mut Tree, path: &str, host: &Path) -> Result<()> {
    root.host(path, host)?;
    add_libraries(root, host)
}

/// Adds the libraries that a program of this machine needs.
pub fn add_libraries(root: &mut Tree, host: &Path) -> Result<()> {
    for library in libraries::of(host)? {
        let path = merged(&library);
        if !root.contains(&path) {
            root.host(path, &library)?;
        }
    }
    Ok(())
}

/// Where a path of this machine is in the guest, whose `/bin`, `/sbin` and
/// `/lib*` are links into `/usr`, as on Debian.
pub fn merged(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    match ["/bin/", "/sbin/", "/lib/", "/lib64/"].iter().find(|top| text.starts_with(**top)) {
        Some(_) => PathBuf::from(format!("/usr{text}")),
        None => path.to_owned(),
    }
}

fn skeleton() -> Tree {
    let mut root = Tree::default();
    for directory in [
        "/dev",
        "/etc",
        "/home/worker",
        "/mnt",
        "/proc",
        "/root",
        "/run",
        "/srv",
        "/sys",
        "/tmp",
        "/usr/bin",
        "/usr/lib",
        "/usr/lib64",
        "/usr/sbin",
        "/var/tmp",
    ] {
        root.directory(directory);
    }
    for top in ["bin", "sbin", "lib", "lib64"] {
        root.link(top, format!("usr/{top}"));
    }
    root.bytes("/etc/passwd", PASSWD, 0o644);
    root.bytes("/etc/shadow", "root:!:::::::\n", 0o600);
    root.bytes("/etc/group", GROUP, 0o644);
    root.bytes("/etc/hosts", HOSTS, 0o644);
    root.bytes("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n", 0o644);
    root.link("/etc/mtab", "/proc/self/mounts");
    root
}

/// busybox under each of its names. Programs added later replace the names.
fn busybox(root: &mut Tree) -> Result<()> {
    let host = which("busybox").context("no busybox; run `cargo xtask setup --for vm`")?;
    program(root, "/usr/bin/busybox", &host)?;
    for applet in output(Command::new(&host).arg("--list-full"))?.lines() {
        let path = merged(&Path::new("/").join(applet));
        // Go's linker has this name too, and is to be told from a shell.
        if path.file_name().is_some_and(|name| name != "busybox" && name != "link") {
            root.link(path, "/usr/bin/busybox");
        }
    }
    Ok(())
}

/// Plain modules, because busybox decompresses none.
fn modules(root: &mut Tree, kernel: &Unpacked) -> Result<()> {
    for module in MODULES {
        let Some(host) = kernel.module(module)? else { continue };
        let path = format!("/modules/{module}.ko");
        if host.extension().is_some_and(|extension| extension == "xz") {
            let xz = Command::new("xz").args(["--decompress", "--stdout"]).arg(&host).output();
            let xz = xz.context("cannot start `xz`; run `cargo xtask setup --for vm`")?;
            anyhow::ensure!(xz.status.success(), "xz cannot read {}", host.display());
            root.bytes(path, xz.stdout, 0o644);
        } else {
            root.host(path, &host)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_land_where_the_guests_links_lead() {
        let merged = |path| merged(Path::new(path)).display().to_string();
        assert_eq!(merged("/lib64/ld-linux-x86-64.so.2"), "/usr/lib64/ld-linux-x86-64.so.2");
        assert_eq!(merged("/usr/bin/cc"), "/usr/bin/cc");
        assert_eq!(merged("/library/x"), "/library/x");
    }

    #[test]
    fn filters_reach_the_guest_as_they_were_typed() {
        let guest = Guest {
            programs: Vec::new(),
            tests: vec!["kernel".into(), "real".into()],
            filters: vec!["file_".into(), "it's".into()],
            measures: vec!["verified".into()],
            accepts: false,
        };
        let expected = "backends='lsm tracepoint'\nbinaries='kernel real'\nmeasures='verified'\n\
                        accepts=0\n\
                        set -- 'file_' 'it'\\''s'\n";
        assert_eq!(guest.plan(&[Backend::Lsm, Backend::TracePoint]), expected);
    }
}
