//! `effectgate replay`

use std::io::{BufRead as _, Cursor, Read as _};

use anyhow::Context;
use effectgate_core::{
    Outcome,
    replay::{self, LONGEST},
};

use super::{policy, print_verdict};
use crate::{
    bundle::log_at,
    cli::{Format, Replay},
    clock,
    exit::{self, Code, Failure, Outcomes},
};

pub fn replay(args: &Replay, format: Format) -> Outcomes {
    let mut log = log_at(&args.events).code(exit::USAGE)?;
    // It may be a pipe, which is read only once.
    let mut first = Vec::new();
    let _ = log.by_ref().take(LONGEST).read_until(b'\n', &mut first);
    let day = replay::day(&first[..]).unwrap_or_else(clock::today);
    let (policy, _) = policy::of_kind(&args.policy, &day).code(exit::USAGE)?;
    let replayed = replay::replay(Cursor::new(first).chain(&mut log), policy)
        .map_err(|error| log.explain(error))
        .with_context(|| format!("the log {} does not hold", args.events.display()))
        .code(exit::DOES_NOT_HOLD)?;
    print_verdict(&replayed.verdict, format)?;
    if !replayed.agrees() {
        let at = replayed.disagreement.map(|seq| format!(", first at record {seq}"));
        return Err(Failure {
            code: exit::DOES_NOT_HOLD,
            error: anyhow::anyhow!(
                "judging the log again comes to another result than it says{}",
                at.unwrap_or_default()
            ),
        });
    }
    let holds = replayed.verdict.verdict == Outcome::Pass;
    Ok(if holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}
