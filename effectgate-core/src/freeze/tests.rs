//! Ledgers that hold, and ledgers edited by hand.

use proptest::prelude::*;

use super::*;

pub fn freeze(property: &str) -> Freeze {
    let run = |runner: &str, result, bundle: char| Run {
        runner: runner.to_owned(),
        result,
        bundle: bundle.to_string().repeat(64),
    };
    Freeze {
        property: property.to_owned(),
        first: run("left", PropertyResult::Pass, 'a'),
        second: run("right", PropertyResult::Fail, 'b'),
        policy: "c".repeat(64),
        owner: "A. Person".to_owned(),
        reason: "the index is rebuilt".to_owned(),
        created: "2026-01-01".to_owned(),
        expires: "2026-01-31".to_owned(),
    }
}

fn faults(rows: &[Freeze]) -> Vec<(&'static str, u32, u32)> {
    let faults = parse("l.tsv", format(rows).as_bytes()).err().unwrap_or_default();
    faults.iter().map(|fault| (fault.rule, fault.line, fault.column)).collect()
}

#[test]
fn a_ledger_is_read_as_it_was_written() {
    let rows = [freeze("ranking/top-10"), freeze("latency p99")];
    assert_eq!(parse("l", format(&rows).as_bytes()).as_deref(), Ok(&rows[..]));
    assert_eq!(parse("l", b"").as_deref(), Ok(&[][..]));
    assert_eq!(parse("l", format(&[]).as_bytes()).as_deref(), Ok(&[][..]));
}

#[test]
fn each_column_is_checked_in_its_place() {
    let edit = |change: fn(&mut Freeze)| {
        let mut row = freeze("p");
        change(&mut row);
        faults(&[row])
    };
    assert_eq!(edit(|row| row.property = String::new()), [("ledger-value", 2, 1)]);
    assert_eq!(edit(|row| row.first.runner = " x".into()), [("ledger-value", 2, 3)]);
    assert_eq!(edit(|row| row.second.runner = "left".into()), [("ledger-runs", 2, 13)]);
    assert_eq!(edit(|row| row.second.result = PropertyResult::Pass), [("ledger-runs", 2, 19)]);
    assert_eq!(edit(|row| row.policy = "C".repeat(64)), [("ledger-value", 2, 24)]);
    assert_eq!(edit(|row| row.first.bundle.truncate(63)), [("ledger-value", 2, 89)]);
    assert_eq!(edit(|row| row.second.bundle = "a".repeat(64)), [("ledger-runs", 2, 154)]);
    assert_eq!(edit(|row| row.owner = "renovate[bot]".into()), [("owner-bot", 2, 219)]);
    assert_eq!(edit(|row| row.reason = String::new()), [("ledger-value", 2, 229)]);
    assert_eq!(
        edit(|row| row.created = "2026-02-30".into()),
        [("ledger-dates", 2, 250), ("ledger-dates", 2, 261)]
    );
    assert_eq!(edit(|row| row.expires = "31.12.2026".into()), [("ledger-dates", 2, 261)]);
    assert_eq!(edit(|row| row.expires = "2025-12-31".into()), [("ledger-dates", 2, 261)]);
    assert_eq!(edit(|row| row.expires = String::new()).first(), Some(&("ledger-dates", 2, 261)));
}

#[test]
fn what_an_envelope_covers_cannot_be_frozen() {
    for property in [
        "file",
        "net",
        "NET/port",
        "exec: sh",
        "env",
        "tool",
        "limit",
        "guard",
        "violation",
        "Violations of p",
        "effects",
        "verdict",
        "coverage.file",
        "allowed_roots",
        "write_roots.docs",
        "max_steps",
        "network",
        "policy",
        "command",
        "Command",
        // However it is dressed up.
        "/file/x",
        "(net)",
        "-exec",
        "_env_",
        "net_calls",
        "\u{200b}file",
        "fi\u{ad}le/x",
        "\u{feff}command",
        "\u{ff46}\u{ff49}\u{ff4c}\u{ff45}/x",
        "allowed\u{2060}_roots: x",
        " \u{e0041}verdict",
        "command.",
    ] {
        let faults = faults(&[freeze(property)]);
        assert!(faults.iter().any(|fault| fault.0 == "freeze-scope"), "{property:?}");
    }
    for property in [
        "ranking",
        "p99",
        "netto price",
        "profile",
        "a/file",
        "command line",
        "version/1",
        "owner",
        "profile_net",
        "ｐ９９",
    ] {
        assert_eq!(faults(&[freeze(property)]), [], "{property}");
    }
}

#[test]
fn ledgers_edited_by_hand() {
    let good = format(&[freeze("p")]);
    for (bad, line) in [
        (good.trim_end().to_owned(), 2),
        (good.replace("property\t", "property "), 1),
        (good.replacen('\n', "\r\n", 1), 1),
        (good.clone() + "\n", 3),
        (good.clone() + "# a comment\n", 3),
        (good.replace("\tpass\t", "\tpassed\t"), 2),
        (good.replace("\tpass\t", "\t\tpass\t"), 2),
        (good.replace("\tpass", ""), 2),
        (good.clone() + good.lines().last().unwrap() + "\n", 3),
        (good.replace("2026-01-31\n", "2026-01-31\r\n"), 2),
    ] {
        let faults = parse("l", bad.as_bytes()).expect_err(&bad);
        assert_eq!(faults[0].line, line, "{bad}: {faults:?}");
        assert!(faults.iter().all(|fault| !fault.why().is_empty()));
    }
    assert!(parse("l", b"\xff\n").is_err());
    // The same disagreement, told from the other side.
    let mut turned = freeze("p");
    std::mem::swap(&mut turned.first, &mut turned.second);
    assert_eq!(faults(&[freeze("p"), turned]), [("ledger-form", 3, 1)]);
}

#[test]
fn it_holds_through_its_last_day() {
    let row = freeze("p");
    for (day, state) in [
        ("2025-12-31", State::Future),
        ("2026-01-01", State::Live),
        ("2026-01-31", State::Live),
        ("2026-02-01", State::Expired),
    ] {
        assert_eq!(row.state(day), state, "{day}");
        assert_eq!(admit(row.clone(), "l", day).is_ok(), state == State::Live, "{day}");
    }
}

#[test]
fn a_row_is_renewed_and_never_doubled() {
    let mut rows = vec![freeze("p"), freeze("q")];
    let again =
        Freeze { created: "2026-02-01".into(), expires: "2026-03-01".into(), ..freeze("p") };
    assert_eq!(insert(&mut rows, again.clone(), "2026-01-31"), Err(Box::new(freeze("p"))));
    assert_eq!(insert(&mut rows, again.clone(), "2026-02-01"), Ok(()));
    assert_eq!(rows, [freeze("q"), again]);
    assert_eq!(insert(&mut rows, freeze("r"), "2026-01-31"), Ok(()));
    assert_eq!(rows.len(), 3);
}

proptest! {
    #[test]
    fn any_ledger(text: String, tail: Vec<u8>) {
        let _ = parse("l", text.as_bytes());
        let _ = parse("l", &[format(&[]).as_bytes(), &tail].concat());
    }

    /// What is taken from a file is what would be written.
    #[test]
    fn one_text_for_each_ledger(cells in prop::collection::vec("[a-z \\t\\n]{0,3}|2026-01-01", 12)) {
        let text = HEADER.join("\t") + "\n" + &cells.join("\t") + "\n";
        if let Ok(rows) = parse("l", text.as_bytes()) {
            prop_assert_eq!(format(&rows), text);
        }
    }
}
