//! The question on the command line, as a filter.

use std::path::{Component, Path, PathBuf, absolute};

use anyhow::{Result, anyhow, bail};
use effectgate_core::{
    forensics::{Conditions, Edge, Filter, Hosts, Program, Subtree, when},
    input::{Class, FileOp, Limited, NetOp},
    judge::Decision,
    record::{EnvAction, GuardAction, ProcessAction},
};

use crate::{cli::Which, clock, engine::real};

/// # Errors
/// When something is asked for that no record can have.
pub fn filter(which: &Which) -> Result<Filter> {
    conditions(which).map(Filter::new)
}

/// # Errors
/// When something is asked for that no record can have.
pub fn conditions(which: &Which) -> Result<Conditions> {
    let now = clock::now();
    let time = |text: &Option<String>, edge| {
        text.as_ref().map(|text| when(text, edge, now)).transpose().map_err(|what| anyhow!(what))
    };
    let within = match (which.outside, which.inside) {
        (false, false) => None,
        (outside, _) => Some(!outside),
    };
    Ok(Conditions {
        classes: words(&which.class, "class", Class::ALL, Class::name)?,
        actions: actions(&which.action)?,
        decisions: words(&which.decision, "decision", Decision::ALL, Decision::name)?,
        within,
        paths: subtrees(&which.path)?,
        hosts: which.host.iter().map(|host| hosts(host)).collect::<Result<_>>()?,
        programs: which.program.iter().map(|program| Program::new(bytes(program))).collect(),
        pids: which.pid.clone(),
        jobs: which.job.clone(),
        rules: which.rule.clone(),
        since: time(&which.since, Edge::Since)?,
        until: time(&which.until, Edge::Until)?,
    })
}

/// Paths as they are in records, from where the command was started; and where
/// they lead to here, since records name no links.
///
/// # Errors
/// When one is empty.
pub fn subtrees(paths: &[PathBuf]) -> Result<Vec<Subtree>> {
    let mut all = Vec::new();
    for path in paths {
        all.push(subtree(path)?);
        // As far as it is there: the job may have removed the rest.
        let real = Subtree::new(bytes(&real(path)?));
        if !all.contains(&real) {
            all.push(real);
        }
    }
    Ok(all)
}

fn subtree(path: &Path) -> Result<Subtree> {
    let path = absolute(path).map_err(|error| anyhow!("the path {}: {error}", path.display()))?;
    // Records have no `..`; nor is what it would lead to here what it was there.
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    Ok(Subtree::new(bytes(&whole)))
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

fn hosts(text: &str) -> Result<Hosts> {
    Hosts::parse(text).map_err(|what| anyhow!("--host: {what}"))
}

fn words<T: Copy>(
    asked: &[String],
    kind: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Vec<T>> {
    let word = |asked: &String| match all.iter().find(|one| name(**one) == asked) {
        Some(one) => Ok(*one),
        None => {
            let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
            bail!("--{kind}: there is no {kind} {asked:?}; there are {}", names.join(", "))
        }
    };
    asked.iter().map(word).collect()
}

fn actions(asked: &[String]) -> Result<Vec<String>> {
    let mut all: Vec<&str> = Vec::new();
    all.extend(FileOp::ALL.iter().map(|one| one.name()));
    all.extend(NetOp::ALL.iter().map(|one| one.name()));
    all.extend(ProcessAction::ALL.iter().map(|one| one.name()));
    all.extend(EnvAction::ALL.iter().map(|one| one.name()));
    all.extend(Limited::ALL.iter().map(|one| one.name()));
    all.extend(GuardAction::ALL.iter().map(|one| one.name()));
    if let Some(unknown) = asked.iter().find(|asked| !all.contains(&asked.as_str())) {
        bail!("--action: there is no action {unknown:?}; there are {}", all.join(", "));
    }
    Ok(asked.to_vec())
}

/// A path on the command line, for messages.
pub fn shown(path: &Path) -> String {
    crate::diagnose::visible(&path.to_string_lossy())
}
