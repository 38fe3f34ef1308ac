//! A case, and what its two tests do.

use effectgate_tests::{gate, record, watched};

use crate::stage::{Side, Stage};

/// One effect.
pub(crate) struct Case {
    /// What of the kernel side it exercises: names in the hook table.
    pub(crate) hooks: &'static [&'static str],
    /// First kernel that has it.
    pub(crate) since: (u8, u8),
    /// Words for `trigger`.
    pub(crate) inside: &'static str,
    pub(crate) outside: &'static str,
    /// What is recorded of it.
    pub(crate) effect: Effect,
    /// How well the tracepoint backend sees it.
    pub(crate) tracepoint: Sight,
}

/// What the record of an effect says.
pub(crate) enum Effect {
    /// Action and path.
    File(&'static str, &'static str),
    /// Action and both paths.
    Two(&'static str, &'static str, &'static str),
    /// Action and endpoint.
    Net(&'static str, &'static str),
    /// An environment key of a process.
    Env(&'static str),
    /// A process left the job's cgroup.
    Escape,
    /// A process ended.
    Exit,
}

/// How well the tracepoint backend sees an effect.
#[derive(PartialEq)]
pub(crate) enum Sight {
    Sees,
    /// It sees the effect, and that it cannot see all that the job does.
    Incomplete,
    /// It sees only that it cannot see all that the job does.
    Blind,
    /// It sees nothing of it, as is written down.
    Unseen,
}

/// What a case says unless it says otherwise.
pub(crate) const CASE: Case = Case {
    hooks: &[],
    since: (5, 7),
    inside: "",
    outside: "",
    effect: Effect::Exit,
    tracepoint: Sight::Sees,
};

pub(crate) fn inside(case: &Case) {
    if too_new(case) || unseen(case) {
        return;
    }
    let stage = Stage::new(case.inside);
    let words = stage.fill(case.inside, Side::Inside);
    let outcome = watched::trigger(&stage.scene, words.split_whitespace());
    if gate::on_tracepoints() && case.tracepoint != Sight::Sees {
        outcome.assert_indeterminate();
    } else {
        outcome.assert_pass();
    }
    if gate::on_tracepoints() && case.tracepoint == Sight::Blind {
        return;
    }
    let expected = stage.expected(&case.effect, Side::Inside);
    let found = outcome.events.iter().find(|event| expected.is(event));
    let event = found.unwrap_or_else(|| panic!("no record of {expected:?}{}", outcome.story()));
    assert_eq!(event["within"], true, "{event}{}", outcome.story());
}

pub(crate) fn outside(case: &Case) {
    if too_new(case) || unseen(case) {
        return;
    }
    let stage = Stage::new(case.outside);
    let words = stage.fill(case.outside, Side::Outside);
    let outcome = watched::trigger(&stage.scene, words.split_whitespace());
    if gate::on_tracepoints() && case.tracepoint == Sight::Blind {
        outcome.assert_indeterminate();
        return;
    }
    outcome.assert_fail();
    let expected = stage.expected(&case.effect, Side::Outside);
    let violations = outcome.violations();
    let found = violations.iter().find(|violation| expected.is(violation));
    let violation =
        found.unwrap_or_else(|| panic!("no violation about {expected:?}{}", outcome.story()));
    let trigger = gate::trigger();
    assert_eq!(record::exe(violation), trigger.to_str().expect("UTF-8"), "{}", outcome.story());
    assert_eq!(violation["within"], false, "{violation}");
    for violation in outcome.violations() {
        assert!(
            expected.is_about(violation, &stage),
            "a violation about something else: {violation}{}",
            outcome.story()
        );
    }
}

fn too_new(case: &Case) -> bool {
    let new = gate::kernel() < case.since;
    if new {
        println!("not tested: came with Linux {}.{}", case.since.0, case.since.1);
    }
    new
}

fn unseen(case: &Case) -> bool {
    let unseen = gate::on_tracepoints() && case.tracepoint == Sight::Unseen;
    if unseen {
        println!("not tested: not seen when system calls return");
    }
    unseen
}
