//! The table, every row of it; and what no ledger changes.

use proptest::prelude::*;

use super::*;

const TODAY: &str = "2026-01-15";

fn side(runner: &str, verdict: Outcome, results: &[(&str, PropertyResult)]) -> Side {
    let results = results.iter().filter(|(_, result)| *result != PropertyResult::Absent);
    Side {
        runner: runner.to_owned(),
        is_named: true,
        bundle: runner.repeat(8),
        log: format!("effectgate/log/{runner}"),
        policy: "c".repeat(64),
        verdict,
        results: results.map(|(name, result)| ((*name).to_owned(), *result)).collect(),
    }
}

fn row(property: &str, left: PropertyResult, right: PropertyResult) -> Freeze {
    let run = |runner: &str, result| Run {
        runner: runner.to_owned(),
        result,
        bundle: "an earlier run's".to_owned(),
    };
    Freeze {
        property: property.to_owned(),
        first: run("left", left),
        second: run("right", right),
        policy: "c".repeat(64),
        owner: "A. Person".to_owned(),
        reason: "known".to_owned(),
        created: "2026-01-01".to_owned(),
        expires: "2026-01-31".to_owned(),
    }
}

/// The ledgers that a disagreement can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Nothing,
    Live,
    Turned,
    Expired,
    Future,
    OtherProperty,
    OtherResult,
    OtherRunner,
    OtherPolicy,
}

const KEPT: [Kept; 9] = [
    Kept::Nothing,
    Kept::Live,
    Kept::Turned,
    Kept::Expired,
    Kept::Future,
    Kept::OtherProperty,
    Kept::OtherResult,
    Kept::OtherRunner,
    Kept::OtherPolicy,
];

fn ledger(kept: Kept, left: PropertyResult, right: PropertyResult) -> Vec<Freeze> {
    let mut row = row("rank", left, right);
    match kept {
        Kept::Nothing => return Vec::new(),
        Kept::Live => {}
        Kept::Turned => std::mem::swap(&mut row.first, &mut row.second),
        Kept::Expired => row.expires = "2026-01-14".to_owned(),
        Kept::Future => row.created = "2026-01-16".to_owned(),
        Kept::OtherProperty => row.property = "ranks".to_owned(),
        Kept::OtherResult => {
            row.first.result = right;
            row.second.result = left;
        }
        Kept::OtherRunner => row.second.runner = "another".to_owned(),
        Kept::OtherPolicy => row.policy = "d".repeat(64),
    }
    vec![row]
}

/// The table, written down once more.
fn expected(verdicts: [Outcome; 2], results: [PropertyResult; 2], kept: Kept) -> Answer {
    use PropertyResult::{Fail, Pass};
    if verdicts.contains(&Outcome::Fail) {
        return Answer::Fail;
    }
    if verdicts.contains(&Outcome::Indeterminate) {
        return Answer::Indeterminate;
    }
    match (results, kept) {
        (_, Kept::Expired | Kept::Future) => Answer::Fail,
        ([Pass, Pass], _) => Answer::Pass,
        ([Fail, Fail], _) => Answer::Fail,
        (_, Kept::Live | Kept::Turned) => Answer::Pass,
        _ => Answer::Hold,
    }
}

