//! A log judged again: alike by the same policy, by paths by another one, and
//! not at all when a byte of it was touched.

mod common;

use common::any::{PLANTED, any_input, any_start};
use common::*;
use effectgate_core::chain::Flaw;
use effectgate_core::input::*;
use effectgate_core::policy::Rights;
use effectgate_core::replay::{ReplayError, replay, verify};
use effectgate_core::report;
use effectgate_core::{Outcome, Verdict};
use proptest::prelude::*;

fn flaw(log: &[u8]) -> (u64, Flaw) {
    let replayed = replay(log, policy()).map(|replayed| replayed.verdict);
    let verified = verify(log);
    match (replayed, verified) {
        (
            Err(ReplayError::Flawed { good, flaw, .. }),
            Err(ReplayError::Flawed { good: good2, flaw: flaw2, .. }),
        ) => {
            assert_eq!((good, &flaw), (good2, &flaw2));
            (good, flaw)
        }
        other => panic!("{other:?}"),
    }
}

fn small() -> (Vec<u8>, Verdict) {
    let (lines, verdict) = job(started(), vec![write("/etc/x", RootMatch::Outside)]);
    (log(&lines), verdict)
}

#[test]
fn the_same_policy_says_the_same() {
    let (log, verdict) = small();
    let replayed = replay(&log[..], policy()).unwrap();
    assert!(replayed.same_policy && replayed.agrees());
    assert_eq!(replayed.logged, Outcome::Fail);
    assert_eq!(replayed.verdict, verdict);
    let verified = verify(&log[..]).unwrap();
    assert_eq!(verified.log, verdict.log);
}

#[test]
fn a_flipped_bit_in_any_byte_is_found() {
    let (log, _) = small();
    for at in 0..log.len() {
        let mut changed = log.clone();
        changed[at] ^= 1 << (at % 8);
        let line = log[..at].iter().filter(|b| **b == b'\n').count() as u64;
        assert!(flaw(&changed).0 <= line, "byte {at} of line {line}");
    }
}

#[test]
fn a_broken_log_says_how_far_it_is_good() {
    let (log, _) = small();
    let lines: Vec<&[u8]> = log.split_inclusive(|b| *b == b'\n').collect();
    assert_eq!(lines.len(), 5);
    let some =
        |order: &[usize]| flaw(&order.iter().flat_map(|n| lines[*n].to_vec()).collect::<Vec<_>>());
    assert_eq!(flaw(b""), (0, Flaw::Empty));
    assert_eq!(flaw(b"\n"), (0, Flaw::NotCanonical));
    assert_eq!(flaw(&log[..log.len() - 1]), (4, Flaw::Truncated));
    assert_eq!(flaw(&log[..log.len() - 30]), (4, Flaw::Truncated));
    assert_eq!(some(&[0, 1, 2, 3]), (4, Flaw::Unclosed));
    assert_eq!(some(&[0]), (1, Flaw::Unclosed));
    assert_eq!(some(&[0, 1, 3, 4]), (2, Flaw::Sequence { expected: 2, found: 3 }));
    assert_eq!(some(&[0, 2, 1, 3, 4]), (1, Flaw::Sequence { expected: 1, found: 2 }));
    assert_eq!(some(&[0, 1, 1, 2, 3, 4]), (2, Flaw::Sequence { expected: 2, found: 1 }));
    assert_eq!(some(&[0, 1, 2, 3, 4, 4]), (5, Flaw::AfterClosing));
    assert!(matches!(some(&[1, 2, 3, 4]), (0, Flaw::Content(_))));
    let spaced = [lines[0], b" ", lines[1]].concat();
    assert_eq!(flaw(&spaced), (1, Flaw::NotCanonical));
    let text = replay(&log[..log.len() - 1], policy()).unwrap_err().to_string();
    assert!(text.starts_with("line 5: the line is cut off"), "{text}");
    assert!(text.ends_with("the log is good for its first 4 records"), "{text}");
}

