//! Games of time: what a name leads to changes while somebody looks.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::data::write;
use crate::sys::{Args, call, invalid, open};
use crate::{file, process};

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "race-link" => race_link(args),
        "race-exchange" => race_exchange(args),
        "race-rename" => race_rename(args),
        "daemon-then" => daemon_then(args),
        "threads" => threads(args),
        "flood-then" => flood(args),
        "exec-large-environment" => large_environment(args),
        "long-path-write" => long_path(args),
        "attempt" => attempt(args),
        "map-anonymous-exec" => super::machine::anonymous_exec(),
        "needs" => args.c(0).and_then(|path| match super::other::exists(path) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }),
        _ => return None,
    })
}

/// `EFFECT ARG...`: goes on when it fails.
fn attempt(args: &Args) -> io::Result<()> {
    // What became of it is what the test looks at.
    let _ = crate::cause(args.text(0)?, &args.from(1));
    Ok(())
}

/// Writes to `path` so often while another thread changes what it means. Fine
/// when it has been written once.
fn race(
    path: &CString,
    rounds: i32,
    ends: usize,
    change: impl Fn() -> io::Result<()> + Sync,
) -> io::Result<()> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Some of them meet the other thread in the middle.
                let _ = change();
            }
        });
        let mut last = Err(invalid());
        let mut met = BTreeSet::new();
        let mut round = 0;
        // On a busy machine one of them may not run for a while.
        while round < rounds || met.len() < ends && round < 100 * rounds {
            round += 1;
            let opened = open(path, libc::O_WRONLY).map(File::from);
            met.insert(
                opened.as_ref().ok().and_then(|file| file.metadata().ok()).map(|it| it.ino()),
            );
            match opened.and_then(|file| write(&file)) {
                Ok(()) => last = Ok(()),
                Err(error) if last.is_err() => last = Err(error),
                Err(_) => {}
            }
        }
        over.store(true, Ordering::Relaxed);
        last
    })
}

/// `LINK INSIDE OUTSIDE ROUNDS`: the link leads inside, then outside.
fn race_link(args: &Args) -> io::Result<()> {
    let (link, inside, outside) = (args.c(0)?, args.c(1)?, args.c(2)?);
    race(link, args.number(3)?, 2, || {
        for target in [inside, outside] {
            let next = CString::new([link.as_bytes(), b".next"].concat()).map_err(|_| invalid())?;
            file::symlink(target, &next)?;
            file::rename(&next, link)?;
        }
        Ok(())
    })
}

/// `DIRECTORY LINK NAME ROUNDS`: a directory and a link outwards change places.
fn race_exchange(args: &Args) -> io::Result<()> {
    let (directory, link) = (args.c(0)?, args.c(1)?);
    let path = CString::new([directory.as_bytes(), b"/", args.c(2)?.as_bytes()].concat())
        .map_err(|_| invalid())?;
    race(&path, args.number(3)?, 2, || file::renameat2(directory, link, libc::RENAME_EXCHANGE))
}

/// `DEEP OLD NEW ROUNDS`: an ancestor of the file is moved while the file is
/// opened relative to a descriptor below it.
fn race_rename(args: &Args) -> io::Result<()> {
    let (old, new) = (args.c(1)?, args.c(2)?);
    crate::place::chdir(args.c(0)?)?;
    race(&c"../../../outside/file".to_owned(), args.number(3)?, 1, || {
        file::rename(old, new)?;
        file::rename(new, old)
    })
}

/// `EFFECT ARG...`: in a grandchild, when this process has ended.
fn daemon_then(args: &Args) -> io::Result<()> {
    // The other end is this process's alone, and closed when that has ended.
    let (mut first, alive) = io::pipe()?;
    let alive = std::mem::ManuallyDrop::new(alive);
    process::in_child(|| {
        call!(libc::SYS_close, alive.as_raw_fd())?;
        call!(libc::SYS_setsid)?;
        process::in_child(|| {
            for fd in 0..3 {
                // Nothing in this process uses its standard streams again.
                call!(libc::SYS_close, fd)?;
            }
            first.read_to_end(&mut Vec::new())?;
            crate::cause(args.text(0)?, &args.from(1))
        })
        .map(drop)
    })
    .and_then(process::wait)
}

/// `EFFECT ARG...`, by a thread that is not the first.
fn threads(args: &Args) -> io::Result<()> {
    std::thread::scope(|scope| {
        let cause = || crate::cause(args.text(0)?, &args.from(1));
        scope.spawn(cause).join().map_err(|_| invalid())?
    })
}

/// `DIRECTORY COUNT EFFECT ARG...`: in the middle of so many effects that are
/// all within.
fn flood(args: &Args) -> io::Result<()> {
    let count = args.number(1)?;
    for round in 0..count {
        let name = CString::new(format!("{}/{round}", args.text(0)?)).map_err(|_| invalid())?;
        file::create(&name)?;
        file::unlink(&name)?;
        if round == count / 2 {
            crate::cause(args.text(2)?, &args.from(3))?;
        }
    }
    Ok(())
}

/// `KEY BYTES PROGRAM ARG...`: the key stands behind so many bytes of others.
fn large_environment(args: &Args) -> io::Result<()> {
    const PART: usize = 60_000;
    let mut environment = process::environment();
    let bytes = usize::try_from(args.number(1)?).map_err(|_| invalid())?;
    for part in 0..bytes.div_ceil(PART) {
        let value = format!("CI{part}={}", "x".repeat(PART));
        environment.push(CString::new(value).map_err(|_| invalid())?);
    }
    environment.push(CString::new(format!("{}=value", args.text(0)?)).map_err(|_| invalid())?);
    process::execve(args.c(2)?, &args.all()[2..], &environment)
}

/// `DIRECTORY FILE`: by a path of nearly 4 KiB, most of it `./`.
fn long_path(args: &Args) -> io::Result<()> {
    let (directory, name) = (args.text(0)?, args.text(1)?);
    let room = 4095 - directory.len() - name.len() - 1;
    let path = format!("{directory}/{}{name}", "./".repeat(room / 2));
    let file = open(&CString::new(path).map_err(|_| invalid())?, libc::O_WRONLY)?;
    write(&file)?;
    call!(libc::SYS_fsync, file.as_raw_fd()).map(drop)
}
