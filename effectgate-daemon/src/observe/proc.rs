//! What `/proc` and the file system say about processes, mounts and files.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use effectgate_core::input::{Bytes, Device, Known};
use rustix::{
    fs::{AtFlags, CWD, StatxFlags, statx},
    path::Arg,
};

use super::mounts::Mount;

pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Nanoseconds of a clock tick (USER_HZ is 100 on x86), in which `/proc` says
/// when a process started.
pub const TICK: u64 = 10_000_000;

/// A process as `/proc` knows it; mostly empty when it is gone.
#[must_use]
pub fn known(pid: u32) -> Known {
    let dir = PathBuf::from(format!("/proc/{pid}"));
    let stat = fs::read(dir.join("stat")).unwrap_or_default();
    // comm may hold spaces and parentheses; what follows the last one does not.
    let rest = stat.iter().rposition(|byte| *byte == b')').map_or(&b""[..], |at| &stat[at + 1..]);
    let rest = String::from_utf8_lossy(rest);
    let field = |index: usize| rest.split_whitespace().nth(index).and_then(|f| f.parse().ok());
    Known {
        pid,
        ppid: field(1).unwrap_or(0) as u32,
        // Field 22 of proc(5).
        start: field(19).unwrap_or(0u64) * TICK,
        exe: fs::read_link(dir.join("exe"))
            .map(|path| path.as_os_str().as_bytes().to_vec())
            .unwrap_or_default(),
        comm: fs::read(dir.join("comm"))
            .map(|comm| comm.trim_ascii_end().to_vec())
            .unwrap_or_default(),
    }
}

/// An environment that is longer is not read, bytes: an exec takes no longer one
/// (`MAX_ARG_STRLEN` and a quarter of the stack), but a process can say that its
/// own is all of its memory (`PR_SET_MM`).
const LONGEST_ENVIRONMENT: u64 = 8 << 20;

/// Names of a process's environment keys at its last exec, as they stand in
/// its own memory, where it can change them. `None` when they cannot be read.
#[must_use]
pub fn env_names(pid: u32) -> Option<Vec<Bytes>> {
    let dir = PathBuf::from(format!("/proc/{pid}"));
    let mut block = Vec::new();
    let environ = File::open(dir.join("environ")).ok()?;
    environ.take(LONGEST_ENVIRONMENT + 1).read_to_end(&mut block).ok()?;
    if block.len() as u64 > LONGEST_ENVIRONMENT {
        return None;
    }
    // Of a process that has ended, but was not waited for, it is empty too.
    if block.is_empty() && fs::read_link(dir.join("exe")).is_err() {
        return None;
    }
    let variables = block.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
    let name = |variable: &[u8]| variable.split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
    Some(variables.filter_map(name).collect())
}

/// Names of the environment keys that a process held when it was `then`, as
/// far as it is still that: `None` when it ended or runs another program.
#[must_use]
pub fn env_names_of(then: &Known) -> Option<Vec<Bytes>> {
    let names = env_names(then.pid)?;
    // Compared after the names were read. An exec of the same file in between
    // goes unnoticed.
    let now = known(then.pid);
    (now.start == then.start / TICK * TICK && now.exe == then.exe).then_some(names)
}

/// A path that a process gave, put below its working directory when it is
/// relative and the process still there.
#[must_use]
pub fn absolute(pid: u32, path: &[u8]) -> Bytes {
    if path.is_empty() || path.starts_with(b"/") {
        return path.to_vec();
    }
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(cwd) => cwd.join(std::ffi::OsStr::from_bytes(path)).into_os_string().into_vec(),
        Err(_) => path.to_vec(),
    }
}

/// Threads of a process; none when it is gone.
///
/// # Errors
/// When they cannot be read although it is there.
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(format!("/proc/{pid}/task")) {
        Err(error) if gone(&error) => return Ok(Vec::new()),
        other => other?,
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter_map(|entry| entry.map(number).transpose()).collect()
}

/// The network namespace of a thread, with its number; `None` when it is gone.
///
/// # Errors
/// When it cannot be opened although the thread is there.
pub fn network(tid: u32) -> io::Result<Option<(u64, File)>> {
    match File::open(format!("/proc/{tid}/ns/net")) {
        Err(error) if gone(&error) => Ok(None),
        opened => {
            let namespace = opened?;
            Ok(Some((namespace.metadata()?.ino(), namespace)))
        }
    }
}

/// The process that a thread belongs to; `None` when it is gone.
#[must_use]
pub fn process_of(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    // A zombie has ended already and waits for its parent only.
    let value = |key| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    if value("State:")?.starts_with('Z') {
        return None;
    }
    value("Tgid:")?.parse().ok()
}

/// Kills a process; one that is gone is no error.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// What reading about a process or cgroup says when it has ended meanwhile.
fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(libc::ESRCH)
        || error.raw_os_error() == Some(libc::ENODEV)
}

