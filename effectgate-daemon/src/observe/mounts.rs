//! Where file systems are mounted, for objects whose path the kernel program
//! could only say inside their file system.

use std::{collections::HashMap, fs::File, io, os::fd::AsFd as _};

use effectgate_core::input::{Bytes, Device, FileObject};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::proc;

/// The mounts of this process's namespace, read again when they change.
#[derive(Debug, Default)]
pub struct Mounts {
    /// `/proc/self/mountinfo`, held open: it can be polled for changes.
    watched: Option<File>,
    by_device: HashMap<Device, Vec<Mount>>,
}

/// One mount of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub device: Device,
    /// The directory inside the file system that is mounted.
    pub root: Bytes,
    /// Where.
    pub point: Bytes,
}

impl Mounts {
    /// Makes the path of a file, which begins at its file system's root, one
    /// that begins at the root directory.
    pub fn complete(&mut self, file: &mut FileObject) {
        self.refresh();
        let mounts = self.by_device.get(&file.dev).map(Vec::as_slice).unwrap_or_default();
        match path(mounts, &file.path) {
            Some(path) => file.path = path,
            None => file.path_cut = true,
        }
    }

    fn refresh(&mut self) {
        if self.watched.as_ref().is_some_and(|file| !changed(file)) {
            return;
        }
        // Opened before it is read: what changes meanwhile is noticed the next time.
        self.watched = File::open(proc::MOUNTINFO).ok();
        self.by_device.clear();
        for mount in proc::mounts().unwrap_or_default() {
            self.by_device.entry(mount.device).or_default().push(mount);
        }
    }
}

/// proc_pid_mountinfo(5): an exceptional condition, once for each change.
fn changed(file: &File) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::PRI)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ready: Result<usize, io::Error> = poll(&mut polled, Some(&now)).map_err(Into::into);
    ready.map_or(true, |ready| ready > 0)
}

/// By the whole file system's mount, where there is one.
fn path(mounts: &[Mount], inside: &[u8]) -> Option<Bytes> {
    let whole = mounts.iter().filter(|mount| mount.root == b"/");
    whole.chain(mounts).find_map(|mount| {
        let root = mount.root.strip_suffix(b"/").unwrap_or(&mount.root);
        let below = inside.strip_prefix(root)?;
        if !below.is_empty() && !below.starts_with(b"/") {
            return None;
        }
        let below = if below == b"/" { b"" } else { below };
        let point = mount.point.strip_suffix(b"/").unwrap_or(&mount.point);
        let path = [point, below].concat();
        Some(if path.is_empty() { b"/".to_vec() } else { path })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn mount(root: &str, point: &str) -> Mount {
        Mount { device: Device::default(), root: root.into(), point: point.into() }
    }

    #[test]
    fn paths_of_every_mount() {
        let whole = [mount("/sub", "/srv/sub"), mount("/", "/mnt/disk")];
        let root = [mount("/", "/")];
        let part = [mount("/sub", "/srv/sub")];
        for (mounts, inside, expected) in [
            (&whole[..], "/sub/a", Some("/mnt/disk/sub/a")),
            (&whole, "/", Some("/mnt/disk")),
            (&root, "/a/b", Some("/a/b")),
            (&root, "/", Some("/")),
            (&part, "/sub/a", Some("/srv/sub/a")),
            (&part, "/sub", Some("/srv/sub")),
            (&part, "/subway", None),
            (&[], "/a", None),
        ] {
            let found = path(mounts, inside.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{mounts:?} {inside}");
        }
    }

    #[test]
    fn a_file_of_this_machine_is_found() {
        let mut mounts = Mounts::default();
        let meta = std::fs::metadata("/proc").expect("it is mounted");
        let dev = proc::device(meta.dev());
        let mut file = FileObject { path: b"/self".to_vec(), dev, ..FileObject::default() };
        mounts.complete(&mut file);
        assert_eq!((file.path.as_slice(), file.path_cut), (&b"/proc/self"[..], false));
        let mut stranger = FileObject { dev: Device { major: 4095, minor: 9 }, ..file };
        mounts.complete(&mut stranger);
        assert!(stranger.path_cut);
    }
}
