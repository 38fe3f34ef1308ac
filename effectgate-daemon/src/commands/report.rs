//! `effectgate report`

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, ErrorKind, Write},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use effectgate_core::{policy as core_policy, replay, report};
use serde_json::Value;

use super::policy;
use crate::{
    cli::{Report, ReportKind, Wanted},
    diagnose::Look,
    exit::{self, Code, Outcomes},
    report::{annotations, html, json, junit, markdown, ocsf, otlp, sarif, terminal},
};

pub fn report(args: &Report, wanted: Wanted) -> Outcomes {
    let bundle = &args.bundle;
    let report = read(bundle).code(exit::USAGE)?;
    let mut out = Out::to(args.output.as_deref()).code(exit::USAGE)?;
    let written = match Form::of(&args.kind, wanted) {
        Form::Text => out.put(terminal::text(&report, out.look()).as_bytes()),
        Form::Json => json::line(&report).map_err(Into::into).and_then(|line| out.line(&line)),
        Form::Html => out.put(html::page(&report).as_bytes()),
        Form::Markdown => out.put(markdown::page(&report).as_bytes()),
        Form::Annotations => out.put(annotations::commands(&report).as_bytes()),
        Form::Sarif => in_sarif(&report, &mut out),
        Form::Junit => junit::document(&report).map_err(Into::into).and_then(|text| out.put(&text)),
        Form::Ocsf => in_ocsf(bundle, &report, &mut out),
        Form::Otlp => in_otlp(bundle, &report, &mut out),
    };
    written.and_then(|()| out.end()).code(exit::USAGE)?;
    Ok(exit::HOLDS)
}

/// What is made.
enum Form {
    Text,
    Json,
    Html,
    Markdown,
    Annotations,
    Sarif,
    Junit,
    Ocsf,
    Otlp,
}

impl Form {
    fn of(kind: &ReportKind, wanted: Wanted) -> Form {
        match kind {
            ReportKind { html: true, .. } => Form::Html,
            ReportKind { markdown: true, .. } => Form::Markdown,
            ReportKind { annotations: true, .. } => Form::Annotations,
            ReportKind { sarif: true, .. } => Form::Sarif,
            ReportKind { junit: true, .. } => Form::Junit,
            ReportKind { ocsf: true, .. } => Form::Ocsf,
            ReportKind { otlp: true, .. } => Form::Otlp,
            _ => match wanted {
                Wanted::Text => Form::Text,
                Wanted::Json => Form::Json,
                Wanted::Sarif => Form::Sarif,
            },
        }
    }
}

fn in_sarif(report: &report::Report, out: &mut Out) -> Result<()> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    out.line(&json::line(&sarif::log(report, &here))?)
}

fn in_ocsf(bundle: &Path, report: &report::Report, out: &mut Out) -> Result<()> {
    each_record(bundle, report, |record| match ocsf::event(report, record) {
        Some(event) => out.line(&json::line(&event)?),
        None => Ok(()),
    })?;
    for finding in ocsf::findings(report) {
        out.line(&json::line(&finding)?)?;
    }
    Ok(())
}

fn in_otlp(bundle: &Path, report: &report::Report, out: &mut Out) -> Result<()> {
    let given = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut batch = Vec::new();
    let mut flush = |batch: &mut Vec<Value>| -> Result<()> {
        let records = std::mem::take(batch);
        out.line(&json::line(&otlp::request(report, &given, records))?)
    };
    each_record(bundle, report, |record| {
        batch.extend(otlp::record(record));
        if batch.len() == otlp::BATCH { flush(&mut batch) } else { Ok(()) }
    })?;
    if !batch.is_empty() {
        flush(&mut batch)?;
    }
    Ok(())
}

/// The log's records once more: they are more than are kept.
fn each_record(
    bundle: &Path,
    report: &report::Report,
    mut show: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut result = Ok(());
    let verified = replay::records(open(bundle)?, |record| {
        if result.is_ok() {
            result = show(record);
        }
    })
    .with_context(|| format!("the log of {} does not hold", bundle.display()))?;
    ensure!(
        verified.head == report.verdict.log.head,
        "the log of {} changed while it was read; try again",
        bundle.display()
    );
    result
}

fn read(bundle: &Path) -> Result<report::Report> {
    ensure!(bundle.is_dir(), "{} is no evidence directory", bundle.display());
    let bytes = policy::bounded(&bundle.join("policy"))?;
    let what = || format!("the log of {} does not hold", bundle.display());
    let parsed = match replay::origin(open(bundle)?) {
        Some(origin) => core_policy::parse(&origin.policy_file, &bytes, &origin.day)
            .map_err(|faults| policy::all(faults, &bytes))?,
        // Reading it as a log says what is wrong.
        None => {
            let verified = replay::verify(open(bundle)?).with_context(what)?;
            anyhow::bail!("the log of job {} names no policy file", verified.job);
        }
    };
    report::of_log(open(bundle)?, parsed, &bytes).with_context(what)
}

fn open(bundle: &Path) -> Result<BufReader<File>> {
    let path = bundle.join("events.jsonl");
    let log =
        File::open(&path).with_context(|| format!("cannot read the log {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 16, log))
}

/// Where a report goes. That nobody reads on is no failure.
struct Out {
    writer: BufWriter<Box<dyn Write>>,
    /// The file's name.
    file: Option<String>,
    unread: bool,
}

impl Out {
    fn to(path: Option<&Path>) -> Result<Out> {
        let writer: Box<dyn Write> = match path {
            Some(path) => Box::new(
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?,
            ),
            None => Box::new(io::stdout()),
        };
        let file = path.map(|path| path.display().to_string());
        Ok(Out { writer: BufWriter::with_capacity(1 << 16, writer), file, unread: false })
    }

    /// What can be shown there.
    fn look(&self) -> Look {
        if self.file.is_some() { Look::PLAIN } else { Look::of(&io::stdout()) }
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        self.put(line)?;
        self.put(b"\n")
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.unread {
            return Ok(());
        }
        let written = self.writer.write_all(bytes);
        self.judge(written)
    }

    fn end(mut self) -> Result<()> {
        let written = if self.unread { Ok(()) } else { self.writer.flush() };
        self.judge(written)
    }

    fn judge(&mut self, written: io::Result<()>) -> Result<()> {
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe && self.file.is_none() => {
                self.unread = true;
                Ok(())
            }
            other => other.with_context(|| {
                format!("cannot write {}", self.file.as_deref().unwrap_or("to standard output"))
            }),
        }
    }
}
