//! What two runs did differently: which effects only one of them had, and
//! which were judged otherwise. How often is not compared: what was seen before
//! and is inside the policy is not recorded again.

use std::collections::BTreeMap;

use super::record::Record;
use super::words::{object_text, program_of};

/// Effects of two runs that are told apart.
const MOST: usize = 1_000_000;
/// Bytes of what they are about.
const MOST_BYTES: usize = 512 << 20;

/// Two runs, being read.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    effects: BTreeMap<Effect, [Option<Side>; 2]>,
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Effect {
    class: String,
    action: String,
    object: String,
}

/// How a run had an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub within: bool,
    pub decision: String,
    pub rule: String,
    /// The first program that did it.
    pub program: String,
    pub count: u64,
    /// Number of the first record.
    pub seq: u64,
}

/// An effect that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    pub class: &'a str,
    pub action: &'a str,
    pub object: &'a str,
    pub left: Option<&'a Side>,
    pub right: Option<&'a Side>,
}

/// More different effects than are compared.
#[derive(Debug, thiserror::Error)]
#[error(
    "the two runs have more than {MOST} different effects; narrow the question, by --class or --path"
)]
pub struct TooMany;

/// What of a run is its own and no difference: the directories that were made
/// for it.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Prefixes of paths, longest first, and what stands for them.
    places: Vec<(String, &'static str)>,
}

/// A run has three or four of its own; each is looked for in each text.
const MOST_PLACES: usize = 32;
/// Stands for the job's own `TMPDIR` and everything in it.
const TMPDIR: &str = "$TMPDIR/*";
const WORKSPACE: &str = "$WORKSPACE";
/// What stands between paths in arguments.
const BETWEEN: [char; 7] = [' ', ':', ',', '\'', '"', ';', '='];

impl Run {
    /// What the run's first record says of it.
    pub fn of(opening: &Record<'_>) -> Run {
        let object = &opening.object;
        let own = object.roots.iter().filter(|root| root.entry.is_none());
        let mut places: Vec<(String, &str)> =
            own.map(|root| (root.path.to_string(), TMPDIR)).collect();
        places.extend(object.workspace.as_deref().map(|path| (path.to_owned(), WORKSPACE)));
        places.retain(|(path, _)| path.len() > 1);
        places.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        places.truncate(MOST_PLACES);
        Run { places }
    }

    /// The text with what is the run's own replaced.
    fn common(&self, mut text: String) -> String {
        for (path, name) in &self.places {
            if text.contains(path.as_str()) {
                text = without(&text, path, name);
            }
        }
        process_ids(text)
    }
}

/// The text with the name where this path begins a word, and all of what
/// follows it in the word where the name stands for that as well.
fn without(text: &str, path: &str, name: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // To where it is copied; to where it was looked for the beginning of a word; and
    // whether there was a slash since.
    let (mut copied, mut looked, mut slash) = (0, 0, false);
    for (at, _) in text.match_indices(path) {
        if at < copied {
            continue;
        }
        let before = &text[looked..at];
        slash = match before.rfind(BETWEEN) {
            Some(between) => before[between..].contains('/'),
            None => slash || before.contains('/'),
        };
        looked = at;
        let tail = &text[at + path.len()..];
        // `/srv/a` is not in `/srv/ab`, nor in `/x/srv/a`.
        let ends = tail.is_empty() || tail.starts_with('/') || tail.starts_with(BETWEEN);
        if !ends || slash {
            continue;
        }
        // Names in it are made up anew by each run.
        let cut = if name == TMPDIR { tail.find(BETWEEN).unwrap_or(tail.len()) } else { 0 };
        out.extend([&text[copied..at], name]);
        copied = at + path.len() + cut;
        looked = copied;
        slash = name.contains('/');
    }
    out.push_str(&text[copied..]);
    out
}

/// `/proc/123/task/124` is that of some process.
fn process_ids(text: String) -> String {
    if !text.contains("/proc/") {
        return text;
    }
    let mut out: Vec<&str> = Vec::new();
    for part in text.split('/') {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let of_process = matches!(out.last(), Some(&"proc" | &"task"));
        out.push(if digits && of_process { "PID" } else { part });
    }
    out.join("/")
}

impl Difference {
    /// A record of the left (0) or right (1) run. What the observer does and
    /// where processes begin and end is no effect of the job's.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn add(&mut self, right: bool, run: &Run, record: &Record<'_>) -> Result<(), TooMany> {
        match (&*record.class, &*record.action) {
            ("exec", "fork" | "exit")
            | ("guard", "start" | "canary" | "launch" | "entered" | "repeated") => return Ok(()),
            _ => {}
        }
        let object = match &*record.class {
            // A port that the kernel chose is another one each time.
            "net"
                if &*record.action == "bind"
                    && record.object.port.is_some_and(|port| port >= EPHEMERAL) =>
            {
                let address = record.object.address.as_deref().unwrap_or("?");
                format!("{address}, a port of the kernel's choice")
            }
            _ => run.common(object_text(record)),
        };
        let effect =
            Effect { class: record.class.to_string(), action: record.action.to_string(), object };
        if !self.effects.contains_key(&effect) {
            self.bytes += effect.object.len();
            if self.effects.len() == MOST || self.bytes > MOST_BYTES {
                return Err(TooMany);
            }
        }
        let side = &mut self.effects.entry(effect).or_default()[usize::from(right)];
        match side {
            Some(side) => {
                side.count += 1;
                // The worst is what counts.
                if side.within && !record.within {
                    side.within = false;
                    side.decision = record.decision.to_string();
                    side.rule = record.rule.name.to_string();
                    side.seq = record.seq;
                }
            }
            None => {
                *side = Some(Side {
                    within: record.within,
                    decision: record.decision.to_string(),
                    rule: record.rule.name.to_string(),
                    program: run.common(program_of(record).to_owned()),
                    count: 1,
                    seq: record.seq,
                });
            }
        }
        Ok(())
    }

    /// What only one of them had, and what was judged otherwise, by class,
    /// action and object.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        self.effects.iter().filter_map(|(effect, [left, right])| {
            let same = match (left, right) {
                (Some(left), Some(right)) => {
                    left.within == right.within && left.decision == right.decision
                }
                _ => false,
            };
            (!same).then(|| Change {
                class: &effect.class,
                action: &effect.action,
                object: &effect.object,
                left: left.as_ref(),
                right: right.as_ref(),
            })
        })
    }

    /// Different effects of both runs together.
    pub fn effects(&self) -> usize {
        self.effects.len()
    }
}

