//! Writing a manifest: keys in the order given, every text in quotes, a
//! comment behind what wants a reason.

use std::fmt::{self, Write as _};

/// A manifest in the making.
#[derive(Debug, Default)]
pub(super) struct Yaml(String);

impl Yaml {
    /// A comment of its own line or lines.
    pub fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.line(format_args!("# {line}"));
        }
    }

    /// A key and a value that is written as it is.
    pub fn plain(&mut self, key: &str, value: impl fmt::Display, why: Option<&str>) {
        self.line(format_args!("{key}: {value}{}", Why(why)));
    }

    pub fn text(&mut self, key: &str, value: &str, why: Option<&str>) {
        self.plain(key, quoted(value), why);
    }

    /// A list of values that are written as they are, each with its reason.
    pub fn list(&mut self, key: &str, items: &[(String, String)]) {
        if items.is_empty() {
            return self.line(format_args!("{key}: []"));
        }
        self.line(format_args!("{key}:"));
        let indent = key.len() - key.trim_start().len();
        for (item, why) in items {
            self.line(format_args!("{:indent$}  - {item}{}", "", Why(Some(why))));
        }
    }

    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    pub fn finish(self) -> String {
        self.0
    }
}

/// Double quotes with the escapes of JSON, which are escapes of YAML too
/// (YAML 1.2, 5.7).
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Why<'a>(Option<&'a str>);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(why) if !why.is_empty() => write!(f, "  # {}", super::plain(why)),
            _ => Ok(()),
        }
    }
}
