//! Manifests that nobody wrote: noise, near misses, and good ones in two
//! notations.

use std::fmt::Write as _;

use effectgate_core::policy::{self, Fault, Policy};
use proptest::prelude::*;
use serde_json::{Value, json};

const TODAY: &str = "2026-01-31";

fn parse(bytes: &[u8]) -> Result<Policy, Vec<Fault>> {
    policy::parse("m.yml", bytes, TODAY)
}

fn everything() -> Vec<u8> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies/cases/policy/everything.yml");
    std::fs::read(file).unwrap()
}

/// Whatever is refused is refused with places that lie in the file.
fn check(bytes: &[u8]) {
    let Err(faults) = parse(bytes) else { return };
    assert!(!faults.is_empty());
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<usize> = text.split('\n').map(|line| line.chars().count()).collect();
    for fault in faults.iter().filter(|fault| fault.rule != "not-utf-8") {
        let length = lines.get(fault.line as usize - 1).copied().unwrap_or(0);
        let end = fault.column as usize - 1 + fault.width as usize;
        assert!(fault.line as usize <= lines.len() + 1, "{fault}");
        assert!(fault.width >= 1 && end <= length + 1, "{fault}, {} of {length}", fault.width);
    }
}

/// Texts near the grammar, where faults are likelier than in noise.
fn near() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "version: 2\n",
        "owner:",
        "binaries:",
        "network:",
        "hosts:",
        "exceptions:",
        "\n",
        "  ",
        "- ",
        ": ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "!!str ",
        "<<: ",
        "|\n",
        ">-\n",
        "'",
        "\"",
        "#",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "? ",
        "\t",
        "\r\n",
        "\r",
        "~",
        "null",
        "no",
        "010",
        "1_0",
        "é",
        "\u{202e}",
        "\0",
        "\u{feff}",
        "git",
        "a.example",
        "..",
        "/",
        "@",
        "\\x41",
        "\\",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Values of a good manifest, every one of them different.
fn good() -> impl Strategy<Value = Value> {
    let names = |pattern: &'static str| prop::collection::btree_set(pattern, 1..4);
    let optional = (
        any::<bool>(),
        prop::option::of(prop::sample::subsequence(vec!["base-linux", "git", "rust"], 1..3)),
        prop::option::of(prop::sample::select(vec!["observe", "kill", "enforce"])),
        prop::option::of(names("/opt/[a-z]{1,6}")),
    );
    let required = (
        "[a-zé][a-z -]{0,10}x",
        names("[a-z]{1,4}[.]d"),
        names("x[0-9a-f]{1,4}"),
        names("[a-z]{1,8}\\.example(:[1-9][0-9]{0,3})?"),
        names("[A-Z_][A-Z0-9_]{0,8}"),
        (1..u64::MAX, 1..10_u64),
    );
    (required, optional).prop_map(|(required, (writes, extends, on_violation, reads))| {
        let (owner, roots, binaries, hosts, env, (steps, calls)) = required;
        let mut manifest = json!({
            "version": 2, "agent_id": "some-agent", "owner": owner, "workspace_roots": roots,
            "write_roots": if writes { json!(roots) } else { json!([]) },
            "binaries": binaries, "network": { "mode": "allowlist", "hosts": hosts },
            "env_allow": env, "max_steps": steps, "max_wall_clock_sec": 60,
            "max_tool_calls_per_step": calls,
            "mcp_servers": [{
                "name": "one", "url": "https://a.example/", "digest": "a".repeat(64),
                "tools": ["look up"],
            }],
            "exceptions": [{
                "allows": "python -c", "reviewers": ["A", "B"], "reason": "it's \"short\"",
                "expires": "2026-12-31",
            }],
        });
        manifest["network"]["hosts"][0] = json!({ "host": "a.example", "ports": [443] });
        for (key, value) in [
            ("extends", json!(extends)),
            ("on_violation", json!(on_violation)),
            ("read_roots", json!(reads)),
        ] {
            if !value.is_null() {
                manifest[key] = value;
            }
        }
        manifest
    })
}

/// The same in lines.
fn block(value: &Value, depth: usize, text: &mut String) {
    let start = if depth == 0 { String::new() } else { format!("\n{}", "  ".repeat(depth)) };
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                let _ = write!(text, "{}{key}:", if text.is_empty() { "" } else { start.as_str() });
                block(value, depth + 1, text);
                if depth == 0 {
                    text.push('\n');
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(text, "{start}-");
                block(item, depth + 1, text);
            }
        }
        plain => {
            let _ = write!(text, " {plain}");
        }
    }
}

/// What was understood, without where it stood.
fn meaning(policy: &Policy) -> String {
    let Policy { roots, binaries, tools, env, hosts, network, agent, .. } = policy;
    let binaries = binaries.as_ref().map(|binaries| binaries.entries());
    let text = format!(
        "{:?} {binaries:?} {:?} {:?} {:?} {network:?} {agent:?}",
        roots.entries,
        tools.entries(),
        env.entries(),
        hosts.entries(),
    );
    ["line: ", "column: "].into_iter().fold(text, |text, place| {
        let digit = |c: char| c.is_ascii_digit();
        text.split(place).map(|part| part.trim_start_matches(digit)).collect::<Vec<_>>().join(place)
    })
}

proptest! {
    #[test]
    fn never_panics(bytes: Vec<u8>, text in near(), cut: prop::sample::Index, byte: u8) {
        check(&bytes);
        check(text.as_bytes());
        check(format!("version: 2\nowner: {text}").as_bytes());
        let mut changed = everything();
        let at = cut.index(changed.len());
        check(&changed[..at]);
        changed[at] = byte;
        check(&changed);
    }

    #[test]
    fn notations_mean_the_same(value in good()) {
        let flow = format!("---\n{value}\n");
        let mut lines = String::new();
        block(&value, 0, &mut lines);
        let read = |text: &str| match parse(text.as_bytes()) {
            Ok(policy) => Ok(meaning(&policy)),
            Err(faults) => Err(TestCaseError::fail(format!("{faults:#?}\n{text}"))),
        };
        prop_assert_eq!(read(&flow)?, read(&lines)?);
    }
}