/// Where Linux's range of ports for outgoing connections begins
/// (`net.ipv4.ip_local_port_range`).
const EPHEMERAL: u16 = 32768;

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::canonical::canonical;

    /// A record's line; its time in nanoseconds is its number.
    pub fn line(seq: u64, class: &str, action: &str, object: &Value, process: &Value) -> Vec<u8> {
        canonical(&json!({
            "schema": crate::record::SCHEMA, "seq": seq, "job": "run-1",
            "ts": crate::time::format(seq), "class": class, "action": action, "object": object,
            "process": process, "within": true, "rule": {"name": "x"}, "decision": "allowed",
            "coverage": null, "prev": "0".repeat(64), "hash": "f".repeat(64),
        }))
    }

    fn opening(tmp: &str, workspace: &str) -> Run {
        let object = json!({"roots": [{"path": tmp, "entry": null}, {"path": "/usr", "entry": 0}],
            "workspace": workspace});
        Run::of(&Record::of(&line(0, "guard", "start", &object, &Value::Null)).expect("a record"))
    }

    #[test]
    fn what_is_the_runs_own_is_no_difference() {
        let run = opening("/tmp/effectgate-ab", "/srv/one");
        for (text, common) in [
            ("/tmp/effectgate-ab", "$TMPDIR/*"),
            ("/tmp/effectgate-ab/cc1.s", "$TMPDIR/*"),
            ("/tmp/effectgate-abc/cc1.s", "/tmp/effectgate-abc/cc1.s"),
            ("as -o /tmp/effectgate-ab/x.o /srv/one/a.s", "as -o $TMPDIR/* $WORKSPACE/a.s"),
            ("cc -I/srv/one/include -o=/srv/one/a", "cc -I$WORKSPACE/include -o=$WORKSPACE/a"),
            ("/srv/one", "$WORKSPACE"),
            ("/srv/onefold /x/srv/one", "/srv/onefold /x/srv/one"),
            (
                "/srv/one/srv/one x:/srv/one;/srv/one",
                "$WORKSPACE$WORKSPACE x:$WORKSPACE;$WORKSPACE",
            ),
            ("/proc/12/task/13/comm", "/proc/PID/task/PID/comm"),
            ("/home/proc/x/12", "/home/proc/x/12"),
        ] {
            assert_eq!(run.common(text.to_owned()), common);
        }
    }

    #[test]
    fn a_workspace_may_have_any_name() {
        for name in ["my shop", "a,b", "a=1", "it's", "a:b"] {
            let run = opening("/tmp/e", &format!("/srv/{name}"));
            let text = format!("cp /srv/{name}/x /srv/{name} /srv/{name}d");
            let common = format!("cp $WORKSPACE/x $WORKSPACE /srv/{name}d");
            assert_eq!(run.common(text), common);
        }
    }

    /// Was read again for each place in it.
    #[test]
    fn what_names_the_workspace_everywhere_costs_no_more() {
        let run = opening("/tmp/e", "/a");
        for part in ["/a", "/a ", "/tmp/e,", "/a/tmp/e ", "/proc/1"] {
            let text = part.repeat((1 << 20) / part.len());
            assert!(run.common(text).len() <= 12 << 20, "{part}");
        }
    }

    #[test]
    fn runs_are_compared_by_what_they_did() {
        let (left, right) = (opening("/tmp/e-1", "/srv/1"), opening("/tmp/e-2", "/srv/2"));
        let mut difference = Difference::default();
        let mut add = |is_right, path: &str| {
            let line = line(1, "file", "create", &json!({ "path": path }), &Value::Null);
            let run = if is_right { &right } else { &left };
            difference.add(is_right, run, &Record::of(&line).expect("a record")).expect("few");
        };
        for path in ["/srv/1/a", "/tmp/e-1/x", "/etc/a", "/etc/a"] {
            add(false, path);
        }
        for path in ["/srv/2/a", "/tmp/e-2/y", "/etc/b"] {
            add(true, path);
        }
        let changes: Vec<_> = difference
            .changes()
            .map(|change| {
                (change.object, change.left.map(|side| side.count), change.right.is_some())
            })
            .collect();
        assert_eq!(changes, [("/etc/a", Some(2), false), ("/etc/b", None, true)]);
        assert_eq!(difference.effects(), 4);
    }
}
