//! One virtual machine: started, listened to, and ended when it hangs.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::run;

/// When a machine is given up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nothing at all was printed for so long.
    pub silence: Duration,
    pub total: Duration,
}

/// How a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself: powered off, or stopped by a kernel panic.
    Itself,
    /// Killed after printing nothing for too long.
    Silent,
    /// Killed because it took too long in all.
    TooLong,
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// The kernel's console, and what QEMU itself says.
    Console,
    /// The second serial port, which carries only results.
    Results,
}

/// What time is in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The same as here.
    Host,
    /// A nanosecond for each instruction, on one processor.
    Instructions,
}

/// What is booted, and how.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    pub kernel: &'a Path,
    pub initrd: &'a Path,
    pub root: &'a Path,
    /// Takes everything that is printed, as it comes.
    pub log: &'a Path,
    pub clock: Clock,
}

/// Boots the machine and hands every line to `on_line`, until it ends or must
/// be ended.
pub fn boot(
    machine: &Machine<'_>,
    limits: Limits,
    mut on_line: impl FnMut(Port, &str),
) -> Result<End> {
    // Socket paths are limited to 108 bytes, so not below the target directory.
    let directory = tempfile::tempdir().context("cannot create a temporary directory")?;
    let socket = directory.path().join("results");
    let listener = UnixListener::bind(&socket)
        .with_context(|| format!("cannot listen at {}", socket.display()))?;
    let log = machine.log;
    let mut log = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    let mut machine = Emulator(start(machine, &socket)?);

    let (sender, received) = mpsc::channel();
    let stdout = machine.0.stdout.take().context("QEMU's output is not piped")?;
    let stderr = machine.0.stderr.take().context("QEMU's errors are not piped")?;
    let (console, errors, results) = (sender.clone(), sender.clone(), sender);
    thread::spawn(move || listen(stdout, Port::Console, &console));
    thread::spawn(move || listen(stderr, Port::Console, &errors));
    thread::spawn(move || {
        if let Ok((stream, _)) = listener.accept() {
            listen(stream, Port::Results, &results);
        }
    });

    let mut lines = [Vec::new(), Vec::new()];
    let started = Instant::now();
    let mut heard = Instant::now();
    let end = loop {
        match received.recv_timeout(Duration::from_secs(1)) {
            Ok((port, bytes)) => {
                heard = Instant::now();
                log.write_all(&bytes).context("cannot write the serial log")?;
                take_lines(&mut lines[port as usize], &bytes, |line| on_line(port, line));
            }
            // Every port was closed: QEMU is gone.
            Err(RecvTimeoutError::Disconnected) => break End::Itself,
            Err(RecvTimeoutError::Timeout) if machine.ended() => {
                // It never opened the results port; let that thread go.
                drop(UnixStream::connect(&socket));
                break End::Itself;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if started.elapsed() >= limits.total {
            break End::TooLong;
        }
        if heard.elapsed() >= limits.silence {
            break End::Silent;
        }
    };
    for (port, rest) in [Port::Console, Port::Results].into_iter().zip(&lines) {
        if !rest.is_empty() {
            on_line(port, String::from_utf8_lossy(rest).trim_end_matches('\r'));
        }
    }
    Ok(end)
}

/// Our own child, which never outlives its test run.
struct Emulator(Child);

impl Emulator {
    fn ended(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(machine: &Machine<'_>, socket: &Path) -> Result<Child> {
    let Machine { kernel, initrd, root, clock, .. } = machine;
    let mut qemu = Command::new("qemu-system-x86_64");
    // One host thread for both processors: with one each, a processor of the
    // guest was seen to run instructions that another had already patched
    // (6.12, "Oops: int3" while booting). It costs no time worth measuring.
    qemu.args(["-accel", "tcg,thread=single"])
        // QEMU 7.2 (Debian 12) emulates cmpxchg16b wrongly enough to corrupt
        // memory of kernels from 6.12 on.
        .args(["-cpu", "max,-cx16"])
        .args(["-m", "2048"])
        .args(match clock {
            Clock::Host => &["-smp", "2"][..],
            Clock::Instructions => &["-smp", "1", "-icount", "shift=0,sleep=off"],
        })
        .args(["-display", "none", "-no-reboot", "-nic", "none"])
        // What is written goes to a temporary file, never to the image.
        .args([
            "-drive",
            &format!("if=none,id=root,format=raw,snapshot=on,file={}", root.display()),
        ])
        .args(["-device", "nvme,drive=root,serial=root"])
        .args(["-serial", "stdio"])
        .args(["-chardev", &format!("socket,id=results,path={}", socket.display())])
        .args(["-serial", "chardev:results"])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initrd)
        // The check of the timer fails on a machine that is kept waiting.
        .args(["-append", "console=ttyS0 rdinit=/init panic=-1 quiet no_timer_check"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let shown = run::show(&qemu);
    qemu.spawn().with_context(|| {
        format!("cannot start `{shown}`; `cargo xtask setup --for vm` installs QEMU")
    })
}

fn listen(mut from: impl Read, port: Port, to: &Sender<(Port, Vec<u8>)>) {
    let mut buffer = [0; 4096];
    while let Ok(size @ 1..) = from.read(&mut buffer) {
        if to.send((port, buffer[..size].to_vec())).is_err() {
            return;
        }
    }
}

/// Appends `bytes` to `partial` and hands over every line that is complete.
fn take_lines(partial: &mut Vec<u8>, bytes: &[u8], mut on_line: impl FnMut(&str)) {
    for &byte in bytes {
        if byte == b'\n' {
            on_line(String::from_utf8_lossy(partial).trim_end_matches('\r'));
            partial.clear();
        } else {
            partial.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let (mut partial, mut seen) = (Vec::new(), Vec::new());
        for bytes in [&b"test a ."[..], b".. ok\r\ntest", b" b"] {
            take_lines(&mut partial, bytes, |line| seen.push(line.to_owned()));
        }
        assert_eq!(seen, ["test a ... ok"]);
        assert_eq!(partial, b"test b");
    }
}
