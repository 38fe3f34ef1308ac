//! `effectgate report`

use std::{
    fs::File,
    io::{BufReader, Write},
    path::Path,
};

use anyhow::{Context, Result};
use effectgate_core::{policy as core_policy, replay, report};

use super::policy;
use crate::{
    cli::{Report, Wanted},
    exit::{self, Code, Outcomes},
    report::html,
};

pub fn report(args: &Report, wanted: Wanted) -> Outcomes {
    let report = read(&args.bundle).code(exit::USAGE)?;
    let page = html::page(&report);
    match &args.output {
        Some(file) => std::fs::write(file, page).code(exit::USAGE)?,
        None => super::print(&page),
    }
    Ok(exit::HOLDS)
}

fn read(bundle: &Path) -> Result<report::Report> {
    let path = bundle.join("policy");
    let bytes = policy::bounded(&path)?;
    let origin = replay::origin(open(bundle)?);
    let origin = origin.with_context(|| format!("no log in {}", bundle.display()))?;
    let parsed = core_policy::parse(&origin.policy_file, &bytes, &origin.day)
        .map_err(|faults| policy::all(faults, &bytes))?;
    report::of_log(open(bundle)?, parsed, &bytes)
        .with_context(|| format!("the log of {} does not hold", bundle.display()))
}

fn open(bundle: &Path) -> Result<BufReader<File>> {
    let path = bundle.join("events.jsonl");
    let log = File::open(&path).with_context(|| format!("cannot read the log {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 16, log))
}