#[test]
fn a_log_of_another_job_does_not_continue_this_one() {
    let (log, _) = small();
    let other = Started { host: "build-2".into(), ..started() };
    let (lines, _) = job(other, vec![]);
    let first = log.split_inclusive(|b| *b == b'\n').next().unwrap();
    let mixed = [first, &lines[1].bytes, b"\n"].concat();
    assert_eq!(flaw(&mixed), (1, Flaw::Prev));
}

#[test]
fn roots_hold_whatever_is_taken_out_of_their_paths() {
    let root = "/srv/ghp_0123456789abcdef";
    let start = || {
        let mut start = Started { policy: policy_with_roots(&[root]), ..started() };
        start.roots =
            vec![Root { id: 1, path: root.into(), entry: Some(0), rights: Rights::WRITE }];
        start
    };
    let write = |path: &str, root| vec![write(&format!("{path}/a"), root)];
    for (inputs, outcome) in [
        (write(root, RootMatch::Below(1)), Outcome::Pass),
        // Alike in the log, and still not the same.
        (write("/srv/ghp_fedcba9876543210", RootMatch::Outside), Outcome::Fail),
    ] {
        let (lines, verdict) = job(start(), inputs);
        let log = log(&lines);
        assert_eq!(verdict.verdict, outcome);
        assert!(!String::from_utf8(log.clone()).unwrap().contains("ghp_"));
        let replayed = replay(&log[..], policy_with_roots(&[root])).unwrap();
        assert!(replayed.same_policy && replayed.agrees());
        assert_eq!(replayed.verdict, verdict);
        let under = |roots: &[&str]| {
            let replayed = replay(&log[..], policy_with_roots(roots)).unwrap();
            replayed.verdict.verdict
        };
        assert_eq!(under(&[root, "/opt"]), outcome);
        assert_eq!(under(&["/opt"]), Outcome::Fail);
    }
    let (lines, _) = job(started(), write(root, RootMatch::Outside));
    let replayed = replay(&log(&lines)[..], policy_with_roots(&[root])).unwrap();
    assert_eq!(replayed.verdict.verdict, Outcome::Indeterminate, "which of them it was");
}

#[test]
fn a_clock_that_goes_backwards_breaks_nothing() {
    let at = |ts| match write("/etc/x", RootMatch::Outside) {
        Input::Event(event) => Input::Event(Event { ts, ..event }),
        other => other,
    };
    let inputs = vec![at(T0 + 9), at(T0 - 5 * 86_400_000_000_000), at(1), at(T0 + 10)];
    let (lines, verdict) = job(started(), inputs);
    let log = log(&lines);
    assert_eq!(verify(&log[..]).unwrap().log, verdict.log);
    let replayed = replay(&log[..], policy()).unwrap();
    assert!(replayed.agrees());
    assert_eq!(replayed.verdict, verdict);
}

#[test]
fn the_policy_file_may_have_another_name() {
    let (log, verdict) = small();
    let mut kept = policy();
    kept.file = "evidence/policy".into();
    let replayed = replay(&log[..], kept).unwrap();
    assert!(replayed.same_policy && replayed.agrees());
    assert_eq!(replayed.verdict, verdict);
}

