//! Waiting with a deadline. Nothing here makes a test right by being slow: each
//! wait ends at what it waits for, and panics when that does not come.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Long enough for an emulated machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Waits until `condition` gives something.
///
/// # Panics
/// When the deadline passes.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "waited {DEADLINE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for a child's end; one that outlives the deadline is killed.
///
/// # Panics
/// When the deadline passes.
pub fn exit(child: &mut Child, what: &str) -> ExitStatus {
    let fd = pidfd(child.id()).expect("a child has a pidfd");
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = i32::try_from(DEADLINE.as_millis()).expect("deadlines are short");
    // SAFETY: one descriptor that we own, in a structure that lives across the call.
    let ready = unsafe { libc::poll(&raw mut poll, 1, millis) };
    if ready != 1 {
        let _ = child.kill();
        let _ = child.wait();
        panic!("{what} did not end within {DEADLINE:?}");
    }
    child.wait().expect("the child was not awaited before")
}

fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave this descriptor to us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Sends a signal to a process that this test started.
///
/// # Panics
/// When there is no such process.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: takes numbers.
    let result = unsafe { libc::kill(pid as i32, signal) };
    assert_eq!(result, 0, "kill {pid} with {signal}: {}", io::Error::last_os_error());
}

/// Processes whose command line holds this word.
#[must_use]
pub fn processes_with(word: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| *pid != std::process::id())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|byte| *byte == 0).any(|arg| arg == word.as_bytes()))
        })
        .collect()
}
