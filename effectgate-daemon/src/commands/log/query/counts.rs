//! How many records there are.

use std::collections::HashMap;

use effectgate_core::forensics::{Filter, Frame, Record, program_of};
use serde_json::json;

use super::{Sources, Step, asked};
use crate::{
    cli::{By, Format},
    commands::log::out::Out,
    exit::Outcomes,
};

/// What is counted one by one; the rest is counted together.
const MOST: usize = 1_000_000;
/// Bytes of their names.
const MOST_BYTES: usize = 256 << 20;

#[derive(Default)]
struct Counts {
    all: HashMap<String, Count>,
    bytes: usize,
    /// Of what is not listed.
    others: Count,
    total: Count,
}

#[derive(Clone, Copy, Default)]
struct Count {
    records: u64,
    outside: u64,
}

pub fn count(
    sources: &mut Sources,
    filter: &Filter,
    by: By,
    mut out: Out,
    format: Format,
) -> Outcomes {
    let mut counts = Counts::default();
    let mut on = |frame: &Frame<'_>, line: &[u8]| {
        if filter.is_exact()
            && let Some(word) = of_frame(by, frame)
        {
            if filter.may(frame, line) {
                counts.add(&String::from_utf8_lossy(word), frame.within);
            }
            return Step::On;
        }
        match asked(filter, frame, line) {
            Err(step) => return step,
            Ok(None) => {}
            Ok(Some(record)) => counts.add(&of_record(by, &record), record.within),
        }
        Step::On
    };
    for log in sources.logs() {
        sources.read(&log, filter, &mut on);
    }
    counts.print(&mut out, by, format);
    out.end(sources.code())
}

/// What the frame alone tells.
fn of_frame<'a>(by: By, frame: &Frame<'a>) -> Option<&'a [u8]> {
    match by {
        By::Class => Some(frame.class),
        By::Action => Some(frame.action),
        By::Decision => Some(frame.decision),
        // These may have escapes.
        By::Rule | By::Job | By::Program | By::Pid | By::Path | By::Host => None,
    }
}

/// Empty where a record has none.
fn of_record(by: By, record: &Record<'_>) -> String {
    match by {
        By::Class => record.class.to_string(),
        By::Action => record.action.to_string(),
        By::Decision => record.decision.to_string(),
        By::Rule => record.rule.name.to_string(),
        By::Job => record.job.to_string(),
        By::Program => program_of(record).to_owned(),
        By::Pid => record.process.as_ref().map(|by| by.pid.to_string()).unwrap_or_default(),
        By::Path => record.paths().next().unwrap_or_default().to_owned(),
        By::Host => {
            let object = &record.object;
            let name = object.name.as_deref().filter(|_| object.address.is_some());
            name.or(object.address.as_deref()).unwrap_or_default().to_owned()
        }
    }
}

impl Counts {
    fn add(&mut self, key: &str, within: bool) {
        self.total.add(within);
        if let Some(count) = self.all.get_mut(key) {
            return count.add(within);
        }
        if self.all.len() == MOST || self.bytes > MOST_BYTES {
            return self.others.add(within);
        }
        self.bytes += key.len();
        self.all.entry(key.to_owned()).or_default().add(within);
    }

    fn print(self, out: &mut Out, by: By, format: Format) {
        let mut all: Vec<(String, Count)> = self.all.into_iter().collect();
        all.sort_by(|(a, one), (b, other)| other.records.cmp(&one.records).then(a.cmp(b)));
        let name = clap::ValueEnum::to_possible_value(&by);
        let name = name.as_ref().map_or("", |value| value.get_name());
        if format == Format::Json {
            let counts: Vec<_> = all
                .iter()
                .map(|(key, count)| {
                    json!({ name: key, "records": count.records, "outside": count.outside })
                })
                .collect();
            out.value(&json!({
                "by": name,
                "records": self.total.records,
                "outside": self.total.outside,
                "counts": counts,
                "others": self.others.records,
            }));
            return;
        }
        out.text(&format!("{:>12} {:>9}  {name}", "records", "outside"));
        let line = |count: Count, key: &str| {
            let outside =
                if count.outside == 0 { String::new() } else { count.outside.to_string() };
            format!("{:>12} {outside:>9}  {key}", count.records)
        };
        for (key, count) in &all {
            let key = if key.is_empty() { "-" } else { key };
            if out.text(&line(*count, key)) == Step::Enough {
                return;
            }
        }
        if self.others.records > 0 {
            out.text(&line(self.others, "(others)"));
        }
        out.text(&line(self.total, "(all)"));
    }
}

impl Count {
    fn add(&mut self, within: bool) {
        self.records += 1;
        self.outside += u64::from(!within);
    }
}
