//! What to do with policy files after they were checked.

use effectgate_core::policy::Policy;

use super::{Checked, policy_file};
use crate::diagnose::{shell_path, visible};

/// A line for each thing to do; nothing where all is done.
pub fn steps(checked: &[Checked<'_>]) -> String {
    let name = |file: &Checked<'_>| visible(&file.name);
    let failing = checked.iter().filter(|file| file.policy.is_none());
    let (failing, words): (Vec<String>, Vec<String>) =
        failing.map(|file| (name(file), shell_path(file.path))).unzip();
    let mut text = String::new();
    if !failing.is_empty() {
        text += &format!(
            "next: mend {}, then run `effectgate check {}` again\n",
            failing.join(" "),
            words.join(" ")
        );
    }
    for file in checked {
        let pin = file.policy.as_ref().and_then(|policy| pin(file, policy));
        text += &pin.map(|step| format!("next: {step}\n")).unwrap_or_default();
    }
    text
}

fn pin(file: &Checked<'_>, policy: &Policy) -> Option<String> {
    let (name, word) = (visible(&file.name), shell_path(file.path));
    let pin = policy_file::pin_path(file.path);
    if !pin.exists() {
        return Some(format!(
            "have {name} reviewed, then write its digest down: `effectgate pin {word}`"
        ));
    }
    match policy_file::read_pin(&pin) {
        Ok(digest) if digest == policy.sha256 => None,
        Ok(_) => Some(format!(
            "{name} is not what was pinned: have what `effectgate diff OLD {word}` says \
             reviewed, then pin it again: `effectgate pin {word}`"
        )),
        Err(_) => Some(format!("{name}.sha256 is no pin: write it again, `effectgate pin {word}`")),
    }
}
