//! Which records a question is about.
//!
//! A record must satisfy every kind of condition that is given, and of each
//! kind one. Most records of a large log are ruled out by their line's bytes
//! alone: every condition has bytes that stand in each line that satisfies it.

use memchr::memmem::Finder;

use super::frame::Frame;
use super::hosts::Hosts;
use super::record::Record;
use super::words::base_name;
use crate::escape::escape;
use crate::input::Class;
use crate::judge::Decision;
use crate::redact;

/// What is asked for; nothing of a kind is every record.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    pub classes: Vec<Class>,
    /// Words of records, such as `open_read`.
    pub actions: Vec<String>,
    pub decisions: Vec<Decision>,
    pub within: Option<bool>,
    /// Of files, programs that ran, and sockets.
    pub paths: Vec<Subtree>,
    pub hosts: Vec<Hosts>,
    pub programs: Vec<Program>,
    pub pids: Vec<u32>,
    pub jobs: Vec<String>,
    /// Names of rules.
    pub rules: Vec<String>,
    /// At this time or later, as records write it.
    pub since: Option<String>,
    /// Before this time.
    pub until: Option<String>,
}

/// Conditions, with the bytes to look for.
#[derive(Clone, Debug)]
pub struct Filter {
    asked: Conditions,
    needles: Vec<Vec<Finder<'static>>>,
}

/// A path and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtree(String);

/// A program: its file where there is a slash in it, else the file's name or
/// that of the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(String);

impl Filter {
    pub fn new(asked: Conditions) -> Filter {
        let pids = asked.pids.iter().map(|pid| format!("\"pid\":{pid},")).collect();
        let programs = asked.programs.iter().map(|program| json(&program.0)).collect();
        // The root is in front of every path.
        let everywhere = asked.paths.iter().any(|path| path.0.is_empty());
        let paths: Vec<String> = match everywhere {
            true => Vec::new(),
            false => asked.paths.iter().map(|path| format!("\"{}", json(&path.0))).collect(),
        };
        let finders = |any: Vec<String>| {
            any.iter().map(|bytes| Finder::new(bytes.as_bytes()).into_owned()).collect()
        };
        let needles = [paths, pids, programs].into_iter().filter(|any| !any.is_empty());
        Filter { needles: needles.map(finders).collect(), asked }
    }

    /// Whether the record of this line could be meant. False is certain.
    pub fn may(&self, frame: &Frame<'_>, line: &[u8]) -> bool {
        let word = |all: &mut dyn Iterator<Item = &str>, own: &[u8]| {
            let mut any = all.peekable();
            any.peek().is_none() || any.any(|one| one.as_bytes() == own)
        };
        let time = |bound: &Option<String>, later| {
            bound.as_ref().is_none_or(|bound| (frame.ts >= bound.as_bytes()) == later)
        };
        self.asked.within.is_none_or(|within| within == frame.within)
            && word(&mut self.asked.classes.iter().map(|class| class.name()), frame.class)
            && word(&mut self.asked.actions.iter().map(String::as_str), frame.action)
            && word(&mut self.asked.decisions.iter().map(|one| one.name()), frame.decision)
            && word(&mut self.asked.rules.iter().map(String::as_str), frame.rule)
            && (self.asked.hosts.is_empty() || frame.class == Class::Net.name().as_bytes())
            && time(&self.asked.since, true)
            && time(&self.asked.until, false)
            && self.job(frame.job)
            && self.needles.iter().all(|any| any.iter().any(|one| one.find(line).is_some()))
    }

    /// Whether [`may`](Filter::may) is the whole answer.
    pub fn is_exact(&self) -> bool {
        self.asked.paths.is_empty()
            && self.asked.hosts.is_empty()
            && self.asked.programs.is_empty()
            && self.asked.pids.is_empty()
    }

    /// Whether every record is meant.
    pub fn is_all(&self) -> bool {
        let Conditions { classes, actions, decisions, within, jobs, rules, since, until, .. } =
            &self.asked;
        let words = [classes.len(), actions.len(), decisions.len(), jobs.len(), rules.len()];
        let is_any_time = since.is_none() && until.is_none();
        self.is_exact() && words == [0; 5] && within.is_none() && is_any_time
    }

