//! Programs started in all the ways that do not name the file that runs. The
//! program is a copy of this one; its words follow.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use crate::process;
use crate::sys::{Args, call, descriptor, name_of, open};

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "exec-memfd" => in_memory(args).and_then(|file| execute(&file, args)),
        "exec-memfd-by-name" => in_memory(args).and_then(|file| run(&name_of(&file), args)),
        "exec-fd" => args.c(0).and_then(|path| execute(&open(path, libc::O_RDONLY)?, args)),
        "exec-fd-by-name" => {
            args.c(0).and_then(|path| run(&name_of(&open(path, libc::O_PATH)?), args))
        }
        "exec-loader" => loader(args),
        "exec-script" => script(args),
        // What the kernel makes of it: the script's path, then the words.
        "as-script" => args.text(1).and_then(|effect| crate::cause(effect, &args.from(2))),
        "exec-copy" => copy(args),
        "exec-deleted" => deleted(args),
        "load-library" => load(args),
        _ => return None,
    })
}

/// `PATH ARG...` under the name `name`.
fn run(name: &CStr, args: &Args) -> io::Result<()> {
    // The descriptor behind the name has to outlive the call.
    let words: Vec<CString> = args.all().to_vec();
    process::execve(name, &words, &process::environment())
}

fn execute(file: &OwnedFd, args: &Args) -> io::Result<()> {
    let argv = process::pointers(args.all());
    let environment = process::environment();
    let envp = process::pointers(&environment);
    let empty = libc::AT_EMPTY_PATH;
    let fd = file.as_raw_fd();
    call!(libc::SYS_execveat, fd, c"".as_ptr(), argv.as_ptr(), envp.as_ptr(), empty).map(drop)
}

/// The program's bytes in a file without any name.
fn in_memory(args: &Args) -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated and static.
    let memory = descriptor(unsafe { libc::memfd_create(c"program".as_ptr(), 0) })?;
    io::copy(
        &mut std::fs::File::open(args.os(0)?)?,
        &mut std::fs::File::from(memory.try_clone()?),
    )?;
    Ok(memory)
}

/// The dynamic loader is the program, this one its argument.
fn loader(args: &Args) -> io::Result<()> {
    let loader = [c"/lib64/ld-linux-x86-64.so.2", c"/lib/ld-linux-aarch64.so.1"]
        .into_iter()
        .find(|path| open(path, libc::O_PATH).is_ok())
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
    let words: Vec<CString> =
        std::iter::once(loader.to_owned()).chain(args.all().iter().cloned()).collect();
    process::execve(loader, &words, &process::environment())
}

/// `SCRIPT PROGRAM ARG...`: a script is made whose interpreter is the program,
/// and run with the words; see `as-script`.
fn script(args: &Args) -> io::Result<()> {
    let path = args.text(0)?;
    std::fs::write(path, format!("#!{} as-script\n", args.text(1)?))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    let words: Vec<CString> =
        std::iter::once(args.c(0)?).chain(&args.all()[2..]).cloned().collect();
    process::execve(&words[0], &words, &process::environment())
}

/// `COPY PROGRAM ARG...`: what the job wrote itself.
fn copy(args: &Args) -> io::Result<()> {
    std::fs::copy(args.os(1)?, args.os(0)?)?;
    std::fs::set_permissions(args.os(0)?, std::fs::Permissions::from_mode(0o755))?;
    process::execve(args.c(0)?, &args.all()[1..], &[])
}

/// The same, by a descriptor of a file that has no name any more.
fn deleted(args: &Args) -> io::Result<()> {
    std::fs::copy(args.os(1)?, args.os(0)?)?;
    std::fs::set_permissions(args.os(0)?, std::fs::Permissions::from_mode(0o755))?;
    let file = open(args.c(0)?, libc::O_RDONLY)?;
    std::fs::remove_file(args.os(0)?)?;
    execute(&file, &args.from(1))
}

/// `COPY LIBRARY`: the job's own copy of a library is mapped to be run.
fn load(args: &Args) -> io::Result<()> {
    std::fs::copy(args.os(1)?, args.os(0)?)?;
    let file = open(args.c(0)?, libc::O_RDONLY)?;
    // SAFETY: a new mapping, placed by the kernel, into which nothing jumps.
    let address = unsafe {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}
