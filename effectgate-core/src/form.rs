//! A JSON object whose keys are all known, all required, and written once.

use std::collections::HashMap;

use crate::fault::{Fault, Faults, quoted};
use crate::json::{self, Member, Node, Pos, Value};

/// No file that a person reviews is longer (bytes).
const LONGEST: usize = 1 << 20;

/// The members of such an object, while their values are being read.
pub(crate) struct Form {
    pub faults: Faults,
    members: Vec<Member>,
}

impl Form {
    /// Reads the text and checks its keys. Syntax faults end the reading; the
    /// others are collected in [`Form::faults`].
    pub fn open(file: &str, bytes: &[u8], keys: &[&'static str]) -> Result<Form, Vec<Fault>> {
        let mut faults = Faults::of(file);
        let Some(root) = syntax(bytes, &mut faults) else { return Err(faults.into_vec()) };
        let Value::Object(members) = root.value else {
            faults.add(
                root.at,
                "type",
                format!("the file holds {}", root.value.kind()),
                "write one JSON object",
            );
            return Err(faults.into_vec());
        };
        check_keys(&members, keys, root.at, &mut faults);
        Ok(Form { faults, members })
    }

    /// The first member of this key.
    pub fn take(&mut self, key: &str) -> Option<(Pos, Node)> {
        let index = self.members.iter().position(|member| member.key == key)?;
        let member = self.members.swap_remove(index);
        Some((member.at, member.value))
    }

    /// A string that is not blank and holds no control characters.
    pub fn text(&mut self, key: &str) -> Option<(Pos, String)> {
        let (_, node) = self.take(key)?;
        let text = self.string(key, &node)?;
        if text.trim().is_empty() {
            self.faults.add(node.at, "blank", format!("{key} is empty"), "write a value");
            return None;
        }
        Some((node.at, text))
    }

    /// The string in a node; anything else is a fault.
    pub fn string(&mut self, key: &str, node: &Node) -> Option<String> {
        let Value::String(text) = &node.value else {
            let message = format!("{key}: {} where a string was expected", node.value.kind());
            self.faults.add(node.at, "type", message, "write it in double quotes");
            return None;
        };
        if text.contains('\0') {
            let message = format!("{key}: {} holds a NUL", quoted(text));
            self.faults.add(node.at, "nul", message, "no name and no path can hold one; remove it");
            return None;
        }
        if text.chars().any(char::is_control) {
            let message = format!("{key}: {} holds a control character", quoted(text));
            self.faults.add(node.at, "control", message, "remove it");
            return None;
        }
        Some(text.clone())
    }

    /// The items of an array of strings, and the place of its key.
    pub fn strings(&mut self, key: &str) -> Option<(Pos, Vec<(Pos, String)>)> {
        let (at, node) = self.take(key)?;
        let Value::Array(items) = &node.value else {
            let message = format!("{key}: {} where an array was expected", node.value.kind());
            self.faults.add(node.at, "type", message, "write a list of strings: [\"…\", \"…\"]");
            return None;
        };
        let strings =
            items.iter().filter_map(|item| Some((item.at, self.string(key, item)?))).collect();
        Some((at, strings))
    }
}

fn syntax(bytes: &[u8], faults: &mut Faults) -> Option<Node> {
    let start = Pos { line: 1, column: 1 };
    if bytes.len() > LONGEST {
        faults.add(start, "too-long", "the file is longer than 1 MiB", "write less");
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let at = good.chars().fold(start, |at, c| match c {
                '\n' => Pos { line: at.line + 1, column: 1 },
                _ => Pos { column: at.column + 1, ..at },
            });
            let message = format!("byte 0x{:02x} is not UTF-8", bytes[error.valid_up_to()]);
            faults.add(at, "not-utf-8", message, "save the file as UTF-8");
            return None;
        }
    };
    match json::read(text) {
        Ok(root) => Some(root),
        Err(broken) => {
            faults.add(broken.at, broken.rule, broken.message, broken.help);
            None
        }
    }
}

fn check_keys(members: &[Member], keys: &[&'static str], at: Pos, faults: &mut Faults) {
    let mut first_lines: HashMap<&str, u32> = HashMap::new();
    for member in members {
        if !keys.contains(&member.key.as_str()) {
            faults.add(
                member.at,
                "unknown-key",
                format!("{} is not a key of this format", quoted(&member.key)),
                format!("the keys are {}", keys.join(", ")),
            );
        }
        if let Some(line) = first_lines.get(member.key.as_str()) {
            faults.add(
                member.at,
                "duplicate-key",
                format!("{} was already written in line {line}", quoted(&member.key)),
                "keep one of the two",
            );
        } else {
            first_lines.insert(&member.key, member.at.line);
        }
    }
    for key in keys {
        if !first_lines.contains_key(key) {
            let help = format!("add it; all of {} are required", keys.join(", "));
            faults.add(at, "missing-key", format!("{key} is missing"), help);
        }
    }
}
