//! `effectgate log timeline`

use effectgate_core::{
    forensics::{Frame, Group, Timeline},
    time,
};
use serde_json::json;

use super::{
    ask,
    out::Out,
    query::short,
    sources::{Sources, Step, asked},
};
use crate::{
    cli::{Format, LogTimeline},
    exit::{self, Code, Outcomes},
};

const MILLISECOND: u64 = time::SECOND / 1000;

pub fn timeline(args: &LogTimeline, format: Format) -> Outcomes {
    let filter = ask::filter(&args.which).code(exit::USAGE)?;
    let mut sources = Sources::find(&args.logs.logs).code(exit::USAGE)?;
    let mut out = Out::new();
    let many = sources.are_many();
    let show = |out: &mut Out, groups: Vec<Group>| {
        for group in groups {
            let step = match format {
                Format::Text => out.text(&row(&group, many)),
                Format::Json => out.value(&value(&group)),
            };
            if step != Step::On {
                return step;
            }
        }
        Step::On
    };
    for log in sources.logs() {
        let mut timeline = Timeline::new(args.window.saturating_mul(MILLISECOND));
        let mut on = |frame: &Frame<'_>, line: &[u8]| match asked(&filter, frame, line) {
            Err(step) => step,
            Ok(None) => Step::On,
            Ok(Some(record)) => show(&mut out, timeline.add(&record)),
        };
        if sources.read(&log, &filter, &mut on) == Step::Enough
            || show(&mut out, timeline.end()) == Step::Enough
        {
            break;
        }
    }
    out.end(sources.code())
}

fn row(group: &Group, with_job: bool) -> String {
    let job = if with_job { format!("{} ", group.job) } else { String::new() };
    let mark = if group.within { ' ' } else { '!' };
    let what = if group.count == 1 {
        cut(&group.object)
    } else if !group.within {
        format!("{}  ({}x)", group.object, group.count)
    } else {
        let below = match group.below.as_str() {
            "" | "/" => String::new(),
            below => format!(" below {below}"),
        };
        format!("{}x{below}, first {}", group.count, cut(&group.object))
    };
    let by = match (group.program.as_str(), group.pid(), group.processes()) {
        ("", ..) => "effectgate".to_owned(),
        (program, Some(pid), _) => format!("{program}[{pid}]"),
        (program, None, Some(many)) => format!("{program} ({many} processes)"),
        (program, None, None) => format!("{program} (many processes)"),
    };
    let rule = if group.within { String::new() } else { format!("  ({})", group.rule) };
    let decision = match group.decision.as_str() {
        "denied" | "killed" => format!(" {}", group.decision),
        _ => String::new(),
    };
    format!(
        "{} {job}{mark} {} {}{decision}  {by}  {what}{rule}",
        short(&group.first),
        group.class,
        group.action
    )
}

/// A command line may have thousands of arguments.
fn cut(object: &str) -> String {
    const LONGEST: usize = 200;
    match object.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &object[..at]),
        None => object.to_owned(),
    }
}

fn value(group: &Group) -> serde_json::Value {
    json!({
        "job": group.job, "first": group.first, "last": group.last, "seq": group.seq,
        "class": group.class, "action": group.action, "decision": group.decision,
        "within": group.within, "rule": group.rule, "program": group.program,
        "pid": group.pid(), "processes": group.processes(), "count": group.count,
        "object": group.object, "below": group.below,
    })
}
