//! Reading event records (`effectgate.event/v1`).

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Every complete line of a log; none when there is no file.
///
/// # Panics
/// When a complete line is not JSON.
#[must_use]
pub fn read_log(path: &Path) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()))
        })
        .collect()
}

/// `class/action`, such as `file/open_write`.
#[must_use]
pub fn kind(event: &Value) -> String {
    format!("{}/{}", text(&event["class"]), text(&event["action"]))
}

/// A string, or nothing.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The path of a file or of a program.
#[must_use]
pub fn path(event: &Value) -> &str {
    text(&event["object"]["path"])
}

/// The second path of a rename or link.
#[must_use]
pub fn other(event: &Value) -> &str {
    text(&event["object"]["other"]["path"])
}

/// `address:port`, with IPv6 addresses in brackets.
#[must_use]
pub fn endpoint(event: &Value) -> String {
    let address = text(&event["object"]["address"]);
    let port = &event["object"]["port"];
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// The program that did it.
#[must_use]
pub fn exe(event: &Value) -> &str {
    text(&event["process"]["exe"])
}

/// One line for a message.
#[must_use]
pub fn line(event: &Value) -> String {
    format!(
        "{} {} {} by {} within={} rule={}",
        event["seq"],
        kind(event),
        event["object"],
        event["process"]["exe"],
        event["within"],
        event["rule"]
    )
}

/// Bytes as records write them: a backslash doubled, what is not UTF-8 as
/// `\xNN`.
#[must_use]
pub fn escape(bytes: &[u8]) -> String {
    let mut escaped = String::new();
    for chunk in bytes.utf8_chunks() {
        escaped.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            escaped.push_str(&format!("\\x{byte:02x}"));
        }
    }
    escaped
}
