//! One attempt: without anybody watching, then as a job; and what came of it.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use effectgate_tests::gate::Outcome;
use effectgate_tests::{attached, record, tools, wait};
use serde_json::Value;

use crate::results::{self, Found};
use crate::row::{Harm, Row};
use crate::stage::Stage;
use crate::watch::{self, Mode, Watch};
use crate::world::World;

/// Switches the tracing of functions off for the whole machine, and with it
/// what hangs on it.
const FTRACE: &str = "/proc/sys/kernel/ftrace_enabled";

/// Plays a row and holds it against what is said of it.
pub(crate) fn play(row: &Row) {
    if row.alone && !tools::in_vm() {
        println!("not played here: it harms the machine, so it needs one of its own");
        return;
    }
    let faults: Vec<String> = match unwatched(row) {
        Some(errno) => {
            let impossible = Found::Impossible(errno);
            watch::modes()
                .iter()
                .filter_map(|mode| results::hold(row, *mode, &impossible))
                .collect()
        }
        None => {
            let watch = watch::somebody(row.alone);
            let hold = |mode: &Mode| {
                let (found, story) = watched(row, *mode, &watch);
                results::hold(row, *mode, &found).map(|fault| format!("{fault}{story}"))
            };
            watch::modes().iter().filter_map(hold).collect()
        }
    };
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Without anybody watching, the attempt works, or the kernel has no such thing:
/// then it says why.
fn unwatched(row: &Row) -> Option<i32> {
    let nobody = row.alone.then(watch::nobody);
    let mut attempt = Attempt::new(row, None);
    let output = attempt.command().output().expect("the trigger can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if let Some(number) = output.status.code().filter(|number| *number != 0) {
        return Some(number);
    }
    let harm = match row.late {
        true => wait::until("the harm is done", || attempt.harm(output.status)),
        false => attempt.harm(output.status).unwrap_or_default(),
    };
    assert!(
        matches!(row.harm, Harm::None | Harm::Reached) || !harm.is_empty(),
        "unwatched it does no harm: {}; it ended with {}: {said}",
        attempt.words,
        output.status
    );
    drop(nobody);
    None
}

/// As a job.
fn watched(row: &Row, mode: Mode, watch: &Watch) -> (Found, String) {
    let mut attempt = Attempt::new(row, Some(watch.daemon().pid()));
    let mut command = attempt.command();
    let scene = &attempt.stage.scene;
    let (status, outcome) = attached::run(
        watch.daemon(),
        scene,
        &scene.manifest(),
        mode.name(),
        &mut command,
        row.late,
    );
    let harm = attempt.harm(status);
    let Some(outcome) = outcome else {
        return (Found::NoVerdict { harm: harm.is_some() }, attempt.words);
    };
    let story = format!("\n  harm: {harm:?}{}", outcome.story());
    (attempt.found(row, status, harm.is_some(), &outcome), story)
}

/// A stage with the world as it was.
struct Attempt<'a> {
    row: &'a Row,
    stage: Stage,
    words: String,
    before: World,
    segment: Option<u8>,
    ftrace: Option<Vec<u8>>,
}

impl Attempt<'_> {
    fn new(row: &Row, daemon: Option<u32>) -> Attempt<'_> {
        let stage = Stage::new(row.words, daemon);
        let words = stage.fill(row.words);
        let before = World::of(&places(&stage));
        let (segment, ftrace) = (stage.segment_byte(), fs::read(FTRACE).ok());
        Attempt { row, stage, words, before, segment, ftrace }
    }

    fn command(&self) -> std::process::Command {
        let program = self.stage.scene.root().join("tools/trigger");
        let handed = self.stage.handed(self.row.words).into_iter().map(high).collect();
        attached::command(&program, self.words.split_whitespace(), &self.stage.scene, handed)
    }

    /// What harm was done, if any, in words.
    fn harm(&mut self, status: ExitStatus) -> Option<String> {
        if let Some(before) =
            self.ftrace.as_ref().filter(|before| fs::read(FTRACE).ok().as_ref() != Some(before))
        {
            // Whoever comes next is to be watched.
            fs::write(FTRACE, before).expect("what was written once can be written again");
            return Some("the tracing of functions was off".to_owned());
        }
        match self.row.harm {
            Harm::None | Harm::Reached => return None,
            Harm::Done => return status.success().then(|| "it says that it worked".to_owned()),
            Harm::World => {}
        }
        let changes = self.before.changes(&World::of(&places(&self.stage)));
        if let Some(change) = changes.first() {
            return Some(change.clone());
        }
        let stage = &mut self.stage;
        if stage.scene.root().join("directory/ran").exists() {
            return Some("a program ran that may not".to_owned());
        }
        if stage.servers.reached() {
            return Some("a server heard from the job".to_owned());
        }
        if stage.victim.as_mut().is_some_and(|victim| !victim.is_whole()) {
            return Some("another process is not as it was".to_owned());
        }
        (stage.segment_byte() != self.segment).then(|| "another's memory was written".to_owned())
    }

    fn found(&self, row: &Row, status: ExitStatus, harm: bool, outcome: &Outcome) -> Found {
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let expected = self.stage.fill(row.sees);
        match record::text(&outcome.verdict()["verdict"]) {
            "fail" => {
                let violations = outcome.violations();
                let right = violations.iter().find(|event| is(event, &expected));
                match right.map(|event| record::text(&event["decision"])) {
                    Some("denied") => Found::Denied { harm },
                    Some(_) => Found::Seen { harm },
                    None => Found::Misnamed { harm },
                }
            }
            "indeterminate" => Found::Open { harm },
            _ if harm => Found::Evaded,
            _ if !row.sees.is_empty()
                && outcome.events.iter().any(|event| is(event, &expected)) =>
            {
                Found::Recorded
            }
            _ => Found::Passed(code),
        }
    }
}

/// What the job may not change.
fn places(stage: &Stage) -> Vec<PathBuf> {
    let root = stage.scene.root();
    let named = ["file", "other", "attributed"].map(|name| root.join(name));
    named.into_iter().chain([stage.scene.outside()]).collect()
}

/// Whether a record is one of the expected.
fn is(event: &Value, expected: &str) -> bool {
    expected.split(" | ").any(|one| {
        let (kind, object) = one.split_once(' ').unwrap_or((one, ""));
        record::kind(event).starts_with(kind)
            && (event["object"].to_string().contains(object) || record::endpoint(event) == object)
    })
}

/// The same descriptor under a number that none of those has that are given.
fn high((fd, number): (OwnedFd, i32)) -> (OwnedFd, i32) {
    // SAFETY: takes a descriptor that we own, and numbers.
    let copy = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 100) };
    assert!(copy >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel just gave this descriptor to us, nobody else owns it.
    (unsafe { OwnedFd::from_raw_fd(copy) }, number)
}
