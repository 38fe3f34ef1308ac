//! Who runs, and who answers for it.

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
    if text.split([',', ' ', ';']).any(is_bot) {
        let message = format!("{} is a bot", quoted(text));
        return Err(("owner-bot", message, "name people or a team"));
    }
    Ok(())
}

/// Whether this is how bots are named where code is hosted.
pub(crate) fn is_bot(name: &str) -> bool {
    let lower = name.trim().to_lowercase();
    lower == "bot" || ["[bot]", "-bot", "_bot"].iter().any(|end| lower.ends_with(end))
}