#[test]
fn another_policy_judges_by_paths() {
    let judge = |inputs: Vec<Input>, roots: &[&str]| {
        let (lines, _) = job(started(), inputs);
        let replayed = replay(&log(&lines)[..], policy_with_roots(roots)).unwrap();
        assert!(!replayed.same_policy && replayed.agrees());
        replayed.verdict.verdict
    };
    let inside = || vec![write("/srv/repo/sub/a", RootMatch::Below(1))];
    let outside = || vec![write("/opt/cache/a", RootMatch::Outside)];
    let trick = || vec![write("/srv/repo/mount/a", RootMatch::Outside)];
    let tmp = || vec![write("/tmp/effectgate-3/a", RootMatch::Below(9))];
    let unknown = || vec![write("/srv/repo/a", RootMatch::Unknown)];
    assert_eq!(judge(inside(), &["/srv"]), Outcome::Pass);
    assert_eq!(judge(inside(), &["/srv/repo"]), Outcome::Pass);
    assert_eq!(judge(inside(), &["/srv/repo/sub"]), Outcome::Pass);
    assert_eq!(judge(inside(), &["/srv/repo/su"]), Outcome::Fail);
    assert_eq!(judge(inside(), &["/opt"]), Outcome::Fail);
    assert_eq!(judge(outside(), &["/opt"]), Outcome::Pass);
    assert_eq!(judge(outside(), &["/opt/cachex"]), Outcome::Fail);
    assert_eq!(judge(trick(), &["/srv/repo/mount"]), Outcome::Fail);
    assert_eq!(judge(tmp(), &["/opt"]), Outcome::Pass);
    assert_eq!(judge(unknown(), &["/srv"]), Outcome::Indeterminate);
}

/// The start, the canary, the launch, one of each kind of effect, the end.
fn broad() -> Vec<serde_json::Value> {
    let net = What::Net {
        op: NetOp::Connect,
        address: "192.0.2.1".parse().unwrap(),
        port: 443,
        protocol: 6,
        own: false,
        namespace: Namespace::Own,
    };
    let process = Known { pid: 7, ppid: 1, start: 3, exe: b"/bin/x".to_vec(), comm: b"x".to_vec() };
    let link = What::File {
        op: FileOp::Link,
        object: object("/srv/repo/a", RootMatch::Below(1)),
        other: Some(object("/srv/repo/b", RootMatch::Below(1))),
        coverage: Coverage::Object,
    };
    let inputs = vec![
        event(What::Fork { pid: 42, ppid: 1, start: 5 }),
        exec(42, 5, "/bin/sh"),
        env(&["PATH", "CI"]),
        event(link),
        event(net),
        event(What::Guard(Guard::Entered {
            process: process.clone(),
            env: Some(vec![b"PATH".to_vec()]),
        })),
        event(What::Guard(Guard::Unknown { kind: 1, op: 2 })),
        Input::Gap { job: JOB, ts: T0, stage: Stage::Ring, lost: vec![(Class::File, 3)] },
        Input::Notice { job: JOB, ts: T0, notice: Notice::Leftovers { killed: 1 } },
        event(What::Exit { code: 0 }),
    ];
    let held = Started { processes: vec![process], env: vec![b"PATH".to_vec()], ..started() };
    job(held, inputs).0.iter().map(json).collect()
}

#[test]
fn the_clocks_offset_is_recorded() {
    let opening = &broad()[0];
    // Larger than what every JSON reader holds exactly.
    assert_eq!(opening["object"]["boot_offset"], (T0 - 1_000).to_string());
}

#[test]
fn the_chain_is_built_as_documented() {
    let (lines, _) = job(started(), vec![exec(42, 5, "/bin/sh"), env(&["CI"])]);
    assert_eq!(seal(lines.iter().map(json).collect()), log(&lines));
}

/// Each version finds more secrets than the one before. What an older one wrote
/// stays the log that it is, and comes out as it stands there.
#[test]
fn a_log_of_a_version_that_took_less_out_agrees() {
    let (lines, _) = job(started(), vec![exec(42, 5, "/bin/sh")]);
    let mut records: Vec<_> = lines.iter().map(json).collect();
    let at = records.iter().position(|record| record["action"] == "exec").unwrap();
    assert_eq!(records[at]["object"]["argv"][2], "[redacted]");
    records[at]["object"]["argv"][2] = "hunter2hunter2".into();
    let replayed = replay(&seal(records)[..], policy()).unwrap();
    assert_eq!(replayed.disagreement, None);
}

