//! `effectgate diff`

use effectgate_core::{
    diff::{self, Delta},
    pin::{self, ReviewNote},
    policy::Policy,
    rules,
};
use serde_json::json;

use super::{policy, print, print_json, print_sarif, tell};
use crate::{
    cli::{Diff, Wanted},
    diagnose::{Finding, Level, Place, visible},
    exit::{self, Code, Outcomes},
};

pub fn diff(args: &Diff, wanted: Wanted) -> Outcomes {
    // What has expired in the old one was there; a later day is more.
    let (old, _) = policy::read_on(&args.old, policy::ANY_DAY).code(exit::USAGE)?;
    let (new, _) = policy::read(&args.new).code(exit::USAGE)?;
    let note = note(args).code(exit::USAGE)?;
    let delta = diff::diff(&old, &new);
    // A note beside a change that permits nothing more is not asked for.
    let reviewed = match &note {
        Some(note) if delta.widens() => Some(pin::verify(&new.sha256, &old.sha256, Some(note))),
        _ => None,
    };
    let covered = matches!(reviewed, Some(Ok(())));
    match wanted {
        Wanted::Sarif => print_sarif(&findings(&delta, &new, covered), &[])?,
        Wanted::Json => {
            let side = |policy: &Policy| {
                json!({
                    "file": policy.file, "kind": policy.kind, "id": policy.id,
                    "sha256": policy.sha256,
                })
            };
            print_json(&json!({
                "old": side(&old),
                "new": side(&new),
                "holds": covered || !delta.widens(),
                "more": delta.more,
                "less": delta.less,
                "said": delta.said,
                "review_note": note.as_ref().filter(|_| covered),
            }))?;
        }
        Wanted::Text => {
            let review = match &note {
                _ if !delta.widens() => String::new(),
                Some(note) if covered => {
                    format!(", reviewed by {} on {}", note.reviewer, note.date)
                }
                _ => ", not reviewed".to_owned(),
            };
            for line in format!("{delta}{review}").lines() {
                print(&format!("{}\n", visible(line)));
            }
        }
    }
    if let Some(Err(error)) = reviewed {
        return Err(error).code(exit::DOES_NOT_HOLD);
    }
    let holds = covered || !delta.widens();
    if !holds {
        let (old, new) = (old.sha256, new.sha256);
        tell(&format!(
            "to let it through, write a review note whose old_digest is {old} and new_digest {new}"
        ));
    }
    Ok(if holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

/// The review note. One that is not there covers nothing, and is not needed
/// where nothing more is permitted: so a job can always name it.
fn note(args: &Diff) -> anyhow::Result<Option<ReviewNote>> {
    let path = args.review_note.as_deref().filter(|path| path.exists());
    Ok(path.map(policy::read_note).transpose()?.map(|(note, _)| note))
}

/// What is newly permitted, at its lines of the new policy.
fn findings(delta: &Delta, new: &Policy, covered: bool) -> Vec<Finding> {
    let finding = |change: &diff::Change| Finding {
        level: if covered { Level::Note } else { Level::Error },
        rule: diff::PERMITS_MORE,
        file: new.file.clone(),
        place: change.line.map(|line| Place { line: line.into(), mark: None }),
        message: format!("{} may newly {}", new.id, change.may()),
        why: rules::why(diff::PERMITS_MORE),
        help: "take it back, or have it reviewed and write a review note".to_owned(),
        decided: None,
    };
    delta.more.iter().map(finding).collect()
}
