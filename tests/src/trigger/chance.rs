//! Many file effects, chosen by chance.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::file;
use crate::sys::{Args, done};

/// `chance SEED COUNT PLACE...`: so many effects on paths below these
/// directories. What does not succeed is as good as what does.
pub(crate) fn effects(args: &Args) -> io::Result<()> {
    let mut chance = Chance(args.number(0)?.unsigned_abs().into());
    let places: Vec<PathBuf> =
        (2..).map_while(|index| args.os(index).ok()).map(PathBuf::from).collect();
    for _ in 0..args.number(1)? {
        let (one, other) = (chance.path(&places), chance.path(&places));
        let _ = effect(chance.below(19), &one, &other);
    }
    Ok(())
}

/// A sequence of numbers that is always the same for a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % bound as u64).unwrap_or(0)
    }

    /// Names that meet again, links and ways back among them.
    fn path(&mut self, places: &[PathBuf]) -> PathBuf {
        const NAMES: [&str; 8] = ["p", "q", "file", "other", "link", "mounted", "..", "deep"];
        let place = self.below(places.len());
        let mut path = places.get(place).cloned().unwrap_or_default();
        for _ in 0..=self.below(3) {
            path.push(NAMES[self.below(NAMES.len())]);
        }
        path
    }
}

fn effect(which: usize, one: &Path, other: &Path) -> io::Result<()> {
    let to_write = || OpenOptions::new().write(true).open(one);
    match which {
        0 => File::open(one).map(drop),
        1 => to_write().map(drop),
        2 => OpenOptions::new().append(true).open(one)?.write_all(b"more"),
        3 => OpenOptions::new().write(true).create_new(true).open(one).map(drop),
        4 => OpenOptions::new().write(true).truncate(true).open(one).map(drop),
        5 => fs::create_dir(one),
        6 => fs::remove_dir(one),
        7 => fs::remove_file(one),
        8 => fs::rename(one, other),
        9 => fs::hard_link(one, other),
        10 => symlink(one, other),
        11 => to_write()?.set_len(3),
        12 => fs::set_permissions(one, fs::Permissions::from_mode(0o755)),
        13 => std::os::unix::fs::chown(one, None, Some(0)),
        14 => to_write()?.set_times(fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH)),
        15 => set_attribute(&File::open(one)?),
        16 => map_code(&File::open(one)?),
        17 => file::truncate(&c_path(one)?),
        _ => File::open(one)?.sync_all(),
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

fn set_attribute(file: &File) -> io::Result<()> {
    let (name, value) = (c"user.chance", b"1");
    // SAFETY: name and value live across the call.
    done(unsafe {
        libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    })
    .map(drop)
}

fn map_code(file: &File) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: a new mapping, which nothing refers to.
    let at = unsafe {
        let file = file.as_raw_fd();
        libc::mmap(std::ptr::null_mut(), 1, protection, libc::MAP_PRIVATE, file, 0)
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping of above.
    done(unsafe { libc::munmap(at, 1) }).map(drop)
}
