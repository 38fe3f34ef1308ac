//! What running a command takes.

use std::mem::MaybeUninit;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// What running a command took.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub wall: Duration,
    /// User and system time.
    pub processor: Duration,
    /// The largest resident size, KiB.
    pub peak: i64,
}

/// Runs a command to its end; what it prints is thrown away.
///
/// # Errors
/// When it cannot be started, or does not end well.
pub fn measure(command: &mut Command) -> Result<Measured> {
    let start = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    // SAFETY: both places are valid for writing, and the child is not waited
    // for anywhere else; a zeroed `rusage` is one.
    let (ended, usage) = unsafe {
        let ended = libc::wait4(child.id().cast_signed(), &raw mut status, 0, usage.as_mut_ptr());
        (ended, usage.assume_init())
    };
    let wall = start.elapsed();
    ensure!(ended > 0 && status == 0, "it ended with status {status:#x}");
    let time = |value: libc::timeval| {
        Duration::new(value.tv_sec.cast_unsigned(), value.tv_usec as u32 * 1000)
    };
    let processor = time(usage.ru_utime) + time(usage.ru_stime);
    Ok(Measured { wall, processor, peak: usage.ru_maxrss })
}

/// The middle one; zero of none.
pub fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
