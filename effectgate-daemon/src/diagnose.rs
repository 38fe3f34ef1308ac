//! Findings: what is wrong at one place of a file a person wrote, drawn for
//! people as compilers draw it, and as SARIF for pull requests.

mod excerpt;
mod look;
pub mod sarif;

use std::collections::HashSet;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level as Drawn, Origin, Renderer, Snippet};
use effectgate_core::policy::Fault;
use serde_json::{Value, json};

pub use excerpt::visible;
pub use look::Look;

use excerpt::Excerpt;

/// One thing to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    pub fault: Fault,
    /// The line as it stands in the file, without its break. `None` when it
    /// is not known, or the fault is about the file as a whole.
    pub line: Option<Arc<[u8]>>,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It does not hold.
    Error,
    /// It holds, and somebody should know.
    Note,
}

/// Nobody reads more at once.
const MOST_DRAWN: usize = 500;

/// The faults of a file, each with the line it is in.
#[must_use]
pub fn of_file(faults: Vec<Fault>, bytes: &[u8]) -> Vec<Finding> {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let mut findings: Vec<Finding> = Vec::with_capacity(faults.len());
    for fault in faults {
        // A file may be one line with a hundred thousand faults.
        let shared = findings.last().filter(|last| last.fault.line == fault.line);
        let line = match shared {
            Some(last) => last.line.clone(),
            None => {
                let index = (fault.line as usize).checked_sub(1);
                let line = index.and_then(|index| lines.get(index));
                line.map(|line| Arc::from(line.strip_suffix(b"\r").unwrap_or(line)))
            }
        };
        findings.push(Finding { level: Level::Error, fault, line });
    }
    findings
}

/// Every finding with its line, the place marked, the rule, why it matters
/// (once for each rule) and what to write instead. Nothing in it can steer a
/// terminal but the colours that `look` asks for.
#[must_use]
pub fn text(findings: &[Finding], look: Look) -> String {
    let mut explained = HashSet::new();
    let mut text = String::new();
    for finding in findings.iter().take(MOST_DRAWN) {
        let rule = finding.fault.rule;
        let why = rule_why(rule).filter(|_| explained.insert(rule));
        text += &drawn(finding, why, look);
        text += "\n\n";
    }
    if findings.len() > MOST_DRAWN {
        text += &format!("and {} more; mend these first\n\n", findings.len() - MOST_DRAWN);
    }
    text
}

/// A finding for machines.
#[must_use]
pub fn json(finding: &Finding) -> Value {
    let Fault { rule, line, column, width, message, help, .. } = &finding.fault;
    json!({
        "rule": rule, "line": line, "column": column, "width": width,
        "message": message, "help": help, "why": rule_why(rule),
    })
}

/// Why a rule is there.
fn rule_why(_rule: &str) -> Option<&'static str> {
    None
}

fn drawn(finding: &Finding, why: Option<&'static str>, look: Look) -> String {
    let fault = &finding.fault;
    let (file, number) = (visible(&fault.file), fault.line as usize);
    let level = match finding.level {
        Level::Error => Drawn::ERROR,
        Level::Note => Drawn::NOTE,
    };
    let title = level.primary_title(visible(&fault.message)).id(fault.rule);
    let place = format!("{file}:{number}:{}", fault.column);
    let (mut group, shown) = match &finding.line {
        None => (title.element(Origin::path(place.clone())), place.clone()),
        Some(line) => {
            let Excerpt { text, mark } = Excerpt::of(line, fault.column, fault.width, look.width);
            let shown = format!("{file}:{number}:{}", text[..mark.start].chars().count() + 1);
            let marked = AnnotationKind::Primary.span(mark);
            let snippet = Snippet::source(text).path(file).line_start(number);
            (title.element(snippet.annotation(marked)), shown)
        }
    };
    if let Some(why) = why {
        group = group.element(Drawn::NOTE.message(why));
    }
    if !fault.help.is_empty() {
        group = group.element(Drawn::HELP.message(visible(&fault.help)));
    }
    let renderer = if look.colours { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.term_width(look.width).render(&[group]);
    // The renderer counts columns in the text that it shows, which is cut and
    // escaped. The title before the place is one line.
    match text.split_once('\n') {
        Some((title, rest)) => format!("{title}\n{}", rest.replacen(&shown, &place, 1)),
        None => text,
    }
}
