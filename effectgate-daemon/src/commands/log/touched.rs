//! `effectgate log who-touched`

use effectgate_core::forensics::{Filter, Frame, Touch, Touched};
use serde_json::json;

use super::{
    ask,
    out::Out,
    query::short,
    sources::{Sources, Step, asked},
};
use crate::{
    cli::{Format, LogWhoTouched},
    exit::{self, Code, Outcomes},
};

pub fn who_touched(args: &LogWhoTouched, format: Format) -> Outcomes {
    let mut conditions = ask::conditions(&args.which).code(exit::USAGE)?;
    let touched = std::slice::from_ref(&args.touched);
    let touched = ask::subtrees(touched).code(exit::USAGE)?;
    // Of several paths one is enough: those of --path are held against what
    // the bytes of the touched one leave.
    let also = std::mem::replace(&mut conditions.paths, touched);
    let filter = Filter::new(conditions);
    let mut sources = Sources::find(&args.logs.logs).code(exit::USAGE)?;
    let mut touched = Touched::default();
    let mut on = |frame: &Frame<'_>, line: &[u8]| {
        match asked(&filter, frame, line) {
            Err(step) => return step,
            Ok(Some(record))
                if also.is_empty()
                    || record.paths().any(|path| also.iter().any(|one| one.has(path))) =>
            {
                touched.add(&record);
            }
            Ok(_) => {}
        }
        Step::On
    };
    for log in sources.logs() {
        sources.read(&log, &filter, &mut on);
    }
    let mut out = Out::new();
    print(&touched, &mut out, format);
    out.end(sources.code())
}

fn print(touched: &Touched, out: &mut Out, format: Format) -> Step {
    let mut job = None;
    for touch in touched.list() {
        let step = match format {
            Format::Json => out.value(&value(touch)),
            Format::Text => {
                if job.replace(&touch.job) != Some(&touch.job) {
                    out.text(&format!("job {}", touch.job));
                }
                out.text(&row(touch))
            }
        };
        if step != Step::On {
            return step;
        }
    }
    match format {
        Format::Text if touched.list().is_empty() => out.text("nobody"),
        Format::Text if touched.unlisted > 0 => {
            out.text(&format!("and {} more effects of others", touched.unlisted))
        }
        _ => Step::On,
    }
}

fn row(touch: &Touch) -> String {
    let mark = if touch.within { ' ' } else { '!' };
    let when = match touch.count {
        1 => short(&touch.first),
        count => format!("{} .. {} {count}x", short(&touch.first), short(&touch.last)),
    };
    let by = match touch.pid {
        Some(pid) => format!("{}[{pid}]", touch.program),
        None => "effectgate".to_owned(),
    };
    let from: String =
        touch.parents.iter().map(|(pid, comm)| format!(" < {comm}[{pid}]")).collect();
    let more = if touch.more { " and others" } else { "" };
    let rule = if touch.within { String::new() } else { format!("  ({})", touch.rule) };
    format!(
        "  {mark} {when}  {} {} {}  {}{more}  by {by}{from}{rule}",
        touch.class, touch.action, touch.decision, touch.object
    )
}

fn value(touch: &Touch) -> serde_json::Value {
    let parents: Vec<_> =
        touch.parents.iter().map(|(pid, comm)| json!({ "pid": pid, "comm": comm })).collect();
    json!({
        "job": touch.job, "program": touch.program, "pid": touch.pid, "uid": touch.uid,
        "ancestry": parents, "class": touch.class, "action": touch.action,
        "decision": touch.decision, "within": touch.within, "rule": touch.rule,
        "object": touch.object, "one_object": !touch.more, "count": touch.count,
        "first": touch.first, "last": touch.last, "seq": touch.seq,
    })
}
