//! Whether an effect costs more under a longer policy: the same operations
//! under 1, 100 and 10,000 roots, programs and hosts, the last of each used.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use effectgate_tests::gate;
use effectgate_tests::manifest::Manifest;
use serde_json::json;

use crate::house::{House, Place};
use crate::operations::{medians, said, words};

const SIZES: [usize; 3] = [1, 100, 10_000];
const OPERATIONS: [&str; 3] = ["open", "exec", "connect"];

/// As many files as the daemon wants to hold open.
const RAISED: u64 = 65_536;
/// Files that it holds open beside roots and programs, and more.
const OTHERS: usize = 500;

/// Where listed programs are looked for.
const PROGRAMS: &str = "/usr/local/sbin";

pub fn main(millis: usize) -> Result<()> {
    hide_programs().with_context(|| format!("cannot mount over {PROGRAMS}"))?;
    println!(
        "nanoseconds of a processor for one operation inside a job, by the length of its policy; backend {}",
        gate::backend()
    );
    println!(
        "{:<28}{:>12}{:>12}{:>14}{:>16}",
        "roots, programs, hosts", "open", "fork+exec", "connect", "start in ms"
    );
    for each in SIZES {
        let size = Size::of(each)?;
        let house = House::of(place(&size)?);
        let words = words(&house.place, millis, &OPERATIONS)?;
        let start = Instant::now();
        let (cgroup, id) = house.start();
        let started = start.elapsed();
        house.finish(&id)?;
        drop(cgroup);
        let (printed, verdict) = house.inside(&words)?;
        let found = medians(&printed)?;
        println!(
            "{:<28}{:>12.0}{:>12.0}{:>14.0}{:>16.0}   {}",
            format!("{}, {}, {}", size.roots, size.programs, size.hosts),
            found[0],
            found[1],
            found[2],
            started.as_secs_f64() * 1000.0,
            said(&verdict)
        );
    }
    println!();
    Ok(())
}

/// A policy's entries: roots and programs are held open by the daemon.
struct Size {
    roots: usize,
    programs: usize,
    hosts: usize,
}

impl Size {
    /// So many of each, or as many programs as may be held open beside the roots.
    fn of(each: usize) -> Result<Size> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure lives across the call.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
            return Err(io::Error::last_os_error().into());
        }
        // The daemon asks for more, and gets it unless a container says otherwise.
        let more = libc::rlimit { rlim_cur: RAISED, rlim_max: RAISED };
        // SAFETY: the structure lives across the call.
        let is_raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const more) } == 0;
        let room = usize::try_from(if is_raised { RAISED } else { limit.rlim_max })?;
        let programs = room.saturating_sub(each + OTHERS).clamp(1, each);
        Ok(Size { roots: each, programs, hosts: each })
    }
}

/// A place under such a manifest.
fn place(size: &Size) -> Result<Place> {
    let program = |index: usize| PathBuf::from(format!("{PROGRAMS}/tool-{index}x"));
    let root = |index: usize| format!("directory/part-{index}");
    let place = Place::new(program(size.programs - 1), &root(size.roots - 1))?;
    for index in 0..size.roots {
        fs::create_dir_all(place.scene.root().join(root(index)))?;
    }
    for index in 0..size.programs - 1 {
        fs::write(program(index), index.to_string())?;
        fs::set_permissions(program(index), fs::Permissions::from_mode(0o755))?;
    }
    let mut hosts: Vec<String> =
        (1..size.hosts).map(|index| format!("10.0.{}.{}:443", index / 256, index % 256)).collect();
    hosts.push(place.host()?);
    let names: Vec<_> = (0..size.programs).map(|index| format!("tool-{index}x")).collect();
    let roots: Vec<_> = (0..size.roots).map(root).collect();
    let manifest = Manifest::new()
        .set("extends", json!(["base-linux"]))
        .set("write_roots", json!(roots))
        .set("binaries", json!(names))
        .set("network", json!({ "mode": "allowlist", "hosts": hosts }))
        .without("exec_roots");
    place.scene.write_manifest(&manifest.text());
    Ok(place)
}

/// Makes [`PROGRAMS`] an empty directory, for this process and its children.
fn hide_programs() -> io::Result<()> {
    fs::create_dir_all(PROGRAMS)?;
    let done = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let (none, kind) = (std::ptr::null(), c"tmpfs".as_ptr());
    // SAFETY: all strings are static.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        done(libc::mount(none, c"/".as_ptr(), none, private, none.cast()))?;
        done(libc::mount(kind, c"/usr/local/sbin".as_ptr(), kind, 0, none.cast()))
    }
}
