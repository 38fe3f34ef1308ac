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

/// Conditions; none of a kind is every record.
#[derive(Clone, Debug, Default)]
pub struct Filter {
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
    /// Prepares the bytes to look for. To be called when all conditions are set.
    #[must_use]
    pub fn ready(mut self) -> Self {
        let paths = self.paths.iter().filter_map(|path| {
            // The root is in front of every path.
            (!path.0.is_empty()).then(|| format!("\"{}", json(&path.0)))
        });
        let pids = self.pids.iter().map(|pid| format!("\"pid\":{pid},"));
        let programs = self.programs.iter().map(|program| json(&program.0));
        let complete = self.paths.iter().all(|path| !path.0.is_empty());
        let paths: Vec<String> = if complete { paths.collect() } else { Vec::new() };
        self.needles = [paths, pids.collect(), programs.collect()]
            .into_iter()
            .filter(|any| !any.is_empty())
            .map(|any| any.iter().map(|bytes| Finder::new(bytes.as_bytes()).into_owned()).collect())
            .collect();
        self
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
        self.within.is_none_or(|within| within == frame.within)
            && word(&mut self.classes.iter().map(|class| class.name()), frame.class)
            && word(&mut self.actions.iter().map(String::as_str), frame.action)
            && word(&mut self.decisions.iter().map(|one| one.name()), frame.decision)
            && word(&mut self.rules.iter().map(String::as_str), frame.rule)
            && (self.hosts.is_empty() || frame.class == Class::Net.name().as_bytes())
            && time(&self.since, true)
            && time(&self.until, false)
            && self.job(frame.job)
            && self.needles.iter().all(|any| any.iter().any(|one| one.find(line).is_some()))
    }

    /// Whether a log of this job could hold what is meant; the job as a
    /// [`Frame`] has it.
    pub fn job(&self, job: &[u8]) -> bool {
        self.jobs.is_empty() || self.jobs.iter().any(|own| json(own).as_bytes() == job)
    }

    /// Whether the record is meant.
    pub fn matches(&self, record: &Record<'_>) -> bool {
        let word = |all: &mut dyn Iterator<Item = &str>, own: &str| {
            let mut any = all.peekable();
            any.peek().is_none() || any.any(|one| one == own)
        };
        let process = record.process.as_ref();
        self.within.is_none_or(|within| within == record.within)
            && word(&mut self.classes.iter().map(|class| class.name()), &record.class)
            && word(&mut self.actions.iter().map(String::as_str), &record.action)
            && word(&mut self.decisions.iter().map(|one| one.name()), &record.decision)
            && word(&mut self.rules.iter().map(String::as_str), &record.rule.name)
            && word(&mut self.jobs.iter().map(String::as_str), &record.job)
            && self.since.as_ref().is_none_or(|since| *record.ts >= **since)
            && self.until.as_ref().is_none_or(|until| *record.ts < **until)
            && (self.pids.is_empty() || process.is_some_and(|by| self.pids.contains(&by.pid)))
            && (self.programs.is_empty()
                || process.is_some_and(|by| self.programs.iter().any(|one| one.is(by))))
            && (self.hosts.is_empty()
                || (*record.class == *Class::Net.name()
                    && self.hosts.iter().any(|hosts| hosts.has(record))))
            && (self.paths.is_empty()
                || record.paths().any(|path| self.paths.iter().any(|one| one.has(path))))
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
    fn naive(filter: &Filter, record: &Value) -> bool {
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

    fn filter() -> impl Strategy<Value = Filter> {
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
            Filter {
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
                ..Filter::default()
            }
            .ready()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_filter_is_the_naive_one(record in record(), filter in filter()) {
            let line = canonical(&record);
            let frame = Frame::of(&line).expect("a frame");
            let parsed = Record::of(&line).expect("a record");
            let matches = filter.matches(&parsed);
            prop_assert_eq!(matches, naive(&filter, &record));
            // What bytes rule out is never meant.
            prop_assert!(filter.may(&frame, &line) || !matches);
        }

        #[test]
        fn hosts_are_found_behind_the_bytes(record in record()) {
            let line = canonical(&record);
            let parsed = Record::of(&line).expect("a record");
            for hosts in ["a.example", "*.example", "10.0.0.0/8", "2001:db8::1:2", "0.0.0.0/0"] {
                let hosts = vec![Hosts::parse(hosts).expect("a host")];
                let filter = Filter { hosts, ..Filter::default() }.ready();
                let may = filter.may(&Frame::of(&line).expect("a frame"), &line);
                prop_assert!(may || !filter.matches(&parsed));
            }
        }
    }
}
