//! One effect again and again, for the benchmark: prints how often it happened
//! in a second.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::sys::{Args, descriptor, done, invalid};
use crate::{file, net, process};

/// Calls between two looks at the clock.
const BATCH: u32 = 16;

/// `measure WHAT MILLISECONDS ARG`
pub(crate) fn measure(args: &Args) -> io::Result<()> {
    let time = Duration::from_millis(args.number(1)?.unsigned_abs().into());
    let rate = match args.text(0)? {
        "open" => repeat(time, || open_read_close(args.c(2)?))?,
        "create" => {
            repeat(time, || file::create(args.c(2)?).and_then(|()| file::unlink(args.c(2)?)))?
        }
        "connect" => {
            let address = args.address(2)?;
            // UDP: TCP would measure how soon the peer accepts.
            repeat(time, || net::connect_udp(address))?
        }
        "exec" => repeat(time, process::run_itself)?,
        _ => return Err(invalid()),
    };
    process::print(format!("{rate:.0}\n").as_bytes())
}

fn repeat(time: Duration, mut once: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    let mut count = 0_u32;
    loop {
        for _ in 0..BATCH {
            once()?;
        }
        count += BATCH;
        let passed = start.elapsed();
        if passed >= time {
            return Ok(f64::from(count) / passed.as_secs_f64());
        }
    }
}

fn open_read_close(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    let fd = descriptor(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })?;
    let mut byte = 0_u8;
    // SAFETY: one byte, into a variable that lives across the call.
    done(unsafe { libc::read(fd.as_raw_fd(), (&raw mut byte).cast(), 1) } as i64).map(drop)
}
