//! `effectgate log tree`

use std::{collections::BTreeMap, fmt::Write as _};

use effectgate_core::{
    forensics::{Frame, Node, Record, Tree, base_name},
    time,
};
use serde_json::json;

use super::{
    ask,
    out::Out,
    sources::{Sources, Step},
};
use crate::{
    cli::{Format, LogTree},
    exit::{self, Code, Outcomes},
};

/// Alike processes that are shown one by one.
const ALIKE: usize = 3;
/// Deeper levels are not drawn deeper.
const DEEPEST: usize = 60;
/// Arguments are cut to so many characters, unless every process is asked for.
const ARGUMENTS: usize = 100;

pub fn tree(args: &LogTree, format: Format) -> Outcomes {
    let filter = ask::filter(&args.which).code(exit::USAGE)?;
    let mut sources = Sources::find(&args.logs.logs).code(exit::USAGE)?;
    let mut out = Out::new();
    let complete = filter.is_all();
    for log in sources.logs() {
        let mut tree = Tree::default();
        let mut on = |frame: &Frame<'_>, line: &[u8]| {
            // Who is whose child stands in records that nobody asked about.
            let Ok(record) = Record::of(line) else { return Step::Broken };
            tree.add(&record, filter.may(frame, line) && filter.matches(&record));
            Step::On
        };
        sources.read(&log, &filter, &mut on);
        let shown = if complete { vec![true; tree.nodes().len()] } else { tree.busy() };
        if tree.job.is_empty() || !(complete || shown.contains(&true)) {
            continue;
        }
        let step = match format {
            Format::Text => Drawing { tree: &tree, shown, all: args.all }.draw(&mut out),
            Format::Json => out.value(&value(&tree, &shown)),
        };
        if step == Step::Enough {
            break;
        }
    }
    out.end(sources.code())
}

struct Drawing<'a> {
    tree: &'a Tree,
    shown: Vec<bool>,
    all: bool,
}

/// A line that is still to be drawn.
enum Line {
    Process { at: usize, before: String, is_last: bool, depth: usize },
    Alike { of: Vec<usize>, before: String, is_last: bool },
}