#[test]
fn every_row_of_the_table() {
    let mut seen = BTreeMap::new();
    for left in Outcome::ALL {
        for right in Outcome::ALL {
            for one in PropertyResult::ALL {
                for other in PropertyResult::ALL {
                    if (one, other) == (&PropertyResult::Absent, &PropertyResult::Absent) {
                        continue;
                    }
                    for kept in KEPT {
                        let pass = ("other", PropertyResult::Pass);
                        let sides = [
                            side("left", *left, &[("rank", *one), pass]),
                            side("right", *right, &[("rank", *other), pass]),
                        ];
                        let rows = ledger(kept, *one, *other);
                        let made = decide(&sides[0], &sides[1], &rows, TODAY);
                        let wanted = expected([*left, *right], [*one, *other], kept);
                        let case = format!("{left:?} {right:?} {one:?} {other:?} {kept:?}");
                        assert_eq!(made.decision, wanted, "{case}: {made:?}");
                        assert_eq!(
                            made.decision == Answer::Pass,
                            made.reasons.is_empty(),
                            "{case}"
                        );
                        assert_eq!(made.decision == Answer::Hold, !made.held.is_empty(), "{case}");
                        *seen.entry(wanted.name()).or_insert(0) += 1;
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), Answer::ALL.len(), "{seen:?}");
}

#[test]
fn what_was_frozen_is_listed_and_what_may_be_is_offered() {
    let (pass, fail) = (PropertyResult::Pass, PropertyResult::Fail);
    let left = side("left", Outcome::Pass, &[("rank", pass), ("p99", pass)]);
    let right = side("right", Outcome::Pass, &[("rank", fail), ("p99", fail)]);
    let made = decide(&left, &right, &[row("rank", pass, fail)], TODAY);
    assert_eq!(made.decision, Answer::Hold);
    assert_eq!(made.frozen, [row("rank", pass, fail)]);
    assert_eq!(made.held.len(), 1);
    assert_eq!((made.held[0].property.as_str(), made.held[0].left.result), ("p99", pass));
    let both = [row("rank", pass, fail), row("p99", pass, fail)];
    assert_eq!(decide(&left, &right, &both, TODAY).decision, Answer::Pass);
}

#[test]
fn two_runs_of_one_runner_are_no_two_opinions() {
    let pass = PropertyResult::Pass;
    let good = side("left", Outcome::Pass, &[("rank", pass)]);
    let other = side("right", Outcome::Pass, &[("rank", pass)]);
    let fails =
        |left: &Side, right: &Side| decide(left, right, &[], TODAY).decision == Answer::Fail;
    assert!(!fails(&good, &other));
    assert!(fails(&good, &good));
    for runner in ["left", "Left", "le\u{200b}ft", "\u{ff4c}eft", "l\u{435}ft", "IEFT"] {
        assert!(fails(&good, &Side { runner: runner.into(), ..other.clone() }), "{runner:?}");
    }
    for (one, two) in [("AI", "Al"), ("a b", "a  b"), ("node-1", "node-I"), ("v3.10", "v3.1O")] {
        let named = |runner: &str, side: &Side| Side { runner: runner.into(), ..side.clone() };
        assert!(fails(&named(one, &good), &named(two, &other)), "{one} {two}");
        let honest = format!("{one}.2");
        assert!(!fails(&named(one, &good), &named(&honest, &other)), "{one} {honest}");
    }
    // One run in two bundles, each with a runner's name of its own.
    assert!(fails(&good, &Side { log: good.log.clone(), ..other.clone() }));
    assert!(fails(&good, &Side { is_named: false, ..other.clone() }));
    assert!(fails(&good, &Side { policy: "d".repeat(64), ..other.clone() }));
    assert!(fails(&good, &Side { results: BTreeMap::new(), ..other }));
}

#[test]
fn a_command_that_failed_for_no_told_reason_fails() {
    let (pass, fail) = (PropertyResult::Pass, PropertyResult::Fail);
    let properties = |result| {
        Properties::new("r".into(), BTreeMap::from([("rank".to_owned(), result)])).unwrap()
    };
    let of = |properties: Option<&Properties>, exit| {
        let results = results(properties, exit);
        let named = |name: &str| results.get(name).copied();
        (named("rank"), named(COMMAND))
    };
    let code = |code| Some(Exit::Code(code));
    assert_eq!(of(None, None), (None, None));
    assert_eq!(of(None, code(0)), (None, Some(pass)));
    assert_eq!(of(None, code(1)), (None, Some(fail)));
    assert_eq!(of(None, Some(Exit::Signal(9))), (None, Some(fail)));
    assert_eq!(of(Some(&properties(pass)), code(0)), (Some(pass), None));
    assert_eq!(of(Some(&properties(pass)), None), (Some(pass), None));
    assert_eq!(of(Some(&properties(pass)), code(1)), (Some(pass), Some(fail)));
    assert_eq!(of(Some(&properties(fail)), code(1)), (Some(fail), None));
    assert_eq!(of(Some(&properties(fail)), code(125)), (Some(fail), None));
    assert_eq!(of(Some(&properties(fail)), code(126)), (Some(fail), Some(fail)));
    assert_eq!(of(Some(&properties(fail)), Some(Exit::Signal(9))), (Some(fail), Some(fail)));
    let none = Properties::parse(
        format!(
            r#"{{"schema": "{}", "runner": "r", "properties": {{}}}}"#,
            crate::properties::SCHEMA
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(of(Some(&none), code(0)), (None, Some(pass)));
    // And no freeze covers it.
    let left = side("left", Outcome::Pass, &[("rank", pass)]);
    let right = side("right", Outcome::Pass, &[("rank", pass), (COMMAND, fail)]);
    let made = decide(&left, &right, &[], TODAY);
    assert_eq!((made.decision, made.held.len()), (Answer::Fail, 0));
}

fn result() -> impl Strategy<Value = PropertyResult> {
    prop::sample::select(PropertyResult::ALL)
}

prop_compose! {
    fn any_row()(
        property in "[a-c]|command", left in result(), right in result(),
        created in "2026-01-[0-3][0-9]", expires in "2026-01-[0-3][0-9]", swap: bool,
    ) -> Freeze {
        let mut row = Freeze { created, expires, ..row(&property, left, right) };
        if swap { std::mem::swap(&mut row.first, &mut row.second); }
        row
    }
}

proptest! {
    /// Whatever the runners and the ledger say.
    #[test]
    fn a_violation_never_passes(
        violated in prop::sample::select(&[Outcome::Fail, Outcome::Indeterminate][..]),
        other in prop::sample::select(Outcome::ALL),
        left in prop::collection::btree_map("[a-c]", result(), 0..4),
        right in prop::collection::btree_map("[a-c]", result(), 0..4),
        rows in prop::collection::vec(any_row(), 0..6),
        swap: bool,
    ) {
        let mut sides = [side("left", violated, &[]), side("right", other, &[])];
        sides[0].results = left;
        sides[1].results = right;
        if swap {
            let verdict = sides[0].verdict;
            sides[0].verdict = sides[1].verdict;
            sides[1].verdict = verdict;
        }
        let made = decide(&sides[0], &sides[1], &rows, TODAY);
        prop_assert!(matches!(made.decision, Answer::Fail | Answer::Indeterminate));
        prop_assert!(made.frozen.is_empty() && made.held.is_empty());
        if violated == Outcome::Fail || other == Outcome::Fail {
            prop_assert_eq!(made.decision, Answer::Fail);
        }
    }

    /// A ledger can open only what the runners disagree on.
    #[test]
    fn agreement_is_never_changed(
        results in prop::collection::btree_map("[a-c]", result(), 1..4),
        rows in prop::collection::vec(any_row(), 0..6),
    ) {
        let mut sides = [side("left", Outcome::Pass, &[]), side("right", Outcome::Pass, &[])];
        sides[0].results = results.clone();
        sides[1].results = results.clone();
        let made = decide(&sides[0], &sides[1], &rows, TODAY);
        let failed = results.values().any(|result| *result == PropertyResult::Fail);
        prop_assert!(!failed || made.decision == Answer::Fail);
    }
}