    /// Whether a log of this job could hold what is meant; the job as a
    /// [`Frame`] has it.
    pub fn job(&self, job: &[u8]) -> bool {
        self.asked.jobs.is_empty() || self.asked.jobs.iter().any(|own| json(own).as_bytes() == job)
    }

    /// Whether the record is meant.
    pub fn matches(&self, record: &Record<'_>) -> bool {
        let word = |all: &mut dyn Iterator<Item = &str>, own: &str| {
            let mut any = all.peekable();
            any.peek().is_none() || any.any(|one| one == own)
        };
        let process = record.process.as_ref();
        self.asked.within.is_none_or(|within| within == record.within)
            && word(&mut self.asked.classes.iter().map(|class| class.name()), &record.class)
            && word(&mut self.asked.actions.iter().map(String::as_str), &record.action)
            && word(&mut self.asked.decisions.iter().map(|one| one.name()), &record.decision)
            && word(&mut self.asked.rules.iter().map(String::as_str), &record.rule.name)
            && word(&mut self.asked.jobs.iter().map(String::as_str), &record.job)
            && self.asked.since.as_ref().is_none_or(|since| *record.ts >= **since)
            && self.asked.until.as_ref().is_none_or(|until| *record.ts < **until)
            && (self.asked.pids.is_empty()
                || process.is_some_and(|by| self.asked.pids.contains(&by.pid)))
            && (self.asked.programs.is_empty()
                || process.is_some_and(|by| self.asked.programs.iter().any(|one| one.is(by))))
            && (self.asked.hosts.is_empty()
                || (*record.class == *Class::Net.name()
                    && self.asked.hosts.iter().any(|hosts| hosts.has(record))))
            && (self.asked.paths.is_empty()
                || record.paths().any(|path| self.asked.paths.iter().any(|one| one.has(path))))
    }
}

impl Subtree {
    /// An absolute path as the system has it.
    pub fn new(path: &[u8]) -> Subtree {
        let mut text = escape(&redact::path(path));
        text.truncate(text.trim_end_matches('/').len());
        Subtree(text)
    }

    /// Whether a path of a record is it, or lies below it.
    pub fn has(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.0.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Program {
    /// A file's path, or a name, as the system has it.
    pub fn new(program: &[u8]) -> Program {
        Program(escape(&redact::path(program)))
    }

    fn is(&self, process: &super::record::Process<'_>) -> bool {
        let exe = process.exe.as_deref().unwrap_or_default();
        if self.0.contains('/') {
            return exe == self.0;
        }
        base_name(exe) == self.0 || *process.comm == *self.0
    }
}

/// A text as canonical JSON writes it, without its quotes.
fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::scan::tests::record;
    use super::*;
    use crate::canonical::canonical;

    #[test]
    fn paths_are_compared_by_components() {
        let srv = Subtree::new(b"/srv/repo/");
        for (path, inside) in [
            ("/srv/repo", true),
            ("/srv/repo/a", true),
            ("/srv/repository", false),
            ("/srv", false),
            ("srv/repo", false),
        ] {
            assert_eq!(srv.has(path), inside, "{path}");
        }
        assert!(Subtree::new(b"/").has("/a") && Subtree::new(b"/").has("/"));
        assert!(Subtree::new(b"/a\xff").has("/a\\xff/b"));
        assert!(Subtree::new(b"/a\\").has("/a\\\\"));
    }

    /// By the book: everything of the record as a value, nothing left out.
    fn naive(filter: &Conditions, record: &Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &record["object"];
        let paths: Vec<String> =
            [&object["path"], &object["other"]["path"], &object["interpreter"]]
                .into_iter()
                .filter(|value| value.is_string())
                .map(text)
                .collect();
        let exe = text(&record["process"]["exe"]);
        let by = !record["process"].is_null();
        let mut all = filter.classes.is_empty()
            || filter.classes.iter().any(|class| record["class"] == class.name());
        all &= filter.actions.is_empty()
            || filter.actions.iter().any(|action| record["action"] == *action.as_str());
        all &= filter.decisions.is_empty()
            || filter.decisions.iter().any(|one| record["decision"] == one.name());
        all &= filter.within.is_none_or(|within| record["within"] == within);
        all &= filter.rules.is_empty()
            || filter.rules.iter().any(|rule| record["rule"]["name"] == *rule.as_str());
        all &=
            filter.jobs.is_empty() || filter.jobs.iter().any(|job| record["job"] == *job.as_str());
        all &= filter.pids.is_empty()
            || filter.pids.iter().any(|pid| record["process"]["pid"] == *pid);
        all &= filter.programs.is_empty()
            || filter.programs.iter().any(|Program(name)| {
                by && if name.contains('/') {
                    exe == *name
                } else {
                    exe.rsplit('/').next() == Some(name)
                        || record["process"]["comm"] == *name.as_str()
                }
            });
        all &= filter.paths.is_empty()
            || filter.paths.iter().any(|Subtree(root)| {
                paths.iter().any(|path| path == root || path.starts_with(&format!("{root}/")))
            });
        let time = crate::time::parse(&text(&record["ts"]));
        let bound = |bound: &Option<String>| bound.as_deref().and_then(crate::time::parse);
        all &= bound(&filter.since).is_none_or(|since| time >= Some(since));
        all & bound(&filter.until).is_none_or(|until| time < Some(until))
    }

    fn some<T: Clone + std::fmt::Debug + 'static>(
        all: &[T],
    ) -> impl Strategy<Value = Vec<T>> + use<T> {
        let one = prop::sample::subsequence(all.to_vec(), 1..=2.min(all.len()));
        prop_oneof![3 => Just(Vec::new()), 1 => one]
    }

