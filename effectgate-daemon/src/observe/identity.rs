//! Which file is which, as the kernel programs see it: they go by inodes. What
//! `stat` says is what a file system wants programs to see, and on btrfs and
//! overlays neither what the kernel programs meet nor always one file's alone.

use std::{
    cell::Cell,
    collections::HashMap,
    ffi::OsStr,
    fmt,
    fs::File,
    os::{
        fd::{AsFd, AsRawFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    rc::Rc,
};

use anyhow::{Context, Result, ensure};
use aya::maps::{Array, Map, MapData};
use effectgate_common::{maps, wire};
use effectgate_core::input::{Device, FileId, FileObject, JobId};
use rustix::fs::{CWD, Mode, OFlags, openat};
use zerocopy::FromBytes;

use super::{attribute::device, proc};

/// How the kernel programs know a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The pointer to the inode, its own as long as the file is held open.
    pub inode: u64,
    pub ino: u64,
    pub dev: Device,
}

/// How often is asked until there is an answer.
const CALLS: usize = 3;

/// Asks the kernel programs. Only the engine's thread is answered.
pub struct Registrar {
    answer: Array<MapData, [u8; size_of::<maps::Registrar>()]>,
    asked: Cell<u64>,
}

impl fmt::Debug for Registrar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registrar").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Registrar {
    /// # Errors
    /// When the map is another one.
    pub fn new(map: Map) -> Result<Registrar> {
        Ok(Registrar { answer: Array::try_from(map)?, asked: Cell::new(0) })
    }

    /// Which file a descriptor leads to.
    ///
    /// # Errors
    /// When it is not open, or the kernel programs do not answer.
    pub fn identify(&self, file: impl AsFd) -> Result<Identity> {
        // The kernel may have skipped a program, as another task was preempted in it.
        for _ in 1..CALLS {
            if let Ok(found) = self.ask(&file) {
                return Ok(found);
            }
        }
        self.ask(&file)
    }

    fn ask(&self, file: &impl AsFd) -> Result<Identity> {
        let number = self.asked.get() + 1;
        self.asked.set(number);
        let fd = file.as_fd().as_raw_fd();
        // SAFETY: a descriptor that is open, and two numbers; the command takes
        // no argument.
        let asked = unsafe { libc::fcntl(fd, libc::F_GETFD, number) };
        ensure!(asked >= 0, "cannot ask for a file: {}", std::io::Error::last_os_error());
        let answer = self.answer.get(&0, 0)?;
        let answer = maps::Registrar::read_from_bytes(&answer).ok().context("another size")?;
        ensure!(answer.asked == number, "the kernel did not report a call: hooks do not fire");
        ensure!(answer.inode != 0, "the kernel programs cannot tell which file it is");
        Ok(Identity { inode: answer.inode, ino: answer.ino, dev: device(answer.dev) })
    }

    /// The same by its path, without following a link there, and the file itself,
    /// held open by its place only (`O_PATH`): nothing happens to it.
    ///
    /// # Errors
    /// When there is none, or the kernel programs do not answer.
    pub fn find(&self, path: impl rustix::path::Arg) -> Result<(File, Identity)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, path, flags, Mode::empty())?);
        let identity = self.identify(&file)?;
        Ok((file, identity))
    }
}

/// The files that mean something to a job. All are held open, so that no other
/// file gets their inodes.
#[derive(Clone, Debug, Default)]
pub struct Listed(HashMap<(Device, u64), Vec<u64>>);

impl Listed {
    /// Takes one up.
    pub fn add(&mut self, file: &Identity) -> FileId {
        let same = self.0.entry((file.dev, file.ino)).or_default();
        if !same.contains(&file.inode) {
            same.push(file.inode);
        }
        self.id(file)
    }

    /// What tells a file from those that are listed, and these from each other.
    fn id(&self, file: &Identity) -> FileId {
        let Identity { inode, ino, dev } = *file;
        let twin = self.0.get(&(dev, ino)).map_or(0, |same| {
            same.iter().position(|listed| *listed == inode).unwrap_or(same.len())
        });
        FileId { dev, ino, twin: twin as u32 }
    }

    /// The inode pointer of one that is listed.
    #[must_use]
    pub fn inode(&self, file: FileId) -> Option<u64> {
        self.0.get(&(file.dev, file.ino))?.get(file.twin as usize).copied()
    }
}

/// Says of the files in records which they are.
#[derive(Debug, Default)]
pub struct Identities {
    registrar: Option<Rc<Registrar>>,
    jobs: HashMap<JobId, Listed>,
}

impl Identities {
    /// Without a registrar, files that are known by their paths only stay so.
    #[must_use]
    pub fn new(registrar: Option<Rc<Registrar>>) -> Identities {
        Identities { registrar, jobs: HashMap::new() }
    }

    pub fn start(&mut self, job: JobId, listed: Listed) {
        self.jobs.insert(job, listed);
    }

    pub fn finish(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// Of a file that the kernel programs described.
    #[must_use]
    pub fn of(&self, job: JobId, wire: &wire::FileObject) -> FileId {
        self.id(job, &Identity { inode: wire.inode, ino: wire.ino, dev: device(wire.dev) })
    }

    /// Of a file of which only the path is known; it may be gone by now.
    pub fn find(&self, job: JobId, file: &mut FileObject) {
        let Some(registrar) = &self.registrar else { return };
        let Ok((there, identity)) = registrar.find(OsStr::from_bytes(&file.path)) else { return };
        FileId { dev: file.dev, ino: file.ino, twin: file.twin } = self.id(job, &identity);
        if let Ok(meta) = there.metadata() {
            file.mode = meta.mode();
            file.rdev = proc::device(meta.rdev());
        }
    }

    fn id(&self, job: JobId, file: &Identity) -> FileId {
        match self.jobs.get(&job) {
            Some(listed) => listed.id(file),
            None => FileId { dev: file.dev, ino: file.ino, twin: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_one_number_are_told_apart() {
        let file = |inode, ino| Identity { inode, ino, dev: Device { major: 0, minor: 44 } };
        let mut listed = Listed::default();
        let one = listed.add(&file(10, 256));
        assert_eq!((one.twin, listed.add(&file(10, 256))), (0, one), "the same again");
        let other = listed.add(&file(11, 256));
        assert_eq!((other.twin, listed.add(&file(12, 257)).twin), (1, 0));
        assert_eq!((listed.inode(one), listed.inode(other)), (Some(10), Some(11)));
        // What is not listed is none of those, and an only one has no twin.
        let stranger = listed.id(&file(13, 256));
        assert_eq!((stranger.twin, listed.inode(stranger)), (2, None));
        assert_eq!(listed.id(&file(13, 300)).twin, 0);
    }
}
