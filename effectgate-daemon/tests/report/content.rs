//! What the reports say.

use effectgate_core::input::*;
use effectgate_core::report::Bar;
use effectgate_daemon::report::html;

use crate::bundle::{Bundle, every, everything, records};
use crate::common::*;

#[test]
fn each_report_tells_what_where_by_what_and_against_which_line() {
    let bundle = Bundle::of(
        started(),
        vec![
            exec(1, 5, "/bin/sh"),
            exec(42, 9, "/usr/bin/touch"),
            write("/etc/passwd", RootMatch::Outside),
        ],
    );
    for (name, text) in every(&bundle) {
        for expected in
            ["/etc/passwd", "/usr/bin/touch", "allowed_roots", "open_write", "envelope.json"]
        {
            assert!(text.contains(expected), "{name}: {expected}\n{text}");
        }
        let line = [":3", "\"line\":3", "line=3", "\"startLine\":3", "\"intValue\":\"3\""];
        assert!(line.iter().any(|form| text.contains(form)), "{name}: the line\n{text}");
    }
}

#[test]
fn what_is_in_order_says_so() {
    let bundle = Bundle::of(started(), vec![write("/srv/repo/a", RootMatch::Below(1))]);
    for (name, text) in every(&bundle) {
        match name {
            "sarif" => assert!(text.contains("\"results\":[]"), "{text}"),
            "junit" => assert!(text.contains("failures=\"0\" errors=\"0\""), "{text}"),
            "ocsf" => assert!(!text.contains("\"class_uid\":2004"), "{text}"),
            "otlp" => assert!(text.contains("\"success\""), "{text}"),
            _ => assert!(text.contains("pass"), "{name}: {text}"),
        }
    }
}

#[test]
fn what_is_not_known_is_told() {
    let lost = vec![(Class::File, 3)];
    let gap = Input::Gap { job: JOB, ts: T0 + 1, stage: Stage::Ring, lost };
    let bundle = Bundle::of(started(), vec![gap]);
    for (name, text) in every(&bundle) {
        let expected =
            if name == "otlp" { "records were lost" } else { "records were lost: file 3" };
        assert!(text.contains(expected), "{name}: {text}");
    }
}

#[test]
fn the_text_ends_with_the_verdict_and_fits() {
    let bundle = Bundle::of(started(), everything("name"));
    let reports = every(&bundle);
    let (_, text) = &reports[0];
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("verdict: fail ("), "{last}");
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 110).collect();
    // What somebody copies is not cut.
    assert!(wide.iter().all(|line| line.starts_with("  ")), "{wide:#?}");
}

/// However much there is: a page somebody can open.
#[test]
fn a_large_log_is_no_large_page() {
    let files = (0..6000u32).map(|n| {
        let path = format!("/srv/repo/{}/{}/file-{n}", n % 97, n % 1013);
        let root = if n % 100 == 0 { RootMatch::Outside } else { RootMatch::Below(1) };
        by(
            42 + n % 500,
            match write(&path, root) {
                Input::Event(event) => event.what,
                _ => unreachable!("it is an event"),
            },
        )
    });
    let forks =
        (0..500u32).map(|n| by(1, What::Fork { pid: 42 + n, ppid: 1, start: 9 + u64::from(n) }));
    let bundle = Bundle::of(started(), forks.chain(files).collect());
    let report = bundle.report();
    let sums = report.places.sums();
    assert_eq!((sums[0].changes, sums[0].violations), (6000, 60));
    assert_eq!(report.processes.all.len(), 501);
    let page = html::page(&report);
    assert!(page.len() < 800_000, "{} bytes", page.len());
    assert!(page.contains("more name"), "what is left out is counted");
    let markdown = effectgate_daemon::report::markdown::page(&report);
    assert!(markdown.len() < 300_000, "{} bytes", markdown.len());
    assert!(markdown.contains("**10 violations of 60 are not shown here**"), "{markdown}");
}

/// Not every JSON reader holds larger numbers exactly (RFC 7493, 2.2).
#[test]
fn no_number_is_rounded() {
    fn largest(value: &serde_json::Value) -> u64 {
        match value {
            serde_json::Value::Number(number) => number.as_u64().expect("a whole number"),
            serde_json::Value::Array(items) => items.iter().map(largest).max().unwrap_or_default(),
            serde_json::Value::Object(members) => {
                members.values().map(largest).max().unwrap_or_default()
            }
            _ => 0,
        }
    }
    for (name, text) in every(&Bundle::of(started(), everything("name"))) {
        if ["json", "sarif", "ocsf", "otlp"].contains(&name) {
            for line in text.lines() {
                let value = serde_json::from_str(line).expect("JSON");
                assert!(largest(&value) < 1 << 53, "{name}: {line}");
            }
        }
    }
}

/// Whatever version wrote it.
#[test]
fn every_log_gives_every_report() {
    let corpus = Bundle::corpus();
    assert!(corpus.len() >= 12);
    for (folder, bundle) in corpus {
        let report = bundle.report();
        assert_eq!(report.disagreement, None, "{folder}");
        let verdict = report.verdict.verdict.name();
        let records = records(&bundle);
        let closing = &records[records.len() - 1]["object"]["verdict"];
        assert_eq!(closing, verdict, "{folder}");
        let total: u64 = report.timeline.bars.iter().map(Bar::total).sum();
        assert_eq!(total, records.len() as u64, "{folder}");
        for (name, text) in every(&bundle) {
            match name {
                "sarif" | "junit" | "ocsf" => assert!(!text.is_empty(), "{folder} {name}"),
                _ => assert!(text.contains(verdict), "{folder} {name}: {text}"),
            }
        }
    }
}
