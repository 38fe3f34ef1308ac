//! Findings: what is wrong at one place of a file a person wrote, drawn for
//! people as compilers draw it, and as SARIF for pull requests.

mod excerpt;
mod look;
pub mod sarif;
mod shell;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level as Drawn, Origin, Renderer, Snippet};
use effectgate_core::{policy::Fault, rules};
use serde_json::{Value, json};

pub use excerpt::visible;
pub use look::Look;
pub use shell::{shell, shell_path};

use excerpt::Excerpt;

/// One thing to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    /// A stable identifier, for machines.
    pub rule: &'static str,
    /// The file's name as it was given.
    pub file: String,
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// Why the rule is there; may be empty.
    pub why: &'static str,
    /// What to do; may be empty.
    pub help: String,
    /// Another place that decided.
    pub decided: Option<Decided>,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It does not hold.
    Error,
    /// It holds, and somebody should know.
    Note,
}

/// Where in its file a finding is. `None` in a finding: the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: u64,
    /// What is marked in the line; `None` where the line is not to be shown.
    pub mark: Option<Mark>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// From 1, in characters.
    pub column: u32,
    /// In characters.
    pub width: u32,
    /// The line as it stands in the file, without its break.
    pub text: Arc<[u8]>,
}

/// A line of a policy by which something was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub file: String,
    /// From 1.
    pub line: u32,
    pub key: &'static str,
}

/// Nobody reads more at once.
const MOST_DRAWN: usize = 500;

/// The faults of a file, each with the line it is in.
#[must_use]
pub fn of_file(faults: Vec<Fault>, bytes: &[u8]) -> Vec<Finding> {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // A file may be one line with a hundred thousand faults.
    let mut last: Option<(u32, Arc<[u8]>)> = None;
    let mut line = |number: u32| {
        if let Some((same, line)) = &last
            && *same == number
        {
            return Some(line.clone());
        }
        let line = lines.get((number as usize).checked_sub(1)?)?;
        let line: Arc<[u8]> = Arc::from(line.strip_suffix(b"\r").unwrap_or(line));
        last = Some((number, line.clone()));
        Some(line)
    };
    let finding = |Fault { file, rule, line: number, column, width, message, help }| {
        let mark = line(number).map(|text| {
            let width = excerpt::to_quote(&text, column, width);
            Mark { column, width, text }
        });
        Finding {
            level: Level::Error,
            rule,
            file,
            place: Some(Place { line: u64::from(number), mark }),
            message,
            why: rules::why(rule),
            help,
            decided: None,
        }
    };
    faults.into_iter().map(finding).collect()
}

/// Every finding with its line, the place marked, the rule, why it matters
/// (once for each rule) and what to write instead. A place is shown once where
/// several follow each other. Nothing in it can steer a
/// terminal but the colours that `look` asks for.
#[must_use]
pub fn text(findings: &[Finding], look: Look) -> String {
    let mut explained = HashSet::new();
    let mut last = None;
    let mut text = String::new();
    for finding in findings.iter().take(MOST_DRAWN) {
        let why = if explained.insert(finding.rule) { finding.why } else { "" };
        // Ten keys that are missing are missing at one place.
        let here = Some((&finding.file, &finding.place));
        text += &drawn(finding, why, here == last, look);
        text += "\n\n";
        last = here;
    }
    if findings.len() > MOST_DRAWN {
        text += &format!("and {} more; mend these first\n\n", findings.len() - MOST_DRAWN);
    }
    text
}

/// `1 fault`, `2 faults`
#[must_use]
pub fn counted(faults: usize) -> String {
    format!("{faults} fault{}", if faults == 1 { "" } else { "s" })
}

/// A finding for machines.
#[must_use]
pub fn json(finding: &Finding) -> Value {
    let Finding { rule, place, message, why, help, .. } = finding;
    let mark = place.as_ref().and_then(|place| place.mark.as_ref());
    json!({
        "rule": rule,
        "line": place.as_ref().map(|place| place.line),
        "column": mark.map(|mark| mark.column),
        "width": mark.map(|mark| mark.width),
        "message": message, "help": help, "why": why,
    })
}

fn drawn(finding: &Finding, why: &'static str, seen: bool, look: Look) -> String {
    let level = match finding.level {
        Level::Error => Drawn::ERROR,
        Level::Note => Drawn::NOTE,
    };
    let title = level.primary_title(visible(&finding.message)).id(finding.rule);
    let place = place(finding);
    let (mut group, shown) = match &finding.place {
        Some(Place { line, mark: Some(Mark { column, width, text }) }) if !seen => {
            let Excerpt { text, mark } = Excerpt::of(text, *column, *width, look.width);
            let file = visible(&finding.file);
            let shown = format!("{file}:{line}:{}", text[..mark.start].chars().count() + 1);
            let marked = AnnotationKind::Primary.span(mark);
            let snippet = Snippet::source(text).path(file);
            let snippet = snippet.line_start(usize::try_from(*line).unwrap_or(usize::MAX));
            (title.element(snippet.annotation(marked)), shown)
        }
        _ => (title.element(Origin::path(place.clone())), place.clone()),
    };
    if !why.is_empty() {
        group = group.element(Drawn::NOTE.message(why));
    }
    if let Some(Decided { file, line, key }) = &finding.decided {
        let text = format!("{key}, {}:{line}, decides", visible(file));
        group = group.element(Drawn::NOTE.message(text));
    }
    if !finding.help.is_empty() {
        group = group.element(Drawn::HELP.message(visible(&finding.help)));
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

/// `file`, `file:line` or `file:line:column`.
fn place(finding: &Finding) -> String {
    let file = visible(&finding.file);
    match &finding.place {
        None => file,
        Some(Place { line, mark: None }) => format!("{file}:{line}"),
        Some(Place { line, mark: Some(mark) }) => format!("{file}:{line}:{}", mark.column),
    }
}
