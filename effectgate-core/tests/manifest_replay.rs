//! The log of a job under a manifest, judged again.

mod common;

use std::sync::LazyLock;

use common::any::{PLANTED, any_input};
use common::*;
use effectgate_core::input::*;
use effectgate_core::policy::Policy;
use effectgate_core::replay::{Replayed, day, replay};
use effectgate_core::{Outcome, Verdict};
use proptest::prelude::*;

fn read(path: &str, root: Option<&str>) -> Input {
    let root = root.map_or(RootMatch::Outside, |root| root_at(&manifest_started(), root));
    let object = object(path, root);
    event(What::File { op: FileOp::OpenRead, object, other: None, coverage: Coverage::Object })
}

fn written(path: &str, root: &str) -> Input {
    write(path, root_at(&manifest_started(), root))
}

fn run_file(path: &str, ino: u64) -> Input {
    let dev = Device { major: 8, minor: 1 };
    let file = FileObject { dev, ino, ..object(path, RootMatch::Outside) };
    let argv = vec![path.into()];
    let exec =
        Exec { asked: file.path.clone(), file, argv, argv_complete: true, ppid: 1, start: 5 };
    event(What::Exec(exec))
}

/// A clean job: a listed program reads below a root, and writes below one.
fn clean() -> Vec<Input> {
    vec![
        run_file("/usr/bin/python3.11", 1000),
        read("/srv/repo/src/a.py", Some("/srv/repo/src")),
        read("/usr/share/kit/x", Some(PROFILED)),
        read("/opt/data/x", Some("/opt/data")),
        written("/srv/repo/src/out/a", "/srv/repo/src/out"),
    ]
}

fn again(log: &[u8], policy: Policy) -> (Replayed, Vec<String>) {
    let replayed = replay(log, policy).unwrap();
    let lines = replayed.verdict.violations.iter().map(ToString::to_string).collect();
    (replayed, lines)
}

#[test]
fn the_same_manifest_says_the_same() {
    for (inputs, outcome) in [
        (clean(), Outcome::Pass),
        (vec![read("/etc/shadow", None)], Outcome::Fail),
        (vec![read("/usr/share/kit/.ssh/id", Some(PROFILED))], Outcome::Fail),
        (vec![run_file("/usr/bin/id", 7)], Outcome::Fail),
        (vec![run_file("/usr/bin/perl", 1000)], Outcome::Pass),
        (vec![written("/srv/repo/src/a", "/srv/repo/src")], Outcome::Fail),
    ] {
        let (lines, verdict) = job(manifest_started(), inputs);
        assert_eq!(verdict.verdict, outcome, "{:?}", verdict.violations);
        let replayed = replay(&log(&lines)[..], manifest()).unwrap();
        assert!(replayed.same_policy && replayed.agrees());
        assert_eq!(replayed.verdict, verdict);
    }
}

#[test]
fn another_manifest_judges_by_paths() {
    let (lines, _) = job(manifest_started(), clean());
    let log = log(&lines);
    let under = |change: &[(&str, &str)]| {
        let mut text = MANIFEST.to_owned();
        for (old, new) in change {
            assert!(text.contains(old), "{old}");
            text = text.replace(old, new);
        }
        let (replayed, lines) = again(&log, manifest_of(&text));
        assert!(!replayed.same_policy);
        lines
    };
    let none: [&str; 0] = [];
    assert_eq!(under(&[("max_steps: 100", "max_steps: 99")]), none);
    assert_eq!(
        under(&[("[src, vendor]", "[.]"), ("mounted_secrets: [/run/secrets/db]\n", "")]),
        none
    );
    let other = under(&[("  - /opt/data\n", "")]);
    assert_eq!(
        other,
        ["file open_read /opt/data/x by /usr/bin/python3.11: read_roots (agent-egress.yml:7)"]
    );
    let other = under(&[("write_roots: [src/out]", "write_roots: [src/other]")]);
    assert_eq!(
        other,
        ["file open_write /srv/repo/src/out/a by /usr/bin/python3.11: \
          write_roots (agent-egress.yml:5)"]
    );
    let other = under(&[("  - python3\n", "  - ruby\n")]);
    assert!(other[0].starts_with("exec exec /usr/bin/python3.11 by"), "{other:?}");
    // A name that the log did not look up is known by its path.
    assert_eq!(under(&[("  - python3\n", "  - python3.11\n")]), none);
    // What the job could write is no program, whatever is listed.
    let envelope = replay(&log[..], policy_with_roots(&["/srv/repo"])).unwrap();
    assert_eq!(envelope.verdict.verdict, Outcome::Pass);
}

