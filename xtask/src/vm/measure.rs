//! The benchmark on the pinned kernels, in machines whose clocks count
//! instructions: the same numbers wherever it runs.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};

use super::guest::Guest;
use super::kernel::{self, Unpacked};
use super::pins::Pins;
use super::qemu::{self, Clock, End, Limits, Machine, Port};
use super::{Backend, cpio, image};
use crate::repo::Repo;

/// Loading the programs prints nothing, and takes such a machine minutes.
const LIMITS: Limits =
    Limits { silence: Duration::from_secs(900), total: Duration::from_secs(60 * 60) };

/// Runs it on each of the kernels and prints what it says.
pub fn main(repo: &Repo, kernels: &[String], backends: &[Backend]) -> Result<()> {
    let pins = Pins::read()?;
    let guest = Guest {
        programs: vec![
            ("effectgate".to_owned(), repo.effectgate()),
            ("trigger".to_owned(), repo.trigger()),
            ("bench".to_owned(), repo.bench()),
        ],
        tests: Vec::new(),
        filters: Vec::new(),
        measures: vec!["guest".to_owned()],
        accepts: false,
    };
    let root = image::of(repo, &guest.root()?)?;
    for pinned in pins.select(kernels)? {
        let kernel = kernel::fetch(repo, pinned)?;
        println!("== {}: 1 ns is one instruction", kernel.name);
        one(repo, &kernel, &guest, backends, &root)?;
    }
    Ok(())
}

fn one(
    repo: &Repo,
    kernel: &Unpacked,
    guest: &Guest,
    backends: &[Backend],
    root: &std::path::Path,
) -> Result<()> {
    let directory = repo.target.join("vm").join(format!("{}-bench", kernel.name));
    fs::create_dir_all(&directory)?;
    let (initrd, log) = (directory.join("initramfs.cpio"), directory.join("serial.log"));
    cpio::write(&guest.start(kernel, backends)?, &initrd)?;
    let machine = Machine {
        kernel: &kernel.image()?,
        initrd: &initrd,
        root,
        log: &log,
        clock: Clock::Instructions,
    };
    let mut ends = Vec::new();
    let end = qemu::boot(&machine, LIMITS, |port, line| {
        if port == Port::Results {
            match line.strip_prefix("@@effectgate ") {
                Some(mark) => ends.extend(mark.strip_prefix("measured ").map(str::to_owned)),
                None => println!("{line}"),
            }
        }
    })?;
    let _ = fs::remove_file(&initrd);
    let failed = ends.iter().any(|end| !end.ends_with(" 0"));
    if end != End::Itself || failed || ends.len() != backends.len() {
        bail!("the benchmark did not end well ({end:?}, {ends:?}); see {}", log.display());
    }
    Ok(())
}
