//! Holds what was read against the table of a format.

use std::collections::HashMap;

use super::{Fields, Format, Key, Object, Shape, Syntax};
use crate::fault::{Faults, quoted};
use crate::tree::{Member, Node, Pos, Value};
use crate::yaml::is_hidden;

/// Every fault of form in a whole file.
pub(super) fn root(root: &Node, format: &Format, faults: &mut Faults) {
    let Value::Object(members) = &root.value else {
        let help = match format.syntax {
            Syntax::Json => "write one JSON object",
            Syntax::Yaml => "write one YAML mapping: lines of `key: value`",
        };
        let message =
            format!("the file holds {}, and {} is an object", root.value.kind(), format.name);
        faults.add(root.at, "type", message, help);
        return;
    };
    let mut check = Check { syntax: format.syntax, version: version(root, &format.root), faults };
    check.object(&format.root, members, root.at, "");
}

/// The version that the file says it has; the newest when it says nothing
/// good, so that one wrong number does not make twenty faults.
fn version(root: &Node, object: &Object) -> u8 {
    let known = object.keys.iter().find_map(|key| match key.shape {
        Shape::Version(known) => Some(known),
        _ => None,
    });
    let known = known.unwrap_or(&[1]);
    let said = Fields::of(root).count("version").and_then(|(_, said)| u8::try_from(said).ok());
    let newest = known.iter().copied().max().unwrap_or(1);
    said.filter(|said| known.contains(said)).unwrap_or(newest)
}

/// Nothing longer is taken for a misspelt key.
const LONGEST_KEY: usize = 64;

/// No path (`PATH_MAX`) and no text that a person writes is longer; bytes.
const LONGEST_TEXT: usize = 4095;

struct Check<'a> {
    syntax: Syntax,
    version: u8,
    faults: &'a mut Faults,
}