impl Drawing<'_> {
    fn draw(&self, out: &mut Out) -> Step {
        let nodes = self.tree.nodes();
        let outside: u64 = nodes.iter().map(|node| node.outside).sum();
        let total = nodes.len() as u64 + self.tree.unlisted;
        let s = if total == 1 { "" } else { "es" };
        out.text(&format!("job {}: {total} process{s}, {outside} effects outside", self.tree.job));
        let mut due = self.level(self.tree.roots().collect(), String::new(), 0);
        while let Some(line) = due.pop() {
            let step = match line {
                Line::Process { at, before, is_last, depth } => {
                    let (branch, below) = branches(depth, is_last);
                    let step = out.text(&format!("{before}{branch}{}", self.process(&nodes[at])));
                    let before = if depth < DEEPEST { before + below } else { before };
                    due.extend(self.level(nodes[at].children.clone(), before, depth + 1));
                    step
                }
                Line::Alike { of, before, is_last } => {
                    let (branch, _) = branches(1, is_last);
                    out.text(&format!("{before}{branch}{}", self.alike(&of)))
                }
            };
            if step != Step::On {
                return step;
            }
        }
        if self.tree.unlisted > 0 {
            return out.text(&format!("and {} more processes", self.tree.unlisted));
        }
        Step::On
    }

    /// What is to be drawn of these, the first at the end.
    fn level(&self, of: Vec<usize>, before: String, depth: usize) -> Vec<Line> {
        let nodes = self.tree.nodes();
        let mut alike: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let of: Vec<usize> = of.into_iter().filter(|at| self.shown[*at]).collect();
        for at in of.iter().copied().filter(|at| self.is_plain(&nodes[*at])) {
            alike.entry(&nodes[at].exe).or_default().push(at);
        }
        alike.retain(|_, same| same.len() > ALIKE);
        let mut lines = Vec::new();
        for at in of {
            let node = &nodes[at];
            let before = before.clone();
            match alike.get_mut(node.exe.as_str()).filter(|_| self.is_plain(node)) {
                // They are one line, where the first one is.
                Some(same) if same.first() == Some(&at) => {
                    let of = std::mem::take(same);
                    lines.push(Line::Alike { of, before, is_last: false });
                }
                Some(_) => {}
                None => lines.push(Line::Process { at, before, is_last: false, depth }),
            }
        }
        if let Some(Line::Process { is_last, .. } | Line::Alike { is_last, .. }) = lines.last_mut()
        {
            *is_last = true;
        }
        lines.reverse();
        lines
    }

    /// A process that did nothing to remark on and has no children.
    fn is_plain(&self, node: &Node) -> bool {
        let ended_well = matches!(node.exit, None | Some(0));
        !self.all && node.children.is_empty() && node.outside == 0 && ended_well
    }

    fn process(&self, node: &Node) -> String {
        let mut text = String::from(if node.outside > 0 { "! " } else { "" });
        let _ = write!(text, "{}[{}]", name(node), node.pid);
        let arguments = node.argv.iter().skip(1).map(String::as_str).collect::<Vec<_>>().join(" ");
        let more = if node.argv_cut { "…" } else { "" };
        if !arguments.is_empty() {
            let cut = arguments.char_indices().nth(ARGUMENTS).filter(|_| !self.all);
            match cut {
                Some((at, _)) => drop(write!(text, " {}…", &arguments[..at])),
                None => drop(write!(text, " {arguments}{more}")),
            }
        }
        let _ = write!(text, "  {}", lasted(&node.first, &node.last));
        match node.exit {
            Some(code) if code & 0x7f != 0 => drop(write!(text, ", signal {}", code & 0x7f)),
            Some(code) if code != 0 => drop(write!(text, ", exit {}", code >> 8)),
            _ => {}
        }
        text += &did(&node.counts);
        if node.outside > 0 {
            let _ = write!(text, "; {} outside", node.outside);
        }
        if node.stopped > 0 {
            let _ = write!(text, ", {} denied or killed", node.stopped);
        }
        text
    }

    fn alike(&self, of: &[usize]) -> String {
        let nodes = self.tree.nodes();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (class, count) in of.iter().flat_map(|at| &nodes[*at].counts) {
            *counts.entry(class.clone()).or_default() += count;
        }
        let first = of.first().map(|at| name(&nodes[*at])).unwrap_or_default();
        format!("{}x {first}{}", of.len(), did(&counts))
    }
}

fn branches(depth: usize, is_last: bool) -> (&'static str, &'static str) {
    match (depth, is_last) {
        (0, _) => ("", ""),
        (_, false) => ("├─ ", "│  "),
        (_, true) => ("└─ ", "   "),
    }
}

fn name(node: &Node) -> &str {
    let name = base_name(&node.exe);
    if name.is_empty() { &node.comm } else { name }
}

fn did(counts: &BTreeMap<String, u64>) -> String {
    let counts: Vec<String> =
        counts.iter().map(|(class, count)| format!("{class} {count}")).collect();
    if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) }
}

fn lasted(first: &str, last: &str) -> String {
    let time = |text| time::parse(text).unwrap_or_default();
    let nanos = time(last).saturating_sub(time(first));
    format!("{}.{:03}s", nanos / time::SECOND, nanos % time::SECOND / 1_000_000)
}

fn value(tree: &Tree, shown: &[bool]) -> serde_json::Value {
    let nodes = tree.nodes();
    let processes: Vec<_> = nodes
        .iter()
        .zip(shown)
        .enumerate()
        .filter(|(_, (_, shown))| **shown)
        .map(|(at, (node, _))| {
            json!({
                "id": at, "parent": node.parent, "pid": node.pid, "start": node.start,
                "exe": node.exe, "comm": node.comm, "argv": node.argv, "argv_cut": node.argv_cut, "first": node.first,
                "last": node.last, "wait_status": node.exit, "counts": node.counts,
                "outside": node.outside, "denied_or_killed": node.stopped,
            })
        })
        .collect();
    json!({
        "job": tree.job, "processes": processes, "unlisted": tree.unlisted,
        "by_the_observer": tree.elsewhere,
    })
}
