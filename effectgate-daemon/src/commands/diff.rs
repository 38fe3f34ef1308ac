//! `effectgate diff`

use effectgate_core::{diff, pin};
use serde_json::json;

use super::{policy, print, print_json};
use crate::{
    cli::{Diff, Format},
    exit::{self, Code, Outcomes},
};

pub fn diff(args: &Diff, format: Format) -> Outcomes {
    let (old, _) = policy::read(&args.old).code(exit::USAGE)?;
    let (new, _) = policy::read(&args.new).code(exit::USAGE)?;
    let note = args.review_note.as_deref().map(policy::read_note).transpose();
    let note = note.code(exit::USAGE)?.map(|(note, _)| note);
    let delta = diff::diff(&old, &new);
    // A note beside a change that permits nothing more is not asked for.
    let reviewed = match &note {
        Some(note) if delta.widens() => Some(pin::verify(&new.sha256, &old.sha256, Some(note))),
        _ => None,
    };
    let covered = matches!(reviewed, Some(Ok(())));
    match format {
        Format::Json => {
            let side = |policy: &effectgate_core::policy::Policy| {
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
        Format::Text => {
            let review = match &note {
                _ if !delta.widens() => String::new(),
                Some(note) if covered => {
                    format!(", reviewed by {} on {}", note.reviewer, note.date)
                }
                _ => format!(
                    "; to let it through, write a review note from {} to {}",
                    old.sha256, new.sha256
                ),
            };
            print(&format!("{delta}{review}\n"));
        }
    }
    if let Some(Err(error)) = reviewed {
        return Err(error).code(exit::DOES_NOT_HOLD);
    }
    let holds = covered || !delta.widens();
    Ok(if holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}
