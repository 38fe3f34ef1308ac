//! A command that signs: it gets the message on its standard input and answers
//! with the signature on its standard output.

use std::{
    fs::File,
    io::{Read as _, Seek as _, Write as _},
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use super::SIGNATURE;
use crate::diagnose::visible;

/// How long a command may take: it may ask a machine far away.
const PATIENCE: Duration = Duration::from_secs(30);

/// No answer and no complaint is longer, bytes.
const LONGEST: usize = 4096;

/// The command's signature: its 64 bytes, or those in Base64.
///
/// # Errors
/// When it cannot be started, takes too long, says too much, ends with another
/// code than 0 or answers with something else.
pub fn signature(program: &Path, message: &[u8]) -> Result<[u8; SIGNATURE]> {
    let answer = answer(program, message, PATIENCE)?;
    if let Ok(signature) = answer.as_slice().try_into() {
        return Ok(signature);
    }
    // Programs that write Base64 break its lines.
    let text: Vec<u8> = answer.iter().copied().filter(|c| !c.is_ascii_whitespace()).collect();
    let decoded = STANDARD.decode(text).ok();
    decoded.and_then(|bytes| bytes.try_into().ok()).with_context(|| {
        format!(
            "answered {} bytes, which are neither an Ed25519 signature nor one in Base64",
            answer.len()
        )
    })
}

fn answer(program: &Path, message: &[u8], patience: Duration) -> Result<Vec<u8>> {
    let mut child = Command::new(program)
        .stdin(input(message)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // What it starts in turn ends with it.
        .process_group(0)
        .spawn()
        .context("cannot be started")?;
    let heard = hear(&mut child, Instant::now() + patience, patience);
    if heard.is_err() {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait().context("cannot be waited for")?;
    let [answer, complaint] = heard?;
    ensure!(status.success(), "failed ({status}){}", quoted(&complaint));
    Ok(answer)
}

/// A file, not a pipe: the command need not read while it writes.
fn input(message: &[u8]) -> Result<File> {
    let what = "cannot keep the message for it";
    let mut file = tempfile::tempfile().context(what)?;
    file.write_all(message).and_then(|()| file.rewind()).context(what)?;
    Ok(file)
}

/// One of the command's outputs, until its end.
struct Output {
    pipe: Option<File>,
    heard: Vec<u8>,
}

impl Output {
    fn of(pipe: Option<impl Into<OwnedFd>>) -> Output {
        Output { pipe: pipe.map(|pipe| File::from(pipe.into())), heard: Vec::new() }
    }

    fn hear(&mut self) -> Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut buffer = [0; LONGEST];
        let read = pipe.read(&mut buffer).context("cannot be heard")?;
        if read == 0 {
            self.pipe = None;
        }
        self.heard.extend_from_slice(&buffer[..read]);
        ensure!(self.heard.len() <= LONGEST, "says more than {LONGEST} bytes");
        Ok(())
    }
}

/// Both outputs, to their ends or the command's.
fn hear(child: &mut Child, until: Instant, patience: Duration) -> Result<[Vec<u8>; 2]> {
    let ended =
        pidfd_open(Pid::from_child(child), PidfdFlags::empty()).context("cannot be waited for")?;
    let mut outputs = [Output::of(child.stdout.take()), Output::of(child.stderr.take())];
    loop {
        let mut open: Vec<_> = outputs.iter_mut().filter(|output| output.pipe.is_some()).collect();
        if open.is_empty() {
            break;
        }
        let pipes = open.iter().filter_map(|output| output.pipe.as_ref());
        let mut polled: Vec<_> = pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        polled.push(PollFd::new(&ended, PollFlags::IN));
        await_any(&mut polled, until, patience)?;
        let mut ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        // It ended, and all that it said was heard: what it left running may hold
        // its outputs open for ever.
        if ready.pop() == Some(true) && !ready.contains(&true) {
            break;
        }
        for (output, _) in open.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            output.hear()?;
        }
    }
    await_any(&mut [PollFd::new(&ended, PollFlags::IN)], until, patience)?;
    Ok(outputs.map(|output| output.heard))
}

fn await_any(fds: &mut [PollFd<'_>], until: Instant, patience: Duration) -> Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(fds, Some(&left)) {
            Ok(0) => bail!("did not answer within {} seconds", patience.as_secs_f32()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot be heard"),
        }
    }
}

fn quoted(complaint: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaint);
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!(": {}", visible(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_leaves_running_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = super::super::tests::script(dir.path(), "sleep 1000 & printf m$!; exit 0");
        let answer = answer(&program, b"m", PATIENCE).expect("it answers");
        let pid = std::str::from_utf8(&answer[1..]).expect("a number").parse().expect("a number");
        rustix::process::kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL)
            .expect("it is there");
    }

    #[test]
    fn a_command_that_does_not_end_is_ended() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = super::super::tests::script(dir.path(), "exec sleep 1000");
        let error = answer(&program, b"m", Duration::from_millis(50)).expect_err("it sleeps");
        assert!(format!("{error:#}").contains("did not answer within 0.05 seconds"), "{error:#}");
    }
}
