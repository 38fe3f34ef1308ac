//! Much of one thing: processes, depth, open files, renames, mounts, attempts.

use std::ffi::{CStr, CString};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::process::{environment, execve, forever, in_child, own_path, print, wait};
use crate::sys::{Args, descriptor, done};
use crate::{file, place};

/// `fan COUNT READY`: so many children that live at the same time, then a file
/// to say so, then their end.
pub(crate) fn fan(args: &Args) -> io::Result<()> {
    let children: Vec<_> =
        (0..args.number(0)?).map_while(|_| in_child(|| forever()).ok()).collect();
    let all = children.len() == usize::try_from(args.number(0)?).unwrap_or(0);
    if all {
        file::create(args.c(1)?)?;
    }
    for child in children {
        // SAFETY: takes numbers; the child is this process's own.
        done(unsafe { libc::kill(child, libc::SIGKILL) })?;
        // It ends by the signal.
        let _ = wait(child);
    }
    if all { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EAGAIN)) }
}

/// `grow BASE STEP DEPTH`: directories in each other, and a file in the last.
pub(crate) fn grow(args: &Args) -> io::Result<()> {
    place::chdir(args.c(0)?)?;
    for _ in 0..args.number(2)? {
        file::mkdir(args.c(1)?)?;
        place::chdir(args.c(1)?)?;
    }
    file::create(c"deep")
}

/// `hold-many FILE COUNT READY`: holds the file open so often, in as many processes
/// as that takes, creates another to say so, and waits for a line.
pub(crate) fn hold(args: &Args) -> io::Result<()> {
    let each = raise_limit()?.saturating_sub(64).max(1);
    let mut left = u64::from(args.number(1)?.unsigned_abs());
    let (mut ready, told) = io::pipe()?;
    let mut children = Vec::new();
    while left > 0 {
        let count = left.min(each);
        left -= count;
        children.push(in_child(|| {
            let held: io::Result<Vec<OwnedFd>> = (0..count).map(|_| open(args.c(0)?)).collect();
            let _held = held?;
            (&told).write_all(b".")?;
            forever()
        })?);
    }
    drop(told);
    ready.read_exact(&mut vec![0; children.len()])?;
    file::create(args.c(2)?)?;
    io::stdin().read_line(&mut String::new())?;
    for child in children {
        // SAFETY: takes numbers; the child is this process's own.
        done(unsafe { libc::kill(child, libc::SIGKILL) })?;
        let _ = wait(child);
    }
    Ok(())
}

fn open(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    descriptor(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })
}

/// Allows this process as many open files as it may allow itself.
fn raise_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(limit.rlim_max)
}

/// `rename-storm BASE COUNT`: a directory changes its name so often, while
/// files come and go further down. Some of them find nowhere to go.
pub(crate) fn renames(args: &Args) -> io::Result<()> {
    place::chdir(args.c(0)?)?;
    file::mkdir(c"one")?;
    file::mkdir(c"one/inner")?;
    let count = args.number(1)?;
    let mover = in_child(|| {
        for _ in 0..count {
            file::rename(c"one", c"two")?;
            file::rename(c"two", c"one")?;
        }
        Ok(())
    })?;
    for number in 0.. {
        for outer in ["one", "two"] {
            let name = CString::new(format!("{outer}/inner/{number}")).expect("no NUL");
            if file::create(&name).is_ok() {
                let _ = file::unlink(&name);
            }
        }
        let mut status = 0;
        // SAFETY: `status` lives across the call.
        if done(unsafe { libc::waitpid(mover, &raw mut status, libc::WNOHANG) })? != 0 {
            break;
        }
    }
    Ok(())
}

/// `mount-storm DIRECTORY COUNT`: something is mounted there so often, written
/// to, and unmounted.
pub(crate) fn mounts(args: &Args) -> io::Result<()> {
    place::own_mounts()?;
    let (kind, target) = (c"tmpfs".as_ptr(), args.c(0)?);
    let inside = CString::new([target.as_bytes(), b"/mounted"].concat()).expect("no NUL");
    for _ in 0..args.number(1)? {
        // SAFETY: all strings live across the call.
        done(unsafe { libc::mount(kind, target.as_ptr(), kind, 0, std::ptr::null()) })?;
        file::create(&inside)?;
        // SAFETY: the string lives across the call.
        done(unsafe { libc::umount(target.as_ptr()) })?;
    }
    Ok(())
}

/// `attempts PATH MILLISECONDS READY`: opens a file for writing as often as it
/// can; creates another before, and prints how often it tried and failed.
pub(crate) fn attempts(args: &Args) -> io::Result<()> {
    file::create(args.c(2)?)?;
    let time = Duration::from_millis(args.number(1)?.unsigned_abs().into());
    let (start, mut tried, mut failed) = (Instant::now(), 0_u64, 0_u64);
    while start.elapsed() < time {
        tried += 1;
        // SAFETY: the path is NUL-terminated and lives across the call.
        let result = unsafe { libc::open(args.c(0)?.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
        match descriptor(result) {
            Ok(_) => {}
            Err(_) => failed += 1,
        }
    }
    print(format!("{tried} {failed}\n").as_bytes())
}

/// `preempted-programs COUNT`: so many programs, one after the other, and as many on
/// the same processor by who takes it away from them at any moment.
pub(crate) fn programs(args: &Args) -> io::Result<()> {
    let count = args.number(0)?;
    // SAFETY: a set of processors is integers.
    let mut first: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set has room for the number.
    unsafe { libc::CPU_SET(0, &mut first) };
    let size = size_of_val(&first);
    // SAFETY: the set lives across the call.
    done(unsafe { libc::sched_setaffinity(0, size, &raw const first) })?;
    let urgent = in_child(|| {
        let priority = libc::sched_param { sched_priority: 1 };
        // SAFETY: the structure lives across the call.
        done(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) })?;
        run(count, || {
            // Nothing is waited for: it is to come at any moment.
            std::thread::sleep(Duration::from_micros(700));
        })
    })?;
    run(count, || {})?;
    wait(urgent)
}

/// Runs `trigger true` so often.
fn run(count: i32, mut between: impl FnMut()) -> io::Result<()> {
    let own = own_path()?;
    let strings = [own.clone(), c"true".to_owned()];
    for _ in 0..count {
        between();
        wait(in_child(|| execve(&own, &strings, &environment()))?)?;
    }
    Ok(())
}
