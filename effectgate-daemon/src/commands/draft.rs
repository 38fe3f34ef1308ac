//! `effectgate draft`

use std::{
    ffi::OsStr,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use effectgate_core::{
    Outcome, compare,
    draft::{self, Known, Wanted},
    judge::is_kernel_file,
    policy::{self, Policy, RootRule},
    profile, replay,
};
use serde_json::json;

use super::{policy as policy_file, print, print_json, tell};
use crate::{
    cli::{Draft, Format},
    diagnose::visible,
    exit::{self, Code, Outcomes},
    log::Log,
};

pub fn draft(args: &Draft, format: Format) -> Outcomes {
    let what = || format!("{} gives no draft", args.from.display());
    let from_log = is_log(&args.from).code(exit::USAGE)?;
    let trace = || Log::open(&args.from).code(exit::USAGE);
    let (used, workspace) = if from_log {
        let used = draft::of_log(trace()?).with_context(what).code(exit::USAGE)?;
        let workspace = workspace(args, used.workspace()).code(exit::USAGE)?;
        (used, workspace)
    } else {
        let workspace = workspace(args, None).code(exit::USAGE)?;
        let text = workspace.to_str().context("the workspace is not UTF-8").code(exit::USAGE)?;
        (draft::of_trace(trace()?, text).with_context(what).code(exit::USAGE)?, workspace)
    };
    let home = used.home().map(|home| Path::new(OsStr::from_bytes(home)));
    let profiles: Vec<Known> = profile::NAMES.iter().map(|name| known(name, home)).collect();
    let wanted = Wanted {
        workspace: workspace.as_os_str().as_bytes(),
        root_depth: args.root_depth.map(usize::from),
        id: args.agent_id.as_deref(),
        owner: args.owner.as_deref(),
        profiles: &profiles,
        trial: false,
    };
    let propose = |wanted: &Wanted<'_>| {
        if args.envelope { used.envelope(wanted) } else { used.manifest(wanted) }
    };
    let mut draft = propose(&wanted);
    let trial = propose(&Wanted { trial: true, ..wanted });
    let tried = match (from_log, args.envelope) {
        (true, _) => judged(&trial.text, &workspace, home, &args.from),
        (false, false) => compared(&trial.text, &workspace, &args.from),
        // Nothing compares a trace with an envelope.
        (false, true) => Ok(Vec::new()),
    };
    let tried = tried.code(exit::OBSERVER)?;
    // What was left out is outside; the rest would have been a surprise.
    let said = |outside: &String| {
        let object = |left_out: &String| left_out.split(": ").next().unwrap_or_default().to_owned();
        draft.left_out.iter().any(|left_out| outside.contains(&object(left_out)))
    };
    let more: Vec<String> = tried.into_iter().filter(|outside| !said(outside)).collect();
    draft.left_out.extend(more);
    let complete = draft.left_out.is_empty();
    match format {
        Format::Json => print_json(&json!({
            "draft": draft.text,
            "complete": complete,
            "because": draft.because,
            "left_out": draft.left_out,
        }))?,
        Format::Text => {
            print(&draft.text);
            for why in &draft.because {
                tracing::info!("{}", visible(why));
            }
            for what in &draft.left_out {
                tell(&format!("not drafted: {}", visible(what)));
            }
        }
    }
    Ok(if complete { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

/// Whether a file is an event log, by its first line.
fn is_log(path: &Path) -> Result<bool> {
    let first = compare::first_line(&mut Log::open(path)?)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(compare::is_log(&first))
}

/// The one that was given, the one of the log, or the current directory.
fn workspace(args: &Draft, logged: Option<&[u8]>) -> Result<PathBuf> {
    if let (None, Some(logged)) = (&args.workspace, logged) {
        return Ok(OsStr::from_bytes(logged).into());
    }
    let given = args.workspace.as_deref().unwrap_or(Path::new("."));
    given.canonicalize().with_context(|| format!("cannot find the workspace {}", given.display()))
}

/// A profile with those that it extends, resolved on this machine.
fn known(name: &str, home: Option<&Path>) -> Known {
    let (mut read, mut search) = (Vec::new(), Vec::new());
    for root in profile::roots_of(name) {
        let all = if root.rights.search { &mut search } else { &mut read };
        all.extend(resolved(&root, home));
    }
    Known::new(name, read, search)
}

/// Where a profile's path leads; `None` when nothing is there.
fn resolved(root: &RootRule, home: Option<&Path>) -> Option<Vec<u8>> {
    // These are other files to each process.
    if is_kernel_file(root) {
        return Some(root.path.clone().into());
    }
    Some(root.place(None, home)?.canonicalize().ok()?.into_os_string().into_vec())
}

/// A draft as a policy, or what is wrong with it.
fn parsed(text: &str) -> Result<Policy, Vec<String>> {
    policy::parse("draft", text.as_bytes(), policy_file::ANY_DAY)
        .map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

/// The trace held against its draft: what still does not hold.
fn compared(text: &str, workspace: &Path, trace: &Path) -> Result<Vec<String>> {
    let policy = match parsed(text) {
        Ok(policy) => policy,
        Err(faults) => return Ok(faults),
    };
    let against = compare::Against {
        policy: &policy,
        workspace: &workspace.to_string_lossy(),
        today: policy_file::ANY_DAY,
        resolve: &mut |_| None,
    };
    let comparison = compare::compare(Log::open(trace)?, against)?;
    Ok(comparison.findings.iter().map(|it| format!("{}: {}", it.rule, it.message)).collect())
}

/// The run judged under its draft: what still keeps it from passing.
fn judged(text: &str, workspace: &Path, home: Option<&Path>, log: &Path) -> Result<Vec<String>> {
    let mut policy = match parsed(text) {
        Ok(policy) => policy,
        Err(faults) => return Ok(faults),
    };
    settle(&mut policy, workspace, home);
    let verdict = replay::replay(Log::open(log)?, policy)?.verdict;
    Ok(match verdict.verdict {
        Outcome::Pass => Vec::new(),
        Outcome::Fail => verdict.violations.iter().map(ToString::to_string).collect(),
        Outcome::Indeterminate => verdict.reasons,
    })
}

/// The roots as they are resolved here: the log knows those of its own policy only.
fn settle(policy: &mut Policy, workspace: &Path, home: Option<&Path>) {
    for root in policy.roots.entries.iter_mut().filter(|root| !is_kernel_file(root)) {
        let place = root.place(Some(workspace), home).and_then(|place| place.canonicalize().ok());
        if let Some(place) = place.as_ref().and_then(|place| place.to_str()) {
            place.clone_into(&mut root.path);
        }
    }
}
