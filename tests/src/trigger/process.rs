//! Process, environment and output effects.

use std::ffi::{CStr, CString};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::sys::{Args, descriptor, done, invalid};

/// `exec PATH ARG...`, from argument `first` on.
pub(crate) fn exec(args: &Args, first: usize) -> io::Result<()> {
    let strings = args.all().get(first..).filter(|rest| !rest.is_empty()).ok_or_else(invalid)?;
    execve(&strings[0], strings, &environment())
}

/// `exec-without-env PATH ARG...`: the program gets no environment at all.
pub(crate) fn exec_without_env(args: &Args) -> io::Result<()> {
    let strings = args.all();
    execve(strings.first().ok_or_else(invalid)?, strings, &[])
}

/// Executes the file behind a descriptor, with the argument `true`.
pub(crate) fn execveat(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` is NUL-terminated and lives across the call.
    let file = descriptor(unsafe {
        libc::openat(libc::AT_FDCWD, path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC)
    })?;
    let strings = [path.to_owned(), c"true".to_owned()];
    let environment = environment();
    let (argv, envp) = (pointers(&strings), pointers(&environment));
    // SAFETY: all strings and both NULL-ended lists live across the call.
    done(unsafe {
        libc::syscall(
            libc::SYS_execveat,
            file.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    })
    .map(drop)
}

/// `exec-from-thread PATH ARG...`: the thread that calls is not the process's
/// first one; the kernel gives it that one's place.
pub(crate) fn exec_from_thread(args: &Args) -> io::Result<()> {
    std::thread::scope(|scope| scope.spawn(|| exec(args, 0)).join().map_err(|_| invalid())?)
}

/// Executes itself as `trigger true`, with one environment variable more.
pub(crate) fn env_exec(name: &str) -> io::Result<()> {
    let own = own_path()?;
    let mut environment = environment();
    environment.push(CString::new(format!("{name}=value-of-the-variable")).expect("no NUL"));
    let strings = [own.clone(), c"true".to_owned()];
    execve(&own, &strings, &environment)
}

pub(crate) fn own_path() -> io::Result<CString> {
    CString::new(std::env::current_exe()?.into_os_string().into_vec()).map_err(|_| invalid())
}

pub(crate) fn environment() -> Vec<CString> {
    std::env::vars_os()
        .map(|(name, value)| {
            let mut entry = name.into_vec();
            entry.push(b'=');
            entry.extend(value.as_bytes());
            CString::new(entry).expect("the environment holds no NUL")
        })
        .collect()
}

pub(crate) fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

pub(crate) fn execve(path: &CStr, argv: &[CString], envp: &[CString]) -> io::Result<()> {
    let (argv, envp) = (pointers(argv), pointers(envp));
    // SAFETY: all strings and both NULL-ended lists live across the call.
    done(unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr()) }).map(drop)
}

/// Starts itself as `trigger true` and waits for the end.
pub(crate) fn run_itself() -> io::Result<()> {
    let status = std::process::Command::new(std::env::current_exe()?).arg("true").status()?;
    if status.success() { Ok(()) } else { Err(invalid()) }
}

/// Runs `child` in a new process, which then ends with 0 or the error number.
/// Gives the process's id.
pub(crate) fn in_child(child: impl FnOnce() -> io::Result<()>) -> io::Result<libc::pid_t> {
    // SAFETY: this process has one thread, so the child may run anything.
    match done(unsafe { libc::fork() })? {
        0 => {
            let status = child().err().map_or(0, |error| error.raw_os_error().unwrap_or(255));
            // SAFETY: ends the child at once, without the parent's clean-up.
            unsafe { libc::_exit(status) }
        }
        pid => Ok(pid as libc::pid_t),
    }
}

pub(crate) fn wait(pid: libc::pid_t) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: `status` lives across the call.
    done(unsafe { libc::waitpid(pid, &raw mut status, 0) })?;
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, 0) => Ok(()),
        (true, code) => Err(io::Error::from_raw_os_error(code)),
        (false, _) => Err(invalid()),
    }
}

/// `sequence EFFECT ARG... , EFFECT ARG... , ...`: one after the other, by the
/// same thread.
pub(crate) fn sequence(args: &Args) -> io::Result<()> {
    for effect in args.split(",") {
        crate::cause(effect.text(0)?, &effect.from(1))?;
    }
    Ok(())
}

/// Starts so many children one after the other.
pub(crate) fn fork(count: i32) -> io::Result<()> {
    for _ in 0..count {
        wait(in_child(|| Ok(()))?)?;
    }
    Ok(())
}

/// `fork-then EFFECT ARG...`: the effect, in a child.
pub(crate) fn fork_then(args: &Args) -> io::Result<()> {
    wait(in_child(|| crate::cause(args.text(0)?, &args.from(1)))?)
}

/// Leaves a grandchild behind that lives until it is killed. Arguments serve
/// only to recognise it.
pub(crate) fn daemon() -> io::Result<()> {
    let (mut read, write) = io::pipe()?;
    wait(in_child(|| {
        // SAFETY: takes nothing.
        done(unsafe { libc::setsid() })?;
        in_child(|| {
            (&write).write_all(b"up")?;
            drop(write);
            for fd in 0..3 {
                // SAFETY: nothing in this process uses its standard streams again.
                unsafe { libc::close(fd) };
            }
            forever()
        })
        .map(drop)
    })?)?;
    read.read_exact(&mut [0; 2])
}

pub(crate) fn forever() -> ! {
    loop {
        // SAFETY: takes nothing.
        unsafe { libc::pause() };
    }
}

/// Creates a file to say that it runs, ignores what asks it to end, and stays.
pub(crate) fn stubborn(ready: &CStr) -> io::Result<()> {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    crate::file::create(ready)?;
    forever()
}

/// `after-line EFFECT ARG...`: waits for a line on standard input.
pub(crate) fn after_line(args: &Args) -> io::Result<()> {
    if io::stdin().read_line(&mut String::new())? == 0 {
        return Err(io::Error::from_raw_os_error(libc::EPIPE));
    }
    crate::cause(args.text(0)?, &args.from(1))
}

/// `thread-after-line FILE EFFECT ARG...`: a second thread creates the file to
/// say that it runs, waits for a line, and goes on. The first one only waits.
pub(crate) fn thread_after_line(args: &Args) -> io::Result<()> {
    let second = || {
        crate::file::create(args.c(0)?)?;
        after_line(&args.from(1))
    };
    std::thread::scope(|scope| scope.spawn(second).join().map_err(|_| invalid())?)
}

/// `ready-then FILE EFFECT ARG...`: creates the file first.
pub(crate) fn ready_then(args: &Args) -> io::Result<()> {
    crate::file::create(args.c(0)?)?;
    crate::cause(args.text(1)?, &args.from(2))
}

/// Moves itself into another cgroup.
pub(crate) fn join_cgroup(cgroup: &str) -> io::Result<()> {
    std::fs::OpenOptions::new().write(true).open(format!("{cgroup}/cgroup.procs"))?.write_all(b"0")
}

/// `struct clone_args` (`linux/sched.h`), up to `cgroup`.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    unused: [u64; 3],
    exit_signal: u64,
    unused_too: [u64; 5],
    cgroup: u64,
}

const _: () = assert!(size_of::<CloneArgs>() == 88);
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Starts a child in another cgroup, without writing to it.
pub(crate) fn clone_into_cgroup(cgroup: &CStr) -> io::Result<()> {
    // SAFETY: `cgroup` is NUL-terminated and lives across the call.
    let directory: OwnedFd = descriptor(unsafe {
        libc::openat(libc::AT_FDCWD, cgroup.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC)
    })?;
    let args = CloneArgs {
        flags: CLONE_INTO_CGROUP,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: directory.as_raw_fd() as u64,
        ..CloneArgs::default()
    };
    // SAFETY: as with fork, the child runs on a copy of this stack; it only ends.
    let pid =
        done(unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) })?;
    if pid == 0 {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) }
    }
    wait(pid as libc::pid_t)
}

/// `getpid` through the entry for 32-bit programs. Where the kernel has none,
/// the process dies of SIGSEGV.
#[cfg(target_arch = "x86_64")]
pub(crate) fn compat_getpid() -> io::Result<()> {
    let answer: u64;
    // SAFETY: `getpid` (20) takes no arguments and touches no memory.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("rax") 20_u64 => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if answer == u64::from(std::process::id()) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOSYS))
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn compat_getpid() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// Lets the kernel write a core file should this process die of a signal that
/// asks for one.
pub(crate) fn allow_core() -> io::Result<()> {
    let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure lives across the call.
    done(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const all) }).map(drop)
}

pub(crate) fn kill_self(signal: i32) -> io::Result<()> {
    // The runtime's own handlers would come back from some signals.
    // SAFETY: takes away a handler and sends a signal to this process.
    done(unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal)
    })
    .map(drop)
}

pub(crate) fn close_output() -> io::Result<()> {
    for fd in [1, 2] {
        // SAFETY: nothing in this process uses its output again.
        done(unsafe { libc::close(fd) })?;
    }
    Ok(())
}

pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    io::stdout().write_all(bytes)?;
    io::stdout().flush()
}

pub(crate) fn print_both(out: &[u8], err: &[u8]) -> io::Result<()> {
    print(out)?;
    io::stderr().write_all(err)
}

pub(crate) fn print_env(name: &str) -> io::Result<()> {
    let value = std::env::var_os(name).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
    print(value.as_bytes())
}

pub(crate) fn print_env_names() -> io::Result<()> {
    let names: Vec<_> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    print((names.join("\n") + "\n").as_bytes())
}

/// The path of its cgroup below the cgroup v2 mount.
pub(crate) fn print_cgroup() -> io::Result<()> {
    let table = std::fs::read_to_string("/proc/self/cgroup")?;
    let path = table.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(invalid)?;
    print(path.as_bytes())
}

/// Real, effective and saved user and group, and how many further groups.
pub(crate) fn print_uid() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let lines: Vec<_> = status
        .lines()
        .filter(|line| {
            ["Uid:", "Gid:", "Groups:", "CapEff:"].iter().any(|key| line.starts_with(key))
        })
        .collect();
    print(lines.join("\n").as_bytes())
}

/// Numbers of the descriptors it was started with.
pub(crate) fn print_descriptors() -> io::Result<()> {
    let mut open = Vec::new();
    for fd in 0..1024 {
        // SAFETY: only asks for flags.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1 {
            open.push(fd.to_string());
        }
    }
    print(open.join(" ").as_bytes())
}

/// Standard input to standard output, to its end.
pub(crate) fn copy_input() -> io::Result<()> {
    io::copy(&mut io::stdin(), &mut io::stdout())?;
    io::stdout().flush()
}
