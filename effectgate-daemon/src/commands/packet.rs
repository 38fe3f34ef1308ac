//! `effectgate packet`

mod files;

use std::{collections::BTreeMap, fs, io::BufReader, path::Path};

use anyhow::{Context, Result};
use effectgate_core::{
    compare::{self, Against, Comparison},
    packet::{self, Problem},
    pin,
    policy::{self as core_policy, Fault, Kind, Policy},
};
use files::{Hashed, bytes, open, write};
use serde_json::json;

use super::{
    compare::{resolve, workspace},
    print, print_json,
};
use crate::{
    cli::{Format, Packet},
    clock,
    diagnose::visible,
    exit::{self, Code, Outcomes},
    log,
};

pub fn packet(args: &Packet, format: Format) -> Outcomes {
    let directory = &args.directory;
    let mut problems = strangers(directory).code(exit::USAGE)?;
    let mut judged = Judged::default();
    if problems.is_empty() {
        let given = args.workspace.as_deref().map(workspace).transpose().code(exit::USAGE)?;
        judged = if args.assemble {
            let here = given.map_or_else(|| workspace(Path::new(".")), Ok).code(exit::USAGE)?;
            assemble(directory, &here, &mut problems).code(exit::USAGE)?
        } else {
            verify(directory, given, &mut problems).code(exit::USAGE)?
        };
    }
    let holds = problems.is_empty();
    match format {
        Format::Json => print_json(&json!({
            "schema": packet::SCHEMA,
            "holds": holds,
            "workspace": judged.workspace,
            "day": judged.day,
            "files": judged.digests,
            "problems": problems,
        }))?,
        Format::Text => {
            for problem in &problems {
                print(&format!("{problem}\n"));
            }
            let count = problems.len();
            let s = if count == 1 { "" } else { "s" };
            let word = if holds { "holds" } else { "does not hold" };
            if let (Some(workspace), Some(day)) = (&judged.workspace, &judged.day) {
                print(&format!("judged in the workspace {}, as on {day}\n", visible(workspace)));
            }
            let files = judged.digests.len();
            print(&format!("packet: {word} ({count} problem{s}, {files} files)\n"));
        }
    }
    Ok(if holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

/// Digests by name.
type Digests = BTreeMap<&'static str, String>;

/// What was judged, and on what ground: a packet says both itself, so whoever
/// reads the result must see them.
#[derive(Default)]
struct Judged {
    digests: Digests,
    workspace: Option<String>,
    /// `YYYY-MM-DD`
    day: Option<String>,
}

impl Judged {
    fn new(digests: Digests, workspace: &str, day: &str) -> Self {
        Judged { digests, workspace: Some(workspace.to_owned()), day: Some(day.to_owned()) }
    }
}

/// Whatever in the directory is no file of a packet.
fn strangers(directory: &Path) -> Result<Vec<Problem>> {
    let what = || format!("cannot read the packet {}", directory.display());
    let mut problems = Vec::new();
    for entry in fs::read_dir(directory).with_context(what)? {
        let name = entry.with_context(what)?.file_name();
        if !packet::files().any(|known| *known == *name) {
            let name = name.to_string_lossy().into_owned();
            problems.push(Problem::new(
                "packet-extra-file",
                &name.escape_debug().to_string(),
                "no packet has such a file",
                "keep it elsewhere",
            ));
        }
    }
    Ok(problems)
}

/// Writes what follows from what is there, and then verifies it.
fn assemble(directory: &Path, workspace: &str, problems: &mut Vec<Problem>) -> Result<Judged> {
    let today = clock::today();
    let resolve: &mut Resolve<'_> = &mut |path| resolve(path);
    let Some(made) = Made::from(directory, workspace, &today, resolve, problems)? else {
        return Ok(Judged::default());
    };
    let mut digests = made.digests.clone();
    for (name, bytes) in made.documents()? {
        write(directory, name, &bytes)?;
        digests.insert(name, pin::digest(&bytes));
    }
    let list: Vec<_> = digests.iter().map(|(name, digest)| (*name, digest.clone())).collect();
    write(directory, packet::DIGESTS, packet::format_digests(&list).as_bytes())?;
    made.judge(problems);
    Ok(Judged::new(digests, workspace, &today))
}

/// Makes everything again that follows from what is there.
fn verify(
    directory: &Path,
    workspace: Option<String>,
    problems: &mut Vec<Problem>,
) -> Result<Judged> {
    let mut written = BTreeMap::new();
    for name in packet::DERIVED.into_iter().chain([packet::DIGESTS]) {
        if let Some(bytes) = bytes(directory, name, problems)? {
            written.insert(name, bytes);
        }
    }
    let today = clock::today();
    let recorded = match written.get(packet::COMPARE).map(|it| packet::recorded(it, &today)) {
        None => return Ok(Judged::default()),
        Some(Ok(recorded)) => recorded,
        Some(Err(problem)) => {
            problems.push(problem);
            return Ok(Judged::default());
        }
    };
    let workspace = workspace.unwrap_or(recorded.workspace);
    // What links there are is known where the packet was assembled.
    let nowhere: &mut Resolve<'_> = &mut |_| None;
    let Some(made) = Made::from(directory, &workspace, &recorded.day, nowhere, problems)? else {
        return Ok(Judged::default());
    };
    let mut digests = made.digests.clone();
    for (name, bytes) in made.documents()? {
        if let Some(found) = written.get(name) {
            digests.insert(name, pin::digest(found));
            if *found != bytes {
                problems.push(Problem::new(
                    "packet-differs",
                    name,
                    "it is not what manifest and trace come to",
                    "assemble the packet again, and look at what changed",
                ));
            }
        }
    }
    let list: Vec<_> = digests.iter().map(|(name, digest)| (*name, digest.clone())).collect();
    let wanted = packet::format_digests(&list);
    if written.get(packet::DIGESTS).is_some_and(|found| found != wanted.as_bytes()) {
        problems.push(Problem::new(
            "packet-digest",
            packet::DIGESTS,
            "it is not the list of the other files' digests",
            "take the packet as it was assembled",
        ));
    }
    made.judge(problems);
    Ok(Judged::new(digests, &workspace, &recorded.day))
}

type Resolve<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// What was made of manifest, pin and trace.
struct Made {
    manifest: Result<Policy, Vec<Fault>>,
    comparison: Option<Comparison>,
    digests: Digests,
}

impl Made {
    /// `None` when one of them is not there.
    fn from(
        directory: &Path,
        workspace: &str,
        today: &str,
        resolve: &mut Resolve<'_>,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<Made>> {
        let manifest = bytes(directory, packet::MANIFEST, problems)?;
        let pinned = bytes(directory, packet::PIN, problems)?;
        let trace = open(directory, packet::TRACE, problems)?;
        let (Some(bytes), Some(pinned), Some(trace)) = (manifest, pinned, trace) else {
            return Ok(None);
        };
        let sha256 = pin::digest(&bytes);
        check_pin(&sha256, &pinned, problems);
        let mut digests =
            Digests::from([(packet::MANIFEST, sha256), (packet::PIN, pin::digest(&pinned))]);
        let manifest = core_policy::parse(packet::MANIFEST, &bytes, today);
        if manifest.as_ref().is_ok_and(|policy| policy.kind != Kind::Manifest) {
            problems.push(Problem::new(
                "packet-does-not-hold",
                packet::MANIFEST,
                "it is an envelope",
                "put the manifest in",
            ));
            return Ok(None);
        }
        let mut trace = Hashed::new(BufReader::with_capacity(log::BUFFER, trace));
        let what = || format!("cannot read {}", directory.join(packet::TRACE).display());
        let comparison = match &manifest {
            Ok(policy) => {
                let against = Against { policy, workspace, today, resolve };
                Some(compare::compare(&mut trace, against).with_context(what)?)
            }
            Err(_) => None,
        };
        digests.insert(packet::TRACE, trace.finish().with_context(what)?);
        Ok(Some(Made { manifest, comparison, digests }))
    }

    fn documents(&self) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let manifest = self.manifest.as_ref().map_err(Vec::as_slice);
        Ok(packet::documents(manifest, self.comparison.as_ref())?)
    }

    fn judge(&self, problems: &mut Vec<Problem>) {
        let manifest = self.manifest.as_ref().map_err(Vec::as_slice);
        problems.extend(packet::judge(manifest, self.comparison.as_ref()));
        problems.extend(self.comparison.as_ref().and_then(packet::made_before_the_run));
    }
}

fn check_pin(sha256: &str, pinned: &[u8], problems: &mut Vec<Problem>) {
    let help = "review the manifest, then pin it again";
    match pin::read_pin(packet::PIN, pinned) {
        Err(fault) => {
            problems.push(Problem::new("packet-pin", packet::PIN, fault.message, help));
        }
        Ok(pinned) => {
            if let Err(error) = pin::verify(sha256, &pinned, None) {
                problems.push(Problem::new("packet-pin", packet::PIN, error.to_string(), help));
            }
        }
    }
}
