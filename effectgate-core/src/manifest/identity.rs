//! Who runs, and who answers for it.

use unicode_security::skeleton;

use crate::entries::Bad;
use crate::fault::{Faults, quoted};
use crate::form::Fields;

/// The text under a key, if it is a good one.
pub(super) fn read(
    fields: Fields,
    key: &str,
    check: fn(&str) -> Result<(), Bad>,
    faults: &mut Faults,
) -> String {
    let Some((at, text)) = fields.text(key) else { return String::new() };
    if let Err((rule, message, help)) = check(text) {
        faults.add(at, rule, format!("{key}: {message}"), help);
    }
    text.to_owned()
}

pub(super) fn agent_id(text: &str) -> Result<(), Bad> {
    const NO_NAMES: [&str; 4] = ["", "default", "test", "tmp"];
    if NO_NAMES.contains(&text.trim().to_lowercase().as_str()) {
        let message = format!("{} names no service", quoted(text));
        return Err(("agent-id", message, "give the agent a name that it keeps, as in docs-agent"));
    }
    if text.trim() != text {
        let message = format!("{} has blanks at its ends", quoted(text));
        return Err(("agent-id", message, "remove the blanks"));
    }
    Ok(())
}

pub(super) fn owner(text: &str) -> Result<(), Bad> {
    if text.trim().is_empty() {
        let message = "nobody is named: this is a draft".to_owned();
        let help = "review the file, then name the people or the team that answer for it";
        return Err(("owner-missing", message, help));
    }
    if is_bot(text) {
        let message = format!("{} is a bot", quoted(text));
        return Err(("owner-bot", message, "name people or a team"));
    }
    Ok(())
}

/// Whether a name is, or has in it, one as bots have where code is hosted.
pub(crate) fn is_bot(name: &str) -> bool {
    const KNOWN: [&str; 4] = ["dependabot", "renovate", "mergify", "github-actions"];
    let lower = name.to_lowercase();
    let apart = |c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '[' | ']');
    lower.split(apart).any(|word| {
        word == "bot"
            || KNOWN.contains(&word)
            || ["[bot]", "-bot", "_bot"].iter().any(|end| word.ends_with(end))
    })
}

/// Whether two names are one person's, as far as spelling tells: case, blanks,
/// marks and letters that look alike do not make another one.
pub(super) fn is_same_person(one: &str, other: &str) -> bool {
    let same = |spelt: fn(&str) -> String| spelt(one) == spelt(other);
    same(letters) || same(looks) || same(|name| looks(&name.to_lowercase()))
}

fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// Whether two names of machines look the same: case, blanks and letters that look
/// alike do not make another one. Signs and digits tell versions apart.
pub(crate) fn look_alike(one: &str, other: &str) -> bool {
    let blank = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ");
    let same = |spelt: fn(&str) -> String| {
        let looks = |name: &str| skeleton(&spelt(&blank(name))).collect::<String>().to_lowercase();
        looks(one) == looks(other)
    };
    same(str::to_owned) || same(str::to_lowercase) || same(str::to_uppercase)
}

/// What look-alikes share (Unicode Technical Standard 39, section 4).
fn looks(name: &str) -> String {
    letters(&skeleton(name).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_spelt_twice() {
        for (one, other) in [
            ("Kim Lee", "kim lee"),
            ("Kim Lee", "Kim  Lee"),
            ("Kim Lee", "Kim\u{a0}Lee"),
            ("Kim Lee", "kim.lee"),
            ("@kim", "Kim"),
            ("Kim", "KIM\u{fe0f}"),
            ("Zo\u{e9}", "Zoe\u{301}"),
            ("Kim", "\u{ff2b}im"),
            ("Kim", "\u{41a}im"),
        ] {
            assert!(is_same_person(one, other), "{one:?} {other:?}");
        }
        for (one, other) in [("Kim Lee", "Ana Sousa"), ("kim", "kin"), ("李明", "王明")] {
            assert!(!is_same_person(one, other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn bots() {
        for name in ["release-bot", "x, y[bot]", "(Release-Bot)", "ci_bot@example.com", "bot"] {
            assert!(is_bot(name), "{name}");
        }
        for name in ["team-docs", "Abbot", "release-bot-owners", "Talbot", ""] {
            assert!(!is_bot(name), "{name}");
        }
    }
}
