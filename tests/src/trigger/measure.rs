//! One effect again and again, for the benchmark: prints how often it happened
//! in a second, and what one took of a processor, in nanoseconds (the median over
//! batches). Whatever else runs, the observer too, counts for the first only.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::sys::{Args, descriptor, done, invalid};
use crate::{file, net, process};

/// Calls between two looks at the clock.
const BATCH: u32 = 16;
/// Of a few batches the median is nobody's.
const BATCHES: usize = 9;

/// `measure WHAT MILLISECONDS ARG`
pub(crate) fn measure(args: &Args) -> io::Result<()> {
    let time = Duration::from_millis(args.number(1)?.unsigned_abs().into());
    let measured = match args.text(0)? {
        "open" => repeat(time, || open_read_close(args.c(2)?))?,
        "write" => {
            let fd = open(args.c(2)?, libc::O_WRONLY)?;
            repeat(time, || write_at_start(&fd))?
        }
        "create" => {
            repeat(time, || file::create(args.c(2)?).and_then(|()| file::unlink(args.c(2)?)))?
        }
        "connect" => {
            let address = args.address(2)?;
            // UDP: TCP would measure how soon the peer accepts.
            repeat(time, || net::connect_udp(address))?
        }
        "exec" => repeat(time, process::run_itself)?,
        "stat" => repeat(time, || stat(args.c(2)?))?,
        _ => return Err(invalid()),
    };
    process::print(format!("{:.0} {:.1}\n", measured.per_second, measured.median).as_bytes())
}

/// `flood WHAT COUNT ARG`: so often, as fast as it can.
pub(crate) fn flood(args: &Args) -> io::Result<()> {
    for _ in 0..args.number(1)? {
        match args.text(0)? {
            "open" => open_read_close(args.c(2)?)?,
            "create" => file::create(args.c(2)?).and_then(|()| file::unlink(args.c(2)?))?,
            _ => return Err(invalid()),
        }
    }
    Ok(())
}

struct Measured {
    per_second: f64,
    /// Of the batches, in nanoseconds for one call.
    median: f64,
}

fn repeat(time: Duration, mut once: impl FnMut() -> io::Result<()>) -> io::Result<Measured> {
    // What happens only the first time is not measured.
    for _ in 0..BATCH {
        once()?;
    }
    let start = Instant::now();
    let mut batches = Vec::new();
    let mut last = processor_time()?;
    while start.elapsed() < time || batches.len() < BATCHES {
        for _ in 0..BATCH {
            once()?;
        }
        let now = processor_time()?;
        batches.push((now - last).as_nanos());
        last = now;
    }
    let calls = batches.len() as f64 * f64::from(BATCH);
    let per_second = calls / start.elapsed().as_secs_f64();
    batches.sort_unstable();
    Ok(Measured { per_second, median: batches[batches.len() / 2] as f64 / f64::from(BATCH) })
}

/// What this process and its ended children have had.
fn processor_time() -> io::Result<Duration> {
    let mut own = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut own) })?;
    // SAFETY: the structure is integers, and all zeroes are ones.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) })?;
    let micros = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    let own = Duration::new(own.tv_sec as u64, own.tv_nsec as u32);
    Ok(own + micros(usage.ru_utime) + micros(usage.ru_stime))
}

fn open(path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    descriptor(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })
}

fn open_read_close(path: &CStr) -> io::Result<()> {
    let fd = open(path, libc::O_RDONLY)?;
    let mut byte = 0_u8;
    // SAFETY: one byte, into a variable that lives across the call.
    done(unsafe { libc::read(fd.as_raw_fd(), (&raw mut byte).cast(), 1) } as i64).map(drop)
}

fn write_at_start(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: one byte, from a constant.
    done(unsafe { libc::pwrite(fd.as_raw_fd(), b"x".as_ptr().cast(), 1, 0) } as i64).map(drop)
}

fn stat(path: &CStr) -> io::Result<()> {
    // SAFETY: the structure is integers, and all zeroes are ones.
    let mut found = unsafe { std::mem::zeroed::<libc::stat>() };
    // SAFETY: `path` is NUL-terminated; both live across the call.
    done(unsafe { libc::stat(path.as_ptr(), &raw mut found) }).map(drop)
}