#[test]
fn an_envelopes_log_under_a_manifest() {
    let inputs = vec![
        exec(42, 5, "/usr/bin/python3"),
        env(&["PATH"]),
        event(What::File {
            op: FileOp::OpenRead,
            object: object("/usr/share/kit/x", RootMatch::Outside),
            other: None,
            coverage: Coverage::Object,
        }),
        write("/opt/data/a", RootMatch::Outside),
    ];
    let (lines, _) = job(started(), inputs);
    let (replayed, violations) = again(&log(&lines), manifest());
    assert_eq!(replayed.verdict.verdict, Outcome::Fail);
    assert_eq!(
        violations,
        ["file open_write /opt/data/a by /usr/bin/python3: write_roots (agent-egress.yml:5)"]
    );
}

#[test]
fn a_bound_stops_and_fails_a_job() {
    let limit = Input::Notice {
        job: JOB,
        ts: T0 + 61,
        notice: Notice::Limit { limit: Limited::WallClock, value: 61 },
    };
    let (lines, verdict) = job(manifest_started(), vec![limit]);
    assert_eq!(
        verdict.violations[0].to_string(),
        "limit max_wall_clock_sec 61: max_wall_clock_sec (agent-egress.yml:31)"
    );
    let record = json(&lines[3]);
    assert_eq!(
        (&record["class"], &record["action"]),
        (&"limit".into(), &"max_wall_clock_sec".into())
    );
    let object = &record["object"];
    assert_eq!((&object["value"], &object["bound"]), (&61.into(), &60.into()));
    let (replayed, _) = again(&log(&lines), manifest());
    assert!(replayed.agrees());
    assert_eq!(replayed.verdict, verdict);
    let longer = MANIFEST.replace("max_wall_clock_sec: 60", "max_wall_clock_sec: 600");
    let (replayed, _) = again(&log(&lines), manifest_of(&longer));
    assert_eq!(replayed.verdict.verdict, Outcome::Indeterminate, "it was stopped");
}

/// Nobody stopped the job, which is judged by a shorter bound now.
#[test]
fn a_job_that_went_on_too_long_for_another_manifest() {
    let late = |seconds: u64| {
        let Input::Event(event) = written("/srv/repo/src/out/a", "/srv/repo/src/out") else {
            panic!()
        };
        Input::Event(Event { ts: T0 + seconds * 1_000_000_000, ..event })
    };
    let (lines, verdict) = job(manifest_started(), vec![late(30)]);
    assert_eq!(verdict.verdict, Outcome::Pass);
    let shorter = MANIFEST.replace("max_wall_clock_sec: 60", "max_wall_clock_sec: 20");
    let (replayed, violations) = again(&log(&lines), manifest_of(&shorter));
    assert_eq!(replayed.verdict.verdict, Outcome::Fail);
    assert_eq!(
        violations,
        ["limit max_wall_clock_sec 30: max_wall_clock_sec (agent-egress.yml:31)"]
    );
}

#[test]
fn the_day_of_a_log() {
    let (lines, _) = job(manifest_started(), vec![]);
    let log = log(&lines);
    assert_eq!(day(&log[..]).as_deref(), Some(TODAY));
    assert_eq!(day(&log[1..]), None);
    assert_eq!(day(&b""[..]), None);
}

fn verdict_of(inputs: Vec<Input>) -> (Vec<u8>, Verdict) {
    let (lines, verdict) = run(inputs);
    (log(&lines), verdict)
}

/// Parsed once: it takes longer than a case.
#[test]
fn a_digest_that_the_log_does_not_hold_is_a_doubt() {
    let start = Input::Started(Box::new(manifest_started()));
    let (log, _) =
        verdict_of([vec![start, canary(), launched()], clean(), vec![finished()]].concat());
    let pinned = format!("  - {{name: python3, sha256: {}}}\n", "a".repeat(64));
    let policy = manifest_of(&MANIFEST.replace("  - python3\n", &pinned));
    assert_eq!(again(&log, policy).0.verdict.verdict, Outcome::Indeterminate);
}

static STARTED: LazyLock<Started> = LazyLock::new(manifest_started);
static OTHER: LazyLock<Policy> =
    LazyLock::new(|| manifest_of(&MANIFEST.replace("[src, vendor]", "[src]")));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn replay_is_live(inputs in prop::collection::vec(any_input(), 0..40), planted: bool) {
        let mut start = STARTED.clone();
        if planted {
            start.workspace = Some(format!("/srv/ghp_{PLANTED}").into());
            start.binaries[0].path = format!("/opt/ghp_{PLANTED}/python3").into();
            start.own = vec![format!("/opt/ghp_{PLANTED}").into()];
        }
        let mut all = vec![Input::Started(Box::new(start)), canary(), launched()];
        all.extend(inputs);
        all.push(finished());
        let (log, verdict) = verdict_of(all);
        prop_assert!(!String::from_utf8(log.clone()).unwrap().contains(PLANTED));
        let replayed = replay(&log[..], STARTED.policy.clone()).unwrap();
        prop_assert_eq!(replayed.disagreement, None);
        prop_assert_eq!(replayed.verdict, verdict);
        prop_assert!(replay(&log[..], OTHER.clone()).unwrap().agrees());
        prop_assert!(replay(&log[..], policy()).unwrap().agrees());
    }
}
