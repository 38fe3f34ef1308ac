//! Facts of the machine that a verdict was reached on.

use std::fs;

use serde_json::{Value, json};

const SCHEMA: &str = "effectgate.host/v1";

/// What is known of this machine. What cannot be read is null: a verdict does
/// not rest on it. `host` and `programs` (a digest) are as the log names them.
#[must_use]
pub fn facts(host: &str, programs: &str) -> Value {
    let uname = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    json!({
        "schema": SCHEMA,
        "effectgate": env!("CARGO_PKG_VERSION"),
        "host": host,
        "kernel": {
            "release": text(uname.release()),
            "version": text(uname.version()),
            "machine": text(uname.machine()),
        },
        "programs": programs,
        "os": os(),
        "lsm": line("/sys/kernel/security/lsm"),
        "boot_id": line("/proc/sys/kernel/random/boot_id"),
        "processors": std::thread::available_parallelism().ok().map(std::num::NonZero::get),
    })
}

fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// `ID` and `VERSION_ID` of os-release(5).
fn os() -> Value {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim_matches(['"', '\'']).to_owned())
    };
    json!({ "id": value("ID"), "version_id": value("VERSION_ID") })
}
