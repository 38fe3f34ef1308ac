//! `effectgate compare`

use std::{fmt::Write as _, io::ErrorKind, path::Path};

use anyhow::{Context, anyhow, bail};
use effectgate_core::{
    compare::{self, Against, Comparison},
    policy::{self as core_policy, Kind},
};

use super::{leads::leads_to, policy, print, print_json, print_sarif};
use crate::{
    cli::{Compare, Wanted},
    clock,
    diagnose::{self, Decided, Finding, Level, Look, Place},
    exit::{self, Code, Failure, Outcomes},
    log::Log,
};

pub fn compare(args: &Compare, wanted: Wanted) -> Outcomes {
    let today = clock::today();
    let name = args.manifest.to_string_lossy();
    let bytes = policy::bounded(&args.manifest).code(exit::USAGE)?;
    let manifest = core_policy::parse(&name, &bytes, &today)
        .map_err(|faults| policy::all(faults, &bytes))
        .code(exit::DOES_NOT_HOLD)?;
    if manifest.kind != Kind::Manifest {
        let error = anyhow!("{name} is an envelope; a trace is held against a manifest");
        return Err(Failure { code: exit::USAGE, error });
    }
    let workspace = workspace(&args.workspace).code(exit::USAGE)?;
    let what = || format!("cannot read the trace {}", args.trace.display());
    let there = args.trace.metadata().map(|_| Log::open(&args.trace));
    let comparison = match there {
        Ok(trace) => {
            let trace = trace.code(exit::USAGE)?;
            let against = Against {
                policy: &manifest,
                workspace: &workspace,
                today: &today,
                resolve: &mut resolve,
            };
            compare::compare(trace, against).with_context(what).code(exit::USAGE)?
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            compare::without_trace(&manifest, &workspace, &today)
        }
        Err(error) => return Err(error).with_context(what).code(exit::USAGE),
    };
    let trace = args.trace.to_string_lossy();
    match wanted {
        Wanted::Json => print_json(&comparison)?,
        Wanted::Text => print(&text(&trace, &comparison)),
        Wanted::Sarif => print_sarif(&findings(&trace, &comparison), &[])?,
    }
    Ok(if comparison.holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

/// The workspace as an absolute path, links followed.
///
/// # Errors
/// When it is no directory, or not text.
pub fn workspace(path: &Path) -> anyhow::Result<String> {
    let what = || format!("the workspace {}", path.display());
    let real = path.canonicalize().with_context(what)?;
    if real.parent().is_none() {
        bail!(
            "the workspace is /, below which nothing is outside; name the repository's directory"
        );
    }
    let text = real.into_os_string().into_string();
    text.map_err(|path| anyhow!("the workspace {path:?} is not UTF-8"))
}

/// Where an absolute path leads; `None` where that is not known.
pub fn resolve(path: &str) -> Option<String> {
    leads_to(Path::new(path)).ok()?.into_os_string().into_string().ok()
}

fn text(trace: &str, comparison: &Comparison) -> String {
    let findings = findings(trace, comparison);
    let mut text = diagnose::text(&findings, Look::of(&std::io::stdout()));
    let unlisted = comparison.total() - findings.len() as u64;
    if unlisted > 0 {
        let _ = writeln!(text, "and {unlisted} more of the same rules");
    }
    let _ = writeln!(text, "{comparison}");
    text
}

/// The lines themselves are not shown: secrets may stand in them.
fn findings(trace: &str, comparison: &Comparison) -> Vec<Finding> {
    let finding = |found: &compare::Finding| {
        let field = found.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        Finding {
            level: Level::Error,
            rule: found.rule,
            file: trace.to_owned(),
            place: found.line.map(|line| Place { line, mark: None }),
            message: format!("{field}{}", found.message),
            why: found.why,
            help: found.help.clone(),
            decided: found.decided.as_ref().map(|cited| Decided {
                file: cited.file.clone(),
                line: cited.line,
                key: cited.key,
            }),
        }
    };
    comparison.findings.iter().map(finding).collect()
}