#[test]
fn a_forged_record_disagrees_although_its_chain_is_whole() {
    let mut records = broad();
    let log = seal(records.clone());
    assert!(replay(&log[..], policy()).unwrap().agrees());
    for (at, pointer, value) in [
        (8, "/decision", serde_json::json!("recorded")),
        (8, "/object/port", serde_json::json!(80)),
        (7, "/object/other/root", serde_json::json!(null)),
        (7, "/process/exe", serde_json::json!("/bin/true")),
    ] {
        let before = records[at].clone();
        *records[at].pointer_mut(pointer).unwrap() = value;
        let replayed = replay(&seal(records.clone())[..], policy()).unwrap();
        assert_eq!(replayed.disagreement, Some(at as u64), "{pointer}");
        records[at] = before;
    }
    // A verdict that was turned into a pass is found as well.
    let end = records.len() - 1;
    records[end]["object"]["verdict"] = "pass".into();
    let replayed = replay(&seal(records)[..], policy()).unwrap();
    assert_eq!(replayed.disagreement, Some(end as u64));
    assert_eq!(
        (replayed.logged, replayed.verdict.verdict),
        (Outcome::Pass, Outcome::Indeterminate)
    );
}

/// Replaces the n-th value of a tree.
fn replace(value: &mut serde_json::Value, n: &mut usize, with: &serde_json::Value) {
    if *n == 0 {
        *value = with.clone();
    }
    *n = n.wrapping_sub(1);
    match value {
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| replace(item, n, with)),
        serde_json::Value::Object(members) => {
            members.values_mut().for_each(|member| replace(member, n, with));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn replay_is_live_byte_for_byte(
        start in any_start(),
        inputs in prop::collection::vec(any_input(), 0..40),
        launch in 0..10usize,
    ) {
        let mut all = vec![Input::Started(Box::new(start)), canary()];
        all.extend(inputs);
        all.insert(all.len().min(launch + 1), launched());
        all.push(finished());
        let (lines, verdict) = run(all.clone());
        let log = log(&lines);
        prop_assert_eq!(&run(all).0, &lines, "live is deterministic");
        let written = [&log[..], &serde_json::to_vec(&verdict).unwrap()].concat();
        prop_assert!(!String::from_utf8(written).unwrap().contains(PLANTED), "a secret survived");
        let replayed = replay(&log[..], policy()).unwrap();
        prop_assert_eq!(replayed.disagreement, None);
        prop_assert_eq!(replayed.logged, verdict.verdict);
        prop_assert_eq!(replayed.verdict, verdict);
        let other = replay(&log[..], policy_with_roots(&["/opt"])).unwrap();
        prop_assert!(other.agrees());
    }

    #[test]
    fn forged_content_never_panics(
        at in 0..15usize,
        n in 1..80usize,
        with in prop::sample::select(vec![
            serde_json::json!(null), serde_json::json!(true), serde_json::json!(-1),
            serde_json::json!(1.5), serde_json::json!(9_007_199_254_740_991_u64),
            serde_json::json!("18446744073709551615"), serde_json::json!("\\x"),
            serde_json::json!("verdict"), serde_json::json!("start"), serde_json::json!([[]]),
            serde_json::json!({"pid": 1}), serde_json::json!(""), serde_json::json!("guard"),
        ]),
    ) {
        let mut records = broad();
        let at = at.min(records.len() - 1);
        replace(&mut records[at], &mut { n }, &with);
        if records.iter().all(|record| record.is_object()) {
            let _ = replay(&seal(records.clone())[..], policy());
            let _ = report::of_log(&seal(records.clone())[..], policy(), ENVELOPE.as_bytes());
            let _ = replay(&seal(records)[..], policy_with_roots(&["/opt"]));
        }
    }

    #[test]
    fn arbitrary_logs_never_panic(bytes: Vec<u8>, at in 0..2000usize, byte: u8) {
        let _ = replay(&bytes[..], policy());
        let (mut log, _) = small();
        let at = at.min(log.len() - 1);
        if log[at] != byte {
            log[at] = byte;
            prop_assert!(replay(&log[..], policy()).is_err());
        }
        prop_assert!(replay(&log[..at], policy()).is_err());
    }
}
