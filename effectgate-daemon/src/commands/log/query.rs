//! `effectgate log query`

mod counts;

use effectgate_core::forensics::{Frame, Record, object_text, program_of};

use super::{
    ask,
    out::Out,
    sources::{Sources, Step, asked},
};
use crate::{
    cli::{Format, LogQuery},
    commands::tell,
    exit::{self, Code, Outcomes},
};

/// What a person reads at once.
const PAGE: u64 = 1000;

pub fn query(args: &LogQuery, format: Format) -> Outcomes {
    let filter = ask::filter(&args.which).code(exit::USAGE)?;
    let mut sources = Sources::find(&args.logs.logs).code(exit::USAGE)?;
    let mut out = Out::new();
    if let Some(by) = args.count {
        return counts::count(&mut sources, &filter, by, out, format);
    }
    let limit = args.limit.or_else(|| out.is_terminal().then_some(PAGE)).unwrap_or(u64::MAX);
    let many = sources.are_many();
    let (mut found, end) = (0_u64, args.skip.saturating_add(limit));
    let mut is_more = false;
    let mut on = |frame: &Frame<'_>, line: &[u8]| {
        // Nothing of the record need be known that is not in its frame.
        if format == Format::Json && filter.is_exact() {
            if !filter.may(frame, line) {
                return Step::On;
            }
            return page(&mut found, args.skip, end, &mut is_more, || out.json(line));
        }
        match asked(&filter, frame, line) {
            Err(step) => step,
            Ok(None) => Step::On,
            Ok(Some(record)) => page(&mut found, args.skip, end, &mut is_more, || match format {
                Format::Json => out.json(line),
                Format::Text => out.text(&row(&record, many)),
            }),
        }
    };
    for log in sources.logs() {
        if sources.read(&log, &filter, &mut on) == Step::Enough {
            break;
        }
    }
    let code = out.end(sources.code())?;
    if is_more {
        tell(&format!("there is more; --skip {end} shows what follows"));
    }
    Ok(code)
}

/// Shows a record when it is on the page that is wanted.
fn page(
    found: &mut u64,
    skip: u64,
    end: u64,
    is_more: &mut bool,
    show: impl FnOnce() -> Step,
) -> Step {
    if *found >= end {
        *is_more = true;
        return Step::Enough;
    }
    *found += 1;
    if *found > skip { show() } else { Step::On }
}

/// When, what, by whom; an effect outside the policy is marked and names its
/// rule.
fn row(record: &Record<'_>, with_job: bool) -> String {
    let job = if with_job { format!("{} ", record.job) } else { String::new() };
    let mark = if record.within { ' ' } else { '!' };
    let by = match &record.process {
        Some(process) => format!("{}[{}]", program_of(record), process.pid),
        None => "effectgate".to_owned(),
    };
    let rule = if record.within { String::new() } else { format!("  ({})", rule(record)) };
    format!(
        "{} {job}{mark} {:<5} {:<9} {:<8} {by}  {}{rule}",
        short(&record.ts),
        record.class,
        record.action,
        record.decision,
        object_text(record),
    )
}

fn rule(record: &Record<'_>) -> String {
    match (&record.rule.file, record.rule.line) {
        (Some(file), Some(line)) => format!("{}, {file}:{line}", record.rule.name),
        _ => record.rule.name.to_string(),
    }
}

/// A record's time to the microsecond.
pub fn short(ts: &str) -> String {
    ts.get(..26).map_or_else(|| ts.to_owned(), |time| format!("{time}Z"))
}
