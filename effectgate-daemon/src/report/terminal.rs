//! A report for a terminal of 80 columns.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use effectgate_core::{Outcome, report::Report};

use super::files::Files;
use super::forest::Forest;
use super::tree::Tree;
use super::words::{self, counted, duration, number};
use crate::diagnose::{Look, visible};

/// Lines of one kind; more are counted.
const MOST_VIOLATIONS: usize = 10;
const MOST_PLACES: usize = 12;
const MOST_PEERS: usize = 10;
const MOST_PROCESSES: usize = 15;
/// A line that is only looked at is cut to this many columns.
const WIDTH: usize = 80;

/// What happened, where, by what, and against which line; the verdict last.
/// Nothing in it can steer a terminal but the colours that `look` asks for.
#[must_use]
pub fn text(report: &Report, look: Look) -> String {
    let mut text = String::new();
    let paint = Paint { colours: look.colours };
    head(&mut text, report, paint);
    findings(&mut text, report, paint);
    touched(&mut text, report, paint);
    processes(&mut text, report, paint);
    let style = match report.verdict.verdict {
        Outcome::Pass => AnsiColor::Green,
        Outcome::Fail => AnsiColor::Red,
        Outcome::Indeterminate => AnsiColor::Yellow,
    };
    let verdict = report.verdict.to_string();
    let _ = writeln!(text, "{}", paint.in_(style.on_default().bold(), &verdict));
    text
}

#[derive(Clone, Copy)]
struct Paint {
    colours: bool,
}

