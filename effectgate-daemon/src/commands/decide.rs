//! `effectgate decide`

use std::{fmt, path::Path};

use anyhow::{Context, Result};
use effectgate_core::{
    bundle::VERDICT,
    decide::{self as core, Answer, Decision, Side},
    packet::Problem,
    replay::Replayed,
};
use serde::Serialize;
use serde_json::json;

use super::{print, print_json, tell};
use crate::{
    bundle::{Bundle, Checked, check},
    cli::{Decide, Format, Sides},
    clock,
    diagnose::{counted, shell, shell_path, visible},
    exit::{self, Code, Outcomes},
    ledger,
    sign::PublicKey,
    whole::directory,
};

pub fn decide(args: &Decide, format: Format) -> Outcomes {
    let sides = read(&args.sides).code(exit::USAGE)?;
    let ledger = args.ledger.as_deref().map(ledger::read).transpose().code(exit::USAGE)?;
    // One that cannot be read for its faults excuses nothing.
    let (rows, faults) = match ledger.transpose() {
        Ok(rows) => (rows.unwrap_or_default(), Vec::new()),
        Err(faults) => (Vec::new(), faults),
    };
    let problems = &sides.problems;
    let decision = sides
        .both()
        .filter(|_| problems.is_empty() && faults.is_empty())
        .map(|(left, right)| core::decide(left, right, &rows, &clock::today()));
    let answer = decision.as_ref().map_or(Answer::Fail, |decision| decision.decision);
    match format {
        Format::Json => print_json(&json!({
            "schema": core::SCHEMA,
            "decision": answer,
            "runs": sides.runs,
            "reasons": decision.as_ref().map(|decision| &decision.reasons),
            "frozen": decision.as_ref().map(|decision| &decision.frozen),
            "held": decision.as_ref().map(|decision| &decision.held),
            "problems": problems,
            "ledger_faults": faults,
            "not_proven": sides.said,
        }))?,
        Format::Text => {
            for problem in problems {
                print(&format!("{}\n", visible(&problem.to_string())));
            }
            for fault in &faults {
                print(&format!("{}\n", visible(&fault.to_string())));
            }
            sides.said.iter().for_each(|said| tell(said));
            for run in &sides.runs {
                print(&format!("{}\n", visible(&run.to_string())));
            }
            if let Some(decision) = &decision {
                explain(decision, &args.sides);
            }
            let found = match (problems.len(), faults.len()) {
                (0, 0) => String::new(),
                (0, faults) => format!(" (the ledger does not hold: {})", counted(faults)),
                _ => " (the evidence does not hold)".to_owned(),
            };
            print(&format!("decision: {}{found}\n", answer.name()));
        }
    }
    Ok(if answer == Answer::Pass { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

fn explain(decision: &Decision, sides: &Sides) {
    for reason in &decision.reasons {
        print(&format!("{}\n", visible(reason)));
    }
    for row in &decision.frozen {
        let line = format!(
            "frozen: {:?} until {} (UTC) by {}: {}",
            row.property, row.expires, row.owner, row.reason
        );
        print(&format!("{}\n", visible(&line)));
    }
    for held in &decision.held {
        let line = format!(
            "to freeze it: effectgate freeze add --property {} --left {} --right {} --owner NAME \
             --reason TEXT --expires DAY",
            shell(&held.property),
            shell_path(&sides.left),
            shell_path(&sides.right)
        );
        tell(&line);
    }
}

/// Which run it is that is decided on: an old bundle is to be noticed.
#[derive(Debug, Serialize)]
pub struct Run {
    side: &'static str,
    job: String,
    started: String,
    command: Vec<String>,
    bundle: String,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { side, job, started, command, bundle } = self;
        write!(f, "{side}: {job}, {started}, {}", command.join(" "))?;
        write!(f, " (bundle {})", bundle.get(..12).unwrap_or(bundle))
    }
}

/// Two bundles, and what is wrong with them.
pub struct Read {
    pub sides: Vec<Side>,
    pub runs: Vec<Run>,
    pub problems: Vec<Problem>,
    /// What nobody must take for proven.
    pub said: Vec<String>,
}

impl Read {
    /// Both sides; `None` where a bundle says too little for one.
    pub fn both(&self) -> Option<(&Side, &Side)> {
        match self.sides.as_slice() {
            [left, right] => Some((left, right)),
            _ => None,
        }
    }
}

/// Reads and checks both bundles.
///
/// # Errors
/// When one cannot be read.
pub fn read(args: &Sides) -> Result<Read> {
    let keys = args.key.iter().map(|key| PublicKey::read(key)).collect::<Result<Vec<_>>>()?;
    let mut read =
        Read { sides: Vec::new(), runs: Vec::new(), problems: Vec::new(), said: Vec::new() };
    for (side, path) in [("left", &args.left), ("right", &args.right)] {
        let mut problems = Vec::new();
        let bundle = Bundle::open(bundle_of(path), &mut problems)?;
        let mut checked = check(&bundle, &keys, &mut problems)
            .with_context(|| format!("the {side} bundle, {}", path.display()))?;
        read.problems.extend(problems.into_iter().map(|mut problem| {
            problem.file = format!("{}/{}", path.display(), problem.file);
            problem
        }));
        read.said.extend(checked.said.drain(..).map(|said| format!("{side}: {said}")));
        if let (Some(replayed), Some(bundle)) = (&checked.replayed, &checked.manifest) {
            let verdict = &replayed.verdict;
            read.runs.push(Run {
                side,
                job: verdict.job.clone(),
                started: verdict.started.clone(),
                command: verdict.command.argv.clone(),
                bundle: bundle.clone(),
            });
        }
        read.sides.extend(of(side, checked));
    }
    Ok(read)
}

/// The bundle that a verdict lies in.
fn bundle_of(path: &Path) -> &Path {
    let is_verdict = path.file_name().is_some_and(|name| name == VERDICT);
    if is_verdict { directory(path) } else { path }
}

/// A runner that is not named goes by its side in messages.
fn of(side: &str, checked: Checked) -> Option<Side> {
    let Checked { replayed: Some(Replayed { verdict, .. }), manifest: Some(bundle), .. } = &checked
    else {
        return None;
    };
    let properties = checked.properties.as_ref();
    Some(Side {
        runner: properties.map_or(side, |properties| &properties.runner).to_owned(),
        is_named: properties.is_some(),
        bundle: bundle.clone(),
        log: verdict.log.origin.clone(),
        policy: verdict.policy.sha256.clone(),
        verdict: verdict.verdict,
        results: core::results(properties, verdict.command.exit),
    })
}
