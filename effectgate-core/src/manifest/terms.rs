//! What else a manifest says: pins, and how it is to be run.

use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::input::{Coverage, Mode};
use crate::policy::OnLoss;

/// Name and version of what is pinned. A version that moves pins nothing.
pub(super) fn pins(fields: Fields, faults: &mut Faults) -> Vec<(String, String)> {
    let members = fields.object("pins").map(Fields::members).unwrap_or_default();
    let mut pins = Vec::new();
    for member in members {
        let Some(version) = member.value.text() else { continue };
        if is_floating(version) {
            let message = format!("pins.{}: {} moves", member.key, quoted(version));
            let help = "write the exact version, as in 1.4.2";
            faults.add(member.value.at, "pin-floating", message, help);
        }
        pins.push((member.key.clone(), version.to_owned()));
    }
    pins
}

fn is_floating(version: &str) -> bool {
    const MOVING: [&str; 14] = [
        "any", "canary", "current", "default", "dev", "edge", "head", "latest", "lts", "main",
        "master", "newest", "nightly", "stable",
    ];
    let lower = version.trim().to_lowercase();
    let last = lower.rsplit([':', '@', '/']).next().unwrap_or_default();
    let wild = |part: &str| part == "x" || part == "*";
    MOVING.contains(&last)
        || last.ends_with("-latest")
        || last.is_empty()
        || lower.contains(['*', '^', '~', '<', '>', '=', '|', ',', ' '])
        || last.split('.').any(wild)
}

pub(super) fn min_coverage(fields: Fields) -> Option<Coverage> {
    match fields.text("min_coverage")?.1 {
        "argument" => Some(Coverage::Argument),
        "object" => Some(Coverage::Object),
        _ => None,
    }
}

pub(super) fn on_loss(fields: Fields) -> OnLoss {
    // `observe` is what older manifests say for `mark`.
    let word = fields.text("on_loss").map(|(_, word)| word);
    word.and_then(OnLoss::from_name).unwrap_or_default()
}

pub(super) fn on_violation(fields: Fields) -> Mode {
    let word = fields.text("on_violation").map(|(_, word)| word);
    word.and_then(Mode::from_name).unwrap_or_default()
}