/// The device number of `stat(2)`.
#[must_use]
pub fn device(dev: u64) -> Device {
    Device { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
}

/// The id of the mount that a path lies on (kernel 5.8).
#[must_use]
pub fn mount_of(path: impl Arg) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(CWD, path, flags, StatxFlags::MNT_ID).ok().map(|stat| stat.stx_mnt_id)
}

/// Where cgroup v2 is mounted, wherever that is.
///
/// # Errors
/// When it is mounted nowhere.
pub fn cgroup2() -> Result<PathBuf> {
    let mounts = fs::read_to_string(MOUNTINFO).context("cannot read mountinfo")?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        if kind.starts_with("cgroup2 ") { unescape(place.split(' ').nth(4)?) } else { None }
    })
    .map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(&path)))
    .context("cgroup v2 is mounted nowhere; mount it with `mount -t cgroup2 none /sys/fs/cgroup` or boot with systemd.unified_cgroup_hierarchy=1")
}

/// This process's cgroup v2, below its mount.
///
/// # Errors
/// When `/proc/self/cgroup` has no v2 line.
pub fn own_cgroup() -> Result<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").context("cannot read /proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    let path = path.context("this process is in no cgroup v2")?;
    Ok(PathBuf::from(path.trim_start_matches('/')))
}

/// The id that the kernel knows a cgroup directory by: its inode number.
///
/// # Errors
/// When there is no such directory.
pub fn cgroup_id(path: &Path) -> io::Result<u64> {
    fs::metadata(path).map(|meta| meta.ino())
}

/// Every mount that this process sees, in the order in which they were made.
///
/// # Errors
/// When mountinfo cannot be read.
pub fn mounts() -> io::Result<Vec<Mount>> {
    let mounts = fs::read(MOUNTINFO)?;
    Ok(String::from_utf8_lossy(&mounts).lines().filter_map(mount).collect())
}

/// `36 35 98:0 /root /point …` (proc_pid_mountinfo(5))
fn mount(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ').skip(2);
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = Device { major: major.parse().ok()?, minor: minor.parse().ok()? };
    Some(Mount { device, root: unescape(fields.next()?)?, point: unescape(fields.next()?)? })
}

/// Mount points strictly below `root`.
///
/// # Errors
/// When mountinfo cannot be read.
pub fn mounts_below(root: &Path) -> Result<Vec<PathBuf>> {
    let mounts = mounts().context("cannot read mountinfo")?;
    Ok(mounts
        .into_iter()
        .map(|mount| PathBuf::from(std::ffi::OsString::from_vec(mount.point)))
        .filter(|path| path != root && path.starts_with(root))
        .collect())
}

/// Undoes the octal escapes of mountinfo.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'\\' && after.len() >= 3 {
            let octal = std::str::from_utf8(&after[..3]).ok()?;
            bytes.push(u8::from_str_radix(octal, 8).ok()?);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(bytes)
}

/// Every process in a cgroup and in the cgroups below it.
///
/// # Errors
/// When the directory cannot be read.
pub fn members(cgroup: &Path) -> io::Result<Vec<u32>> {
    let mut pids: Vec<u32> = fs::read_to_string(cgroup.join("cgroup.procs"))?
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    for entry in fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            match members(&entry.path()) {
                Err(error) if gone(&error) => {}
                below => pids.extend(below?),
            }
        }
    }
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let own = known(std::process::id());
        assert_eq!(own.ppid, std::os::unix::process::parent_id());
        assert!(own.start > 0);
        assert!(!own.exe.is_empty());
        let threads = threads(std::process::id()).expect("this process is there");
        assert!(threads.contains(&std::process::id()));
        assert_eq!(process_of(threads[threads.len() - 1]), Some(std::process::id()));
    }

    #[test]
    fn keys_are_those_of_the_very_process() {
        let own = known(std::process::id());
        let names = env_names_of(&own).expect("this process is there");
        assert!(names.contains(&b"PATH".to_vec()), "{names:?}");
        assert_eq!(env_names_of(&Known { start: own.start + 5, ..own.clone() }), Some(names));
        assert_eq!(env_names_of(&Known { start: own.start + TICK, ..own.clone() }), None);
        assert_eq!(env_names_of(&Known { exe: b"/bin/other".to_vec(), ..own }), None);
        let mut child = std::process::Command::new("true").spawn().expect("true is there");
        let pid = child.id();
        // Ended, but not waited for: what is left of it has no environment.
        let status = rustix::process::waitid(
            rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        );
        status.expect("it is our child");
        assert_eq!(env_names(pid), None);
        child.wait().expect("it ended");
        assert_eq!(env_names(pid), None);
    }

    #[test]
    fn octal_escapes_are_undone() {
        assert_eq!(unescape("/a\\040b\\134").as_deref(), Some(&b"/a b\\"[..]));
        assert_eq!(unescape("/x\\9"), Some(b"/x\\9".to_vec()));
    }
}