impl Paint {
    fn in_(self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn title(self, text: &str) -> String {
        self.in_(Style::new().bold(), text)
    }

    fn bad(self, text: &str) -> String {
        self.in_(AnsiColor::Red.on_default(), text)
    }

    fn doubt(self, text: &str) -> String {
        self.in_(AnsiColor::Yellow.on_default(), text)
    }

    fn faint(self, text: &str) -> String {
        self.in_(Style::new().dimmed(), text)
    }
}

fn head(text: &mut String, report: &Report, paint: Paint) {
    let (verdict, facts) = (&report.verdict, &report.facts);
    let job = format!("job {} on {}", visible(&verdict.job), visible(&facts.host));
    let _ = writeln!(text, "{}", paint.title(&job));
    let command = words::command(&verdict.command.argv);
    if !command.is_empty() {
        let _ = writeln!(text, "  command  {}", cut(&visible(&command), 2 * WIDTH));
    }
    let _ = writeln!(text, "  ended    {}", words::ending(verdict));
    let started = words::second(&verdict.started);
    let _ = writeln!(text, "  started  {started}, watched for {}", duration(words::length(report)));
    let (file, id) = (visible(&facts.policy_file), visible(&verdict.policy.id));
    let _ = writeln!(text, "  policy   {file} ({id})");
    let backend = verdict.backend.name();
    let _ = writeln!(
        text,
        "  watched  {backend}, mode {}, kernel {}\n",
        facts.mode,
        visible(&facts.kernel)
    );
}

fn findings(text: &mut String, report: &Report, paint: Paint) {
    let verdict = &report.verdict;
    if let Some(at) = report.disagreement {
        let note = format!("judging the log again differs from what it says, first at record {at}");
        let _ = writeln!(text, "{}\n", paint.doubt(&note));
    }
    for group in words::groups(verdict) {
        let rule = group.rule;
        let place = match (&rule.file, rule.line) {
            (Some(file), Some(line)) => format!("{}:{line}", visible(file)),
            _ => "in every policy".to_owned(),
        };
        let count = counted(group.violations.len() as u64, "violation");
        let _ = writeln!(text, "{} {place}: {count}", paint.title(rule.name));
        if let Some((number, line)) = rule.line.and_then(|n| Some((n, report.lines.get(&n)?))) {
            let line = format!("{number:>4} | {}", cut(&visible(line), WIDTH - 9));
            let _ = writeln!(text, "  {}", paint.faint(&line));
        }
        for violation in group.violations.iter().take(MOST_VIOLATIONS) {
            let times = if violation.count > 1 {
                format!(" ({}x)", violation.count)
            } else {
                String::new()
            };
            let (class, action) = (violation.class.name(), violation.action);
            let object = paint.bad(&visible(&violation.object));
            let stopped = violation.stopped().map(|how| format!(", {how}")).unwrap_or_default();
            let _ = writeln!(text, "  {class} {action} {object}{times}{stopped}");
            if let Some(process) = &violation.process {
                let program = violation.program.as_deref().unwrap_or("?");
                let _ = writeln!(text, "    by {}: {}", visible(program), words::lineage(process));
            }
            let after = report.times.get(&violation.seq);
            let after = after.map(|ts| duration(ts.saturating_sub(report.timeline.start)));
            let after = after.map(|after| format!("after {after}, ")).unwrap_or_default();
            let _ =
                writeln!(text, "    {}", paint.faint(&format!("{after}record {}", violation.seq)));
        }
        more(text, group.violations.len(), MOST_VIOLATIONS);
        text.push('\n');
    }
    if verdict.violations_unlisted > 0 {
        let _ = writeln!(
            text,
            "and {} that are not listed\n",
            counted(verdict.violations_unlisted, "violation")
        );
    }
    let doubts: Vec<_> =
        verdict.reasons.iter().filter(|reason| !words::counts_violations(reason)).collect();
    if !doubts.is_empty() {
        let _ = writeln!(text, "{}", paint.title("not known"));
        for reason in doubts {
            let _ = writeln!(text, "  {}", paint.doubt(&visible(reason)));
        }
        text.push('\n');
    }
}

fn touched(text: &mut String, report: &Report, paint: Paint) {
    let files = Files::new(report);
    let whole = &files.sums[0];
    let title = format!(
        "files: {}, {}, {}",
        counted(whole.reads, "read"),
        counted(whole.changes, "change"),
        counted(whole.runs, "run")
    );
    let _ = writeln!(text, "{}", paint.title(&title));
    let mut shown = Vec::new();
    for top in files.tops() {
        let top = files.shown(top);
        shown.push((0, top));
        // One step down where something is outside.
        if files.is_marked(top) {
            shown.extend(files.children(top).into_iter().map(|child| (1, files.shown(child))));
        }
    }
    for (depth, node) in shown.iter().take(MOST_PLACES) {
        let sums = &files.sums[*node];
        let mut figures = Vec::new();
        for (count, word) in [(sums.changes, "changed"), (sums.reads, "read"), (sums.runs, "run")] {
            if count > 0 {
                figures.push(format!("{} {word}", number(count)));
            }
        }
        let name = format!("{}{}", "  ".repeat(depth + 1), cut(&visible(&files.name(*node)), 46));
        let outside = match sums.violations {
            0 => String::new(),
            count => paint.bad(&format!("{} outside, ", number(count))),
        };
        let _ = writeln!(text, "{name:<50} {outside}{}", figures.join(", "));
    }
    more(text, shown.len(), MOST_PLACES);
    let repeated = words::repeats(&report.verdict);
    if !repeated.is_empty() {
        let note = format!("seen before, inside, and not listed: {repeated}");
        let _ = writeln!(text, "  {}", paint.faint(&note));
    }
    text.push('\n');
    let peers = &report.peers.listed;
    if peers.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", paint.title("hosts and sockets"));
    for peer in peers.iter().take(MOST_PEERS) {
        let place = visible(&words::place(peer));
        let name =
            peer.name.as_ref().map(|name| format!(" ({})", visible(name))).unwrap_or_default();
        let kind = peer.protocol.as_deref().unwrap_or(&peer.family);
        let outside = match peer.violations {
            0 => String::new(),
            count => paint.bad(&format!(", {} outside", number(count))),
        };
        let _ = writeln!(
            text,
            "  {} {kind} {place}{name}, {}{outside}",
            peer.op,
            counted(peer.count, "time")
        );
    }
    more(
        text,
        peers.len() + usize::try_from(report.peers.unlisted).unwrap_or(usize::MAX),
        MOST_PEERS,
    );
    text.push('\n');
}

fn processes(text: &mut String, report: &Report, paint: Paint) {
    let forest = Forest::new(&report.processes.all);
    let _ = writeln!(
        text,
        "{}",
        paint.title(&format!("processes: {}", number(forest.all.len() as u64)))
    );
    let mut left: Vec<(usize, usize)> = forest.roots.iter().rev().map(|root| (0, *root)).collect();
    let mut lines = 0;
    while let Some((depth, node)) = left.pop() {
        if lines < MOST_PROCESSES {
            let process = &forest.all[node];
            let alike = match forest.alike[node] {
                1 => process.pid.to_string(),
                count => format!("×{}", number(count)),
            };
            let line = format!(
                "{}{} {alike} {}",
                "  ".repeat(depth.min(12) + 1),
                visible(&process.comm),
                visible(&forest.argv(node))
            );
            let line = cut(&line, WIDTH - 14);
            let outside = match forest.sums[node].1 {
                0 => String::new(),
                count => format!(" {}", paint.bad(&format!("{} outside", number(count)))),
            };
            let _ = writeln!(text, "{line}{outside}");
        }
        lines += 1;
        left.extend(forest.children(node).into_iter().rev().map(|child| (depth + 1, child)));
    }
    more(text, lines, MOST_PROCESSES);
    text.push('\n');
}

fn more(text: &mut String, all: usize, shown: usize) {
    if all > shown {
        let _ = writeln!(text, "  and {} more", number((all - shown) as u64));
    }
}

/// At most this many columns, taking each character for one.
fn cut(line: &str, width: usize) -> String {
    match line.char_indices().nth(width) {
        None => line.to_owned(),
        Some(_) => line.chars().take(width - 1).chain(['…']).collect(),
    }
}
