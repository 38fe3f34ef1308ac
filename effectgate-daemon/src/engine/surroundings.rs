//! What is found out about a job's surroundings before the engine sees it: a
//! resolver or a large tree may take its time, which is the caller's.

mod linked;
mod programs;

use std::{
    collections::HashMap,
    fs::File,
    net::{IpAddr, ToSocketAddrs},
    os::unix::{ffi::OsStrExt, fs::FileTypeExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use effectgate_core::{
    input::{Coverage, Root},
    judge,
    policy::{Kind, Policy, Rights, RootRule},
    secret,
};

use rustix::fs::{Mode, OFlags};

use super::JobSpec;
use crate::observe::{links, proc};

pub use programs::Program;

/// What the engine is told.
#[derive(Debug)]
pub struct Surroundings {
    pub roots: Vec<Wanted>,
    /// Credentials below directories that a profile lets be read: roots without
    /// a right, for a kernel program goes by inodes and not by names.
    pub private: Vec<PathBuf>,
    /// Files below the roots that may be written which have another name
    /// elsewhere.
    pub linked: Vec<PathBuf>,
    pub programs: Vec<Program>,
    pub sockets: Vec<Socket>,
    /// What each host of the policy resolves to now.
    pub hosts: Vec<Vec<IpAddr>>,
    /// Symbolic links below the roots, for a backend that knows names only.
    pub links: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A root that a job is to have.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Resolved.
    pub path: PathBuf,
    /// Index in the policy's roots; `None` for the job's `TMPDIR`.
    pub entry: Option<usize>,
    /// With those of the roots that it lies below.
    pub rights: Rights,
    /// Without it the job is refused.
    pub needed: bool,
    /// A file or directory that the kernel makes up, only to be read.
    pub of_kernel: bool,
}

/// A Unix socket that a job may speak to.
#[derive(Debug)]
pub struct Socket {
    /// Index in the policy's Unix sockets.
    pub entry: usize,
    /// Resolved.
    pub path: PathBuf,
    /// Held open by its place only (`O_PATH`).
    pub file: File,
}

/// Looks around. `file`: how well the backend knows files.
///
/// # Errors
/// When a root or a program is not to be had; the message says which and why.
pub fn look(spec: &JobSpec, file: Coverage) -> Result<Surroundings> {
    let roots = roots(spec)?;
    let written = roots.iter().filter(|root| root.rights.write);
    let written: Vec<PathBuf> = written.map(|root| root.path.clone()).collect();
    let links = if file == Coverage::Argument { links::below(&written) } else { Vec::new() };
    let programs = programs::find(&spec.policy, &roots)?;
    let (hosts, sockets) = (resolve(&spec.policy), sockets(&spec.policy));
    let linked = linked::elsewhere(&written);
    let private = private(spec, &roots);
    Ok(Surroundings { private, linked, programs, sockets, hosts, links, roots })
}

/// Every root with what is mounted below it now.
fn roots(spec: &JobSpec) -> Result<Vec<Wanted>> {
    let policy = &spec.policy;
    let mut roots = Vec::with_capacity(policy.roots.entries.len() + 1);
    for (index, entry) in policy.roots.entries.iter().enumerate() {
        let found = root(spec, entry).with_context(|| cited(policy, entry))?;
        // What the kernel makes up may be gone again at any time.
        let needed = !judge::is_kernel_file(entry);
        roots.extend(found.map(|path| (path, Some(index), needed)));
    }
    if let Some(dir) = &spec.tmpdir {
        let real = dir.canonicalize().context("the job's temporary directory")?;
        roots.push((real, None, true));
    }
    let mut mounted = Vec::new();
    let mounts = mounts_by_root(&roots)?;
    for (path, entry, _) in &roots {
        let below = mounts.get(path).into_iter().flatten();
        mounted.extend(below.map(|mount| (mount.clone(), *entry, false)));
    }
    roots.extend(mounted);
    let mut granted: Vec<Root> = roots
        .iter()
        .map(|(path, entry, _)| Root {
            id: 0,
            path: path.as_os_str().as_bytes().to_vec(),
            entry: *entry,
            rights: Rights::default(),
        })
        .collect();
    judge::grant_rights(policy, &mut granted);
    let rights = granted.into_iter().map(|root| root.rights);
    let wanted = roots.into_iter().zip(rights);
    Ok(wanted
        .map(|((path, entry, needed), rights)| Wanted {
            of_kernel: entry
                .and_then(|index| policy.roots.entries.get(index))
                .is_some_and(judge::is_kernel_file),
            path,
            entry,
            rights,
            needed,
        })
        .collect())
}

/// Where a root of the policy is. `None` for one that a profile names and this
/// machine does not have, and for a process's own files: those are another
/// process's in the observer's eyes.
fn root(spec: &JobSpec, entry: &RootRule) -> Result<Option<PathBuf>> {
    if judge::is_kernel_file(entry) {
        let real = Path::new(&entry.path).canonicalize().ok();
        return Ok(real.filter(|real| !secret::is_of_another_process(&real.to_string_lossy())));
    }
    let Some(place) = entry.place(spec.workspace.as_deref(), spec.home.as_deref()) else {
        ensure!(entry.profile, "root {}: relative to a workspace, and there is none", entry.path);
        return Ok(None);
    };
    let real = match place.canonicalize() {
        Ok(real) => real,
        Err(_) if entry.profile => return Ok(None),
        Err(error) => {
            let message = format!("root {}: create it before the job, or take it out", entry.path);
            return Err(error).context(message);
        }
    };
    match usable(spec, entry, &real) {
        Ok(()) => Ok(Some(real)),
        Err(error) if entry.profile => {
            tracing::debug!("{}: {error:#}", entry.path);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn private(spec: &JobSpec, roots: &[Wanted]) -> Vec<PathBuf> {
    if spec.policy.roots.reads.is_none() {
        return Vec::new();
    }
    let home = spec.home.as_ref().map(|home| home.to_string_lossy());
    let places = secret::credential_places(home.as_deref()).map(PathBuf::from);
    let mut there: Vec<PathBuf> = places.filter_map(|place| place.canonicalize().ok()).collect();
    let profile = |root: &Wanted| {
        let entry = root.entry.and_then(|index| spec.policy.roots.entries.get(index));
        entry.is_some_and(|entry| entry.profile)
    };
    // Roots that the policy itself names are its own word on what lies there.
    there.retain(|place| {
        let around = |root: &&Wanted| place.starts_with(&root.path);
        roots.iter().any(|root| around(&root))
            && roots.iter().filter(around).all(profile)
            && !roots.iter().any(|root| root.path.starts_with(place))
    });
    there.sort();
    there.dedup();
    there
}

/// File systems whose files are the kernel's own state (`linux/magic.h`): what
/// lies there is no root.
const PSEUDO: [u64; 25] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6367_7270, // cgroup2
    0x0027_e0eb, // cgroup
    0x6264_6576, // bdev
    0x1cd1,      // devpts
    0xde5e_81e4, // efivarfs
    0x6265_6570, // configfs
    0x4249_4e4d, // binfmt_misc
    0x6573_5543, // fusectl
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x5a3c_69f0, // apparmorfs
    0x6165_676c, // pstore
    0x1980_0202, // mqueue
    0x6759_6969, // rpc_pipefs
    0x6e66_7364, // nfsd
    0x0765_5821, // resctrl
    0xabba_1974, // xenfs
    0x9fa2,      // usbdevfs
    0x6c6f_6f70, // binderfs
];

/// Whether a file system, by its type, is one of those.
pub(super) fn is_pseudo(kind: u64) -> bool {
    PSEUDO.contains(&kind)
}

fn usable(spec: &JobSpec, entry: &RootRule, real: &Path) -> Result<()> {
    let shown = || format!("root {}", entry.path);
    ensure!(real != Path::new("/"), "{} is the whole file system", shown());
    let meta = real.metadata().with_context(shown)?;
    if entry.rights.write {
        ensure!(meta.is_dir(), "{} is no directory", shown());
    }
    ensure!(meta.is_dir() || meta.is_file(), "{} is neither directory nor file", shown());
    let kind = rustix::fs::statfs(real)?.f_type as u64;
    ensure!(
        !is_pseudo(kind),
        "{} lies on a file system of the kernel's own (type {kind:#x})",
        shown()
    );
    if spec.policy.kind == Kind::Envelope || entry.profile {
        return Ok(());
    }
    if let Some(workspace) = spec.workspace.as_deref().filter(|_| !entry.path.starts_with('/'))
        && !real.starts_with(workspace)
    {
        bail!(
            "{} leads to {}, outside the workspace {}",
            shown(),
            real.display(),
            workspace.display()
        );
    }
    if entry.key.name == "mounted_secrets" {
        ensure!(meta.is_file(), "{} is no file: list every secret by its file", shown());
        return Ok(());
    }
    let text = real.to_string_lossy();
    ensure!(
        !secret::is_credential_path(real.as_os_str().as_bytes())
            && !secret::is_home(&text)
            && !secret::holds_credentials(&text),
        "{} leads to {}, where credentials are kept: list the file in mounted_secrets, if the job must read it",
        shown(),
        real.display()
    );
    Ok(())
}

fn cited(policy: &Policy, entry: &RootRule) -> String {
    match entry.key.line {
        0 => entry.key.name.to_owned(),
        line => format!("{}:{line}: {}", policy.file, entry.key.name),
    }
}

/// What is mounted strictly below each root.
fn mounts_by_root(
    roots: &[(PathBuf, Option<usize>, bool)],
) -> Result<HashMap<PathBuf, Vec<PathBuf>>> {
    let mut below: HashMap<PathBuf, Vec<PathBuf>> =
        roots.iter().map(|(path, ..)| (path.clone(), Vec::new())).collect();
    for mount in proc::mounts_below(Path::new("/"))? {
        for above in mount.ancestors().skip(1) {
            if let Some(mounts) = below.get_mut(above) {
                mounts.push(mount.clone());
            }
        }
    }
    Ok(below)
}

/// The files that the policy's Unix sockets are bound to now.
fn sockets(policy: &Policy) -> Vec<Socket> {
    let entries = policy.unix_sockets.entries().iter().enumerate();
    let found = entries.filter_map(|(entry, listed)| match socket(Path::new(&listed.value)) {
        Ok((path, file)) => Some(Socket { entry, path, file }),
        Err(error) => {
            tracing::warn!("the socket {} allows nothing: {error:#}", listed.value);
            None
        }
    });
    found.collect()
}

fn socket(path: &Path) -> Result<(PathBuf, File)> {
    let real = path.canonicalize()?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&real, flags, Mode::empty())?);
    ensure!(file.metadata()?.file_type().is_socket(), "it is no socket");
    Ok((real, file))
}

/// What each host of a policy resolves to now.
fn resolve(policy: &Policy) -> Vec<Vec<IpAddr>> {
    let mut hosts = vec![Vec::new(); policy.hosts.entries().len()];
    for (index, name) in policy.names_to_resolve() {
        match (name, 0).to_socket_addrs() {
            Ok(addresses) => hosts[index].extend(addresses.map(|address| address.ip())),
            Err(error) => tracing::warn!("{name} does not resolve, so it allows nothing: {error}"),
        }
        hosts[index].dedup();
    }
    hosts
}