impl Check<'_> {
    /// `path` is how messages call the object: empty for the file itself,
    /// else its keys, joined by dots.
    fn object(&mut self, object: &Object, members: &[Member], at: Pos, path: &str) {
        self.unique(members);
        for member in members {
            let Some(key) = object.keys.iter().find(|key| key.name == member.key) else {
                self.unknown(object, member, path);
                continue;
            };
            if key.since > self.version {
                self.too_new(&format!("{} is a key", key.name), key.since, member.at);
            }
            self.value(&key.shape, &member.value, &join(path, key.name));
        }
        let there = |name: &str| members.iter().any(|member| member.key == name);
        for key in object.keys.iter().filter(|key| key.required && !there(key.name)) {
            self.missing(key, at, path);
        }
        let count = object.one_of.iter().filter(|name| there(name)).count();
        if count != 1 && !object.one_of.is_empty() {
            let (what, help) = if count == 0 {
                let keys = object.keys.iter().filter(|key| object.one_of.contains(&key.name));
                let lines: Vec<_> = keys.map(|key| format!("`{}`", self.line(key))).collect();
                let what = format!("neither {} is written", object.one_of.join(" nor "));
                (what, format!("add one, as in {}", lines.join(" or ")))
            } else {
                let what = format!("{} are all written", object.one_of.join(" and "));
                (what, format!("keep one: {}", object.one_of.join(" or ")))
            };
            self.faults.add(at, "one-of", format!("{}{what}", prefix(path)), help);
        }
    }

    fn unique(&mut self, members: &[Member]) {
        let mut first_lines: HashMap<&str, u32> = HashMap::new();
        for member in members {
            if let Some(line) = first_lines.get(member.key.as_str()) {
                let message = format!("{} was already written in line {line}", quoted(&member.key));
                self.faults.add(member.at, "duplicate-key", message, "keep one of the two");
            } else {
                first_lines.insert(&member.key, member.at.line);
            }
        }
    }

    fn unknown(&mut self, object: &Object, member: &Member, path: &str) {
        let of = if path.is_empty() { "this format" } else { path };
        let message = format!("{} is not a key of {of}", quoted(&member.key));
        let version = self.version;
        let keys: Vec<_> =
            object.keys.iter().filter(|key| key.since <= version).map(|key| key.name).collect();
        let short = member.key.len() <= LONGEST_KEY;
        let near =
            keys.iter().filter(|_| short).map(|key| (strsim::jaro_winkler(key, &member.key), key));
        let help = match near.max_by(|one, other| one.0.total_cmp(&other.0)) {
            Some((likeness, key)) if likeness > 0.85 => format!("write `{key}`, if that is meant"),
            _ => format!("the keys are {}", keys.join(", ")),
        };
        self.faults.add(member.at, "unknown-key", message, help);
    }

    fn too_new(&mut self, what: &str, since: u8, at: Pos) {
        let message = format!("{what} of version {since}");
        let help = format!("write `version: {since}`, or do without");
        self.faults.add(at, "needs-version-2", message, help);
    }

    fn missing(&mut self, key: &Key, at: Pos, path: &str) {
        let message = format!("{} is missing", join(path, key.name));
        let help = format!("add it, as in `{}` ({})", self.line(key), key.doc);
        self.faults.add(at, "missing-key", message, help);
    }

    /// A key with its example, as a line of the file.
    fn line(&self, key: &Key) -> String {
        match self.syntax {
            Syntax::Json => format!("\"{}\": {}", key.name, key.example),
            Syntax::Yaml => format!("{}: {}", key.name, key.example),
        }
    }

    fn value(&mut self, shape: &Shape, node: &Node, path: &str) {
        match (shape, &node.value) {
            (Shape::Version(known), Value::Number(_)) => {
                let said = node.count().and_then(|said| u8::try_from(said).ok());
                if !said.is_some_and(|said| known.contains(&said)) {
                    let known: Vec<_> =
                        known.iter().map(|known| format!("`version: {known}`")).collect();
                    let help = format!("write {}", known.join(" or "));
                    self.faults.add(node.at, "version", "there is no such version", help);
                }
            }
            (Shape::Text, Value::String(text)) => {
                if self.characters(text, node.at, path) && text.trim().is_empty() {
                    self.faults.add(node.at, "blank", format!("{path} is empty"), "write a value");
                }
            }
            (Shape::Word(_) | Shape::WordOr(..), Value::String(text)) => {
                self.characters(text, node.at, path);
            }
            (Shape::OneOf(rule, words), Value::String(text)) => {
                if self.characters(text, node.at, path) && !words.contains(&text.as_str()) {
                    let message = format!("{path}: {} is none of the choices", quoted(text));
                    let help = format!("write one of: {}", words.join(", "));
                    self.faults.add(node.at, rule, message, help);
                }
            }
            (Shape::Count, Value::Number(text)) => {
                if node.count().is_none_or(|count| count == 0) {
                    let message = format!("{path}: {} is no whole number from 1", quoted(text));
                    self.faults.add(node.at, "count", message, "write a positive whole number");
                }
            }
            (Shape::Flag, Value::Bool(_)) => {}
            (Shape::List(each), Value::List(items)) => {
                for item in items {
                    self.value(each, item, path);
                }
            }
            (Shape::WordOr(_, since, object), Value::Object(members)) => {
                if *since > self.version {
                    self.too_new(&format!("{path}: an object here is"), *since, node.at);
                }
                self.object(object, members, node.at, path);
            }
            (Shape::Object(object), Value::Object(members)) => {
                self.object(object, members, node.at, path);
            }
            (Shape::Map(each), Value::Object(members)) => {
                self.unique(members);
                for member in members {
                    self.characters(&member.key, member.at, path);
                    self.value(each, &member.value, &join(path, &member.key));
                }
            }
            (shape, value) => {
                let message =
                    format!("{path}: {} where {} was expected", value.kind(), shape.kind());
                self.faults.add(node.at, "type", message, shape.help());
            }
        }
    }

    /// Whether the string holds nothing that no name and no text has.
    fn characters(&mut self, text: &str, at: Pos, path: &str) -> bool {
        if text.len() > LONGEST_TEXT {
            let message = format!("{path}: {} has {} bytes", quoted(text), text.len());
            let help = format!("write at most {LONGEST_TEXT}, as for any path");
            self.faults.add(at, "too-long", message, help);
            return false;
        }
        if text.contains('\0') {
            let message = format!("{path}: {} holds a NUL", quoted(text));
            self.faults.add(at, "nul", message, "no name and no path can hold one; remove it");
            return false;
        }
        if text.chars().any(char::is_control) {
            let message = format!("{path}: {} holds a control character", quoted(text));
            self.faults.add(at, "control", message, "remove it");
            return false;
        }
        // Written as an escape, it is not in the file's own text.
        if let Some(hidden) = text.chars().find(|c| is_hidden(*c)) {
            let message =
                format!("{path}: the character U+{:04X} cannot be seen", u32::from(hidden));
            self.faults.add(at, "hidden-character", message, "remove it");
            return false;
        }
        true
    }
}

/// Whether a string has no fault of form but, perhaps, that it is blank.
pub(super) fn usable(text: &str) -> bool {
    text.len() <= LONGEST_TEXT && !text.contains(|c: char| c.is_control() || is_hidden(c))
}

impl Shape {
    /// The type's name, for messages.
    fn kind(&self) -> &'static str {
        match self {
            Shape::Version(_) | Shape::Count => "a whole number",
            Shape::Text | Shape::Word(_) | Shape::OneOf(..) => "a string",
            Shape::Flag => "true or false",
            Shape::List(_) => "a list",
            Shape::Object(_) | Shape::Map(_) => "an object",
            Shape::WordOr(..) => "a string or an object",
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Shape::Version(_) | Shape::Count => "write it in decimal digits, without quotes",
            Shape::Text | Shape::Word(_) | Shape::OneOf(..) | Shape::WordOr(..) => {
                "write it in double quotes"
            }
            Shape::Flag => "write true or false, without quotes",
            Shape::List(_) => "write a list: [\"…\", \"…\"], or [] for none",
            Shape::Object(_) | Shape::Map(_) => "write an object: {\"key\": …}",
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}
