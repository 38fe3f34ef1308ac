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
    let paths: Vec<String> = [&object["path"], &object["other"]["path"], &object["interpreter"]]
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
    all &= filter.jobs.is_empty() || filter.jobs.iter().any(|job| record["job"] == *job.as_str());
    all &= filter.pids.is_empty() || filter.pids.iter().any(|pid| record["process"]["pid"] == *pid);
    all &= filter.programs.is_empty()
        || filter.programs.iter().any(|Program(name)| {
            by && if name.contains('/') {
                exe == *name
            } else {
                exe.rsplit('/').next() == Some(name) || record["process"]["comm"] == *name.as_str()
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

fn some<T: Clone + std::fmt::Debug + 'static>(all: &[T]) -> impl Strategy<Value = Vec<T>> + use<T> {
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
