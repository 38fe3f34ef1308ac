//! `effectgate report`

use std::{
    fs::File,
    io::{self, BufWriter, ErrorKind, Write},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use effectgate_core::{replay::Records, report};
use serde_json::Value;

use crate::{
    bundle::Bundle,
    cli::{Report, ReportKind, Wanted},
    diagnose::Look,
    exit::{self, Code, Outcomes},
    report::{annotations, html, json, junit, markdown, ocsf, of_bundle, otlp, sarif, terminal},
};

pub fn report(args: &Report, wanted: Wanted) -> Outcomes {
    // What else is in there is for `verify` to find.
    let bundle = Bundle::open(&args.bundle, &mut Vec::new()).code(exit::USAGE)?;
    let what = || format!("no report of {}", args.bundle.display());
    let report = of_bundle(&bundle).with_context(what).code(exit::USAGE)?;
    let mut out = Out::to(args.output.as_deref()).code(exit::USAGE)?;
    let written = match Form::of(&args.kind, wanted) {
        Form::Text => out.put(terminal::text(&report, out.look()).as_bytes()),
        Form::Json => json::line(&report).map_err(Into::into).and_then(|line| out.line(&line)),
        Form::Html => out.put(html::page(&report).as_bytes()),
        Form::Markdown => out.put(markdown::page(&report).as_bytes()),
        Form::Annotations => out.put(annotations::commands(&report).as_bytes()),
        Form::Sarif => in_sarif(&report, &mut out),
        Form::Junit => junit::document(&report).map_err(Into::into).and_then(|text| out.put(&text)),
        Form::Ocsf => in_ocsf(&bundle, &report, &mut out),
        Form::Otlp => in_otlp(&bundle, &report, &mut out),
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

fn in_ocsf(bundle: &Bundle, report: &report::Report, out: &mut Out) -> Result<()> {
    each_record(bundle, report, |record| match ocsf::event(report, record) {
        Some(event) => out.line(&json::line(&event)?),
        None => Ok(()),
    })?;
    for finding in ocsf::findings(report) {
        out.line(&json::line(&finding)?)?;
    }
    Ok(())
}

fn in_otlp(bundle: &Bundle, report: &report::Report, out: &mut Out) -> Result<()> {
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
    bundle: &Bundle,
    report: &report::Report,
    mut show: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut records = Records::open(bundle.log()?)?;
    let mut head = None;
    while let Some((_, line)) = records.next()? {
        show(&line.value)?;
        head = line.value["hash"].as_str().map(str::to_owned);
    }
    let same = head.as_ref() == Some(&report.verdict.log.head);
    ensure!(same, "the log changed while it was read; try again");
    Ok(())
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