    fn conditions() -> impl Strategy<Value = Conditions> {
        let names = ["a", "/a", "b", "/a/b", "\"path\":\"/a", "/", "/ü\u{9b}", "/\\x9b", "ab"];
        let bytes: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let programs: Vec<Program> = bytes.iter().map(|name| Program::new(name)).collect();
        let paths: Vec<Subtree> = bytes.iter().map(|name| Subtree::new(name)).collect();
        let strings = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let bound = || {
            prop::option::of((0u64..9).prop_map(|second| {
                crate::time::format(1_769_860_800_000_000_000 + second * 1_000_000_000)
            }))
        };
        let words = (
            some(&[Class::File, Class::Net, Class::Exec, Class::Guard]),
            some(&strings(&["open_read", "rename", "exec", "connect"])),
            some(&[Decision::Allowed, Decision::Denied]),
            prop::option::of(any::<bool>()),
            some(&strings(&["network", "made-inside"])),
            some(&strings(&["run", "a \"job\"", "run-1"])),
        );
        let rest = (some(&paths), some(&programs), some(&[1, 2, 3]), bound(), bound());
        (words, rest).prop_map(|(words, (paths, programs, pids, since, until))| {
            let (classes, actions, decisions, within, rules, jobs) = words;
            Conditions {
                classes,
                actions,
                decisions,
                within,
                rules,
                jobs,
                paths,
                programs,
                pids,
                since,
                until,
                ..Conditions::default()
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_filter_is_the_naive_one(record in record(), asked in conditions()) {
            let filter = Filter::new(asked.clone());
            let line = canonical(&record);
            let frame = Frame::of(&line).expect("a frame");
            let parsed = Record::of(&line).expect("a record");
            let matches = filter.matches(&parsed);
            prop_assert_eq!(matches, naive(&asked, &record));
            // What bytes rule out is never meant.
            prop_assert!(filter.may(&frame, &line) || !matches);
            prop_assert!(!filter.is_exact() || filter.may(&frame, &line) == matches);
        }

        #[test]
        fn hosts_are_found_behind_the_bytes(record in record()) {
            let line = canonical(&record);
            let parsed = Record::of(&line).expect("a record");
            for hosts in ["a.example", "*.example", "10.0.0.0/8", "2001:db8::1:2", "0.0.0.0/0"] {
                let hosts = vec![Hosts::parse(hosts).expect("a host")];
                let filter = Filter::new(Conditions { hosts, ..Conditions::default() });
                let may = filter.may(&Frame::of(&line).expect("a frame"), &line);
                prop_assert!(may || !filter.matches(&parsed));
            }
        }
    }
}
