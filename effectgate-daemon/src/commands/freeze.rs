//! `effectgate freeze`

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use effectgate_core::{
    Outcome,
    freeze::{self as core, Freeze as Row, State},
    policy::Fault,
};
use serde_json::json;

use super::{decide, policy, print, print_json};
use crate::{
    cli::{Format, Freeze, FreezeCommand, Sides},
    clock,
    diagnose::{counted, visible},
    exit::{self, Code, Failure, Outcomes},
    ledger::{self, Refused},
};

pub fn freeze(args: &Freeze, format: Format) -> Outcomes {
    match &args.command {
        FreezeCommand::Add { property, sides, owner, reason, expires } => {
            let wanted = Wanted { property, owner, reason, expires };
            add(args, sides, &wanted, format)
        }
        FreezeCommand::List => show(args, format, false),
        FreezeCommand::Check => show(args, format, true),
    }
}

struct Wanted<'a> {
    property: &'a str,
    owner: &'a str,
    reason: &'a str,
    expires: &'a str,
}

fn add(args: &Freeze, sides: &Sides, wanted: &Wanted<'_>, format: Format) -> Outcomes {
    let read = decide::read(sides).code(exit::USAGE)?;
    let row = row(&read, wanted).code(exit::DOES_NOT_HOLD)?;
    let name = args.ledger.to_string_lossy();
    let row = core::admit(row, &name, &clock::today())
        .map_err(|faults| anyhow!(lines(&faults)))
        .code(exit::DOES_NOT_HOLD)?;
    let added = ledger::add(&args.ledger, row.clone(), &clock::today()).code(exit::USAGE)?;
    added.map_err(|refused| why(refused, &args.ledger)).code(exit::DOES_NOT_HOLD)?;
    match format {
        Format::Json => print_json(&row)?,
        Format::Text => print(&line(&row, "frozen")),
    }
    Ok(exit::HOLDS)
}

fn why(refused: Refused, ledger: &Path) -> anyhow::Error {
    match refused {
        Refused::Faults(faults) => {
            policy::all(faults, &policy::bounded(ledger).unwrap_or_default())
        }
        Refused::Twin(row) => anyhow!(
            "it is frozen already until {} (UTC), by {}: change that row, if it is to hold longer",
            row.expires,
            row.owner
        ),
    }
}

/// The row, from what the bundles say.
fn row(read: &decide::Read, wanted: &Wanted<'_>) -> Result<Row> {
    if let Some(problem) = read.problems.first() {
        bail!("a freeze rests on the evidence of both runs, and that does not hold: {problem}");
    }
    let (left, right) = read.both().context("a bundle holds no verdict")?;
    for side in [left, right] {
        if side.verdict != Outcome::Pass {
            bail!(
                "the verdict of {} is {}: what an envelope covers is never frozen",
                side.runner,
                side.verdict.name()
            );
        }
    }
    if let Some(side) = [left, right].into_iter().find(|side| !side.is_named) {
        bail!("the {} bundle names no runner: there may be only one", side.runner);
    }
    if left.log == right.log {
        bail!("both bundles are of one and the same run");
    }
    if left.policy != right.policy {
        bail!("the two ran under different policies");
    }
    let told = [left, right].iter().any(|side| side.results.contains_key(wanted.property));
    if !told {
        bail!("neither runner says anything of {:?}", wanted.property);
    }
    Ok(Row {
        property: wanted.property.to_owned(),
        first: left.run(wanted.property),
        second: right.run(wanted.property),
        policy: left.policy.clone(),
        owner: wanted.owner.to_owned(),
        reason: wanted.reason.to_owned(),
        created: clock::today(),
        expires: wanted.expires.to_owned(),
    })
}

/// The rows; with `all_hold`, one that is not live is a failure.
fn show(args: &Freeze, format: Format, all_hold: bool) -> Outcomes {
    let rows = match ledger::read(&args.ledger).code(exit::USAGE)? {
        Ok(rows) => rows,
        Err(faults) if format == Format::Json => {
            print_json(&json!({ "holds": false, "faults": faults }))?;
            return Ok(exit::DOES_NOT_HOLD);
        }
        Err(faults) => {
            let bytes = policy::bounded(&args.ledger).code(exit::USAGE)?;
            return Err(Failure { code: exit::DOES_NOT_HOLD, error: policy::all(faults, &bytes) });
        }
    };
    let today = clock::today();
    let dead = rows.iter().filter(|row| row.state(&today) != State::Live).count();
    match format {
        Format::Json => {
            let rows = rows.iter().map(|row| json!({ "row": row, "state": word(row, &today) }));
            let rows: Vec<_> = rows.collect();
            print_json(&json!({ "holds": dead == 0, "day": today, "rows": rows }))?;
        }
        Format::Text => {
            rows.iter().for_each(|row| print(&line(row, word(row, &today))));
            if all_hold {
                let word = if dead == 0 { "holds" } else { "does not hold" };
                let s = if rows.len() == 1 { "" } else { "s" };
                let told = format!("{} row{s}, {dead} not live on {today}, UTC", rows.len());
                print(&format!("ledger: {word} ({told})\n"));
            }
        }
    }
    Ok(if all_hold && dead > 0 { exit::DOES_NOT_HOLD } else { exit::HOLDS })
}

fn word(row: &Row, today: &str) -> &'static str {
    match row.state(today) {
        State::Live => "live",
        State::Expired => "expired",
        State::Future => "not yet",
    }
}

fn line(row: &Row, word: &str) -> String {
    let runs = [&row.first, &row.second].map(|run| format!("{} {}", run.runner, run.result.name()));
    let told = format!(
        "{word}: {} ({}) from {} to {}, {}: {}",
        row.property,
        runs.join(", "),
        row.created,
        row.expires,
        row.owner,
        row.reason
    );
    visible(&told) + "\n"
}

fn lines(faults: &[Fault]) -> String {
    let lines: Vec<_> =
        faults.iter().map(|fault| format!("{}; {}", fault.message, fault.help)).collect();
    format!("it may not be frozen: {}\n{}", counted(faults.len()), lines.join("\n"))
}
