//! `effectgate log diff`

use effectgate_core::forensics::{Change, Difference, Frame, Record, Run, Side};
use serde_json::json;

use super::{
    ask,
    out::Out,
    sources::{Sources, Step, asked},
};
use crate::{
    cli::{Format, LogDiff},
    exit::{self, Code, Failure, Outcomes},
};

pub fn diff(args: &LogDiff, format: Format) -> Outcomes {
    let filter = ask::filter(&args.which).code(exit::USAGE)?;
    let mut difference = Difference::default();
    let mut code = exit::HOLDS;
    for (path, is_right) in [(&args.left, false), (&args.right, true)] {
        let mut sources = Sources::one(path).code(exit::USAGE)?;
        let (mut run, mut too_many) = (Run::default(), None);
        let mut on = |frame: &Frame<'_>, line: &[u8]| {
            if frame.seq == 0 {
                match Record::of(line) {
                    Ok(opening) => run = Run::of(&opening),
                    Err(_) => return Step::Broken,
                }
            }
            match asked(&filter, frame, line) {
                Err(step) => return step,
                Ok(None) => {}
                Ok(Some(record)) => {
                    if let Err(error) = difference.add(is_right, &run, &record) {
                        too_many = Some(error);
                        return Step::Enough;
                    }
                }
            }
            Step::On
        };
        for log in sources.logs() {
            sources.read(&log, &filter, &mut on);
        }
        if let Some(error) = too_many {
            return Err(Failure { code: exit::USAGE, error: error.into() });
        }
        code = code.max(sources.code());
    }
    let differs = difference.changes().next().is_some();
    let mut out = Out::new();
    match format {
        Format::Text => text(&difference, &mut out),
        Format::Json => out.value(&value(&difference)),
    };
    // What could not be read may be where they differ.
    let code = if code == exit::HOLDS && differs { exit::DOES_NOT_HOLD } else { code };
    out.end(code)
}

fn text(difference: &Difference, out: &mut Out) -> Step {
    let (mut left, mut right, mut judged) = (0_u64, 0_u64, 0_u64);
    for change in difference.changes() {
        let step = match (change.left, change.right) {
            (Some(side), None) => {
                left += 1;
                out.text(&row('-', &change, side))
            }
            (None, Some(side)) => {
                right += 1;
                out.text(&row('+', &change, side))
            }
            (Some(before), Some(after)) => {
                judged += 1;
                out.text(&row('-', &change, before));
                out.text(&row('+', &change, after))
            }
            (None, None) => Step::On,
        };
        if step != Step::On {
            return step;
        }
    }
    let same = difference.effects() as u64 - left - right - judged;
    out.text(&format!(
        "{left} only on the left, {right} only on the right, {judged} judged otherwise, {same} the same"
    ))
}

fn row(sign: char, change: &Change<'_>, side: &Side) -> String {
    let judged = match (side.within, side.decision.as_str()) {
        (true, _) => String::new(),
        (false, decision) => format!("  (outside, {decision}: {})", side.rule),
    };
    let times = if side.count == 1 { String::new() } else { format!(" ({}x)", side.count) };
    let by = if side.program.is_empty() { String::new() } else { format!("  by {}", side.program) };
    format!("{sign} {} {} {}{by}{times}{judged}", change.class, change.action, change.object)
}

fn value(difference: &Difference) -> serde_json::Value {
    let side = |side: &Side| {
        json!({
            "within": side.within, "decision": side.decision, "rule": side.rule,
            "program": side.program, "count": side.count, "seq": side.seq,
        })
    };
    let changes: Vec<_> = difference
        .changes()
        .map(|change| {
            json!({
                "class": change.class, "action": change.action, "object": change.object,
                "left": change.left.map(side), "right": change.right.map(side),
            })
        })
        .collect();
    let same = difference.effects() - changes.len();
    json!({ "changes": changes, "same": same })
}
