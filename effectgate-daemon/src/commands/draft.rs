//! `effectgate draft`

use std::{fs::File, io::BufReader, os::unix::ffi::OsStrExt, path::Path};

use anyhow::{Context, Result};
use effectgate_core::{
    Outcome,
    draft::{self, Used, Wanted},
    policy, replay,
};
use serde_json::json;

use super::{print, print_json};
use crate::{
    cli::{Draft, Format},
    exit::{self, Code, Outcomes},
};

/// What stands for a name until people have given one, to try the draft.
const NAMELESS: &str = "draft";

pub fn draft(args: &Draft, format: Format) -> Outcomes {
    let workspace = args
        .workspace
        .canonicalize()
        .with_context(|| format!("cannot find the workspace {}", args.workspace.display()))
        .code(exit::USAGE)?;
    let used = draft::of_log(open(&args.from).code(exit::USAGE)?)
        .with_context(|| format!("the log {} does not hold", args.from.display()))
        .code(exit::USAGE)?;
    let wanted = Wanted {
        workspace: workspace.as_os_str().as_bytes(),
        root_depth: args.root_depth.map(usize::from),
        id: args.agent_id.as_deref(),
        owner: args.owner.as_deref(),
    };
    let mut draft = if args.envelope { used.envelope(&wanted) } else { used.manifest(&wanted) };
    if args.envelope {
        let tried = tried(&used, &wanted, &args.from).code(exit::OBSERVER)?;
        draft.left_out.extend(tried);
    }
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
                tracing::info!("{why}");
            }
            for what in &draft.left_out {
                tracing::warn!("not drafted: {what}");
            }
        }
    }
    Ok(if complete { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

fn open(path: &Path) -> Result<BufReader<File>> {
    let file =
        File::open(path).with_context(|| format!("cannot read the log {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

/// The run judged under its draft: what still keeps it from passing.
fn tried(used: &Used, wanted: &Wanted<'_>, log: &Path) -> Result<Vec<String>> {
    let named = Wanted { id: Some(NAMELESS), owner: Some(NAMELESS), ..*wanted };
    let text = used.envelope(&named).text;
    let policy = match policy::parse(NAMELESS, text.as_bytes()) {
        Ok(policy) => policy,
        Err(faults) => return Ok(faults.iter().map(ToString::to_string).collect()),
    };
    let verdict = replay::replay(open(log)?, policy)?.verdict;
    Ok(match verdict.verdict {
        Outcome::Pass => Vec::new(),
        Outcome::Fail => verdict.violations.iter().map(ToString::to_string).collect(),
        Outcome::Indeterminate => verdict.reasons,
    })
}
