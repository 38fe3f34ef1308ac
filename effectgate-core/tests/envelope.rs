//! What the envelope's grammar takes, refuses, and says about it.

use effectgate_core::policy::{self, Fault, Network, Policy};
use proptest::prelude::*;

const GOOD: &str = r#"{
  "envelope_id": "agent-patch-envelope-v3",
  "allowed_roots": ["/srv/repo", "/tmp/agent-scratch/"],
  "allowed_tools": ["read_file", "apply_patch", "run_tests"],
  "allowed_env": ["CI", "RUN_ID", "ENVELOPE_HASH"],
  "allowed_hosts": [],
  "network": "deny"
}"#;

fn parse(file: &str, bytes: &[u8]) -> Result<Policy, Vec<Fault>> {
    policy::parse(file, bytes, "2026-01-31")
}

fn rules(text: &str) -> Vec<&'static str> {
    parse("e.json", text.as_bytes()).map_or_else(|f| f.iter().map(|f| f.rule).collect(), |_| vec![])
}

/// The good envelope with one line of it replaced.
fn with(key: &str, line: &str) -> String {
    let mut lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
    let at = lines.iter().position(|l| l.contains(&format!("\"{key}\""))).unwrap();
    lines[at] = line.to_owned();
    lines.join("\n")
}

#[test]
fn the_example_compiles() {
    let policy = parse("e.json", GOOD.as_bytes()).unwrap();
    assert_eq!(policy.id, "agent-patch-envelope-v3");
    assert_eq!(policy.sha256, effectgate_core::pin::digest(GOOD.as_bytes()));
    assert_eq!(policy.network, Network::Deny);
    assert_eq!((policy.roots.writes.line, policy.network_key.line), (3, 7));
    assert_eq!(policy.roots.entries[1].path, "/tmp/agent-scratch");
    assert_eq!(policy.roots.entries[1].key.line, 3);
    assert!(policy.allows_env(b"CI") && policy.allows_env(b"LC_ALL"));
    assert!(!policy.allows_env(b"EDITOR"));
}

#[test]
fn each_fault_has_its_rule() {
    for (text, rule) in [
        (String::new(), "empty-file"),
        (" \n".into(), "empty-file"),
        ("[]".into(), "type"),
        ("{\"envelope_id\": ".into(), "json-syntax"),
        (format!("{GOOD} x"), "json-trailing"),
        (format!("{GOOD}\0"), "json-trailing"),
        (with("envelope_id", r#""envelope_id": "", "#), "blank"),
        (with("envelope_id", r#""envelope_id": " ", "#), "blank"),
        (with("envelope_id", r#""envelope_id": 3, "#), "type"),
        (with("envelope_id", r#""envelope_id": "a\u0000b", "#), "nul"),
        (with("envelope_id", r#""envelope_id": "a\nb", "#), "control"),
        (with("envelope_id", ""), "missing-key"),
        (with("envelope_id", r#""envelope_id": "a", "extra": 1,"#), "unknown-key"),
        (with("envelope_id", r#""envelope_id": "a", "envelope_id": "a","#), "duplicate-key"),
        (with("allowed_roots", r#""allowed_roots": "/srv", "#), "type"),
        (with("allowed_roots", r#""allowed_roots": [1], "#), "type"),
        (with("allowed_roots", r#""allowed_roots": [[]], "#), "type"),
        (with("allowed_roots", r#""allowed_roots": ["srv"], "#), "root-relative"),
        (with("allowed_roots", r#""allowed_roots": [""], "#), "root-relative"),
        (with("allowed_roots", r#""allowed_roots": ["~/x"], "#), "root-relative"),
        (with("allowed_roots", r#""allowed_roots": ["/"], "#), "root-is-slash"),
        (with("allowed_roots", r#""allowed_roots": ["//./"], "#), "root-is-slash"),
        (with("allowed_roots", r#""allowed_roots": ["/srv/../etc"], "#), "root-climbs"),
        (with("allowed_roots", r#""allowed_roots": ["/.."], "#), "root-climbs"),
        (with("allowed_roots", r#""allowed_roots": ["/a\u0000"], "#), "nul"),
        (with("allowed_roots", r#""allowed_roots": ["/a", "/a/"], "#), "duplicate-entry"),
        (with("allowed_tools", r#""allowed_tools": [""], "#), "tool-name"),
        (with("allowed_env", r#""allowed_env": [""], "#), "env-name"),
        (with("allowed_env", r#""allowed_env": ["A=b"], "#), "env-name"),
        (with("allowed_env", r#""allowed_env": ["1A"], "#), "env-name"),
        (with("allowed_env", r#""allowed_env": ["A*"], "#), "env-name"),
        (with("allowed_env", r#""allowed_env": ["CI", "CI"], "#), "duplicate-entry"),
        (with("allowed_hosts", r#""allowed_hosts": ["a.example"], "#), "network-deny-with-hosts"),
        (with("network", r#""network": "allowlist""#), "network-allowlist-without-hosts"),
        (with("network", r#""network": "open""#), "network-mode"),
        (with("network", r#""network": null"#), "type"),
    ] {
        assert_eq!(rules(&text), [rule], "{text}");
    }
    let faults = parse("e.json", b"{\"a\xff").unwrap_err();
    assert_eq!((faults[0].rule, faults[0].column), ("not-utf-8", 4));
}

#[test]
fn every_fault_is_said_at_once() {
    let text = r#"{
  "envelope_id": "",
  "allowed_roots": ["/", "srv"],
  "allowed_env": ["A B"],
  "allowed_hosts": ["*.example.com", "127.1", "a.example:0"],
  "network": "deny",
  "color": 1
}"#;
    let want = [
        "missing-key",
        "blank",
        "root-is-slash",
        "root-relative",
        "env-name",
        "host-wildcard",
        "host-address",
        "host-port",
        "network-deny-with-hosts",
        "unknown-key",
    ];
    assert_eq!(rules(text), want);
}

#[test]
fn a_fault_says_where_what_and_what_to_do() {
    let text = with("allowed_roots", r#"  "allowed_roots": ["srv/repo"],"#);
    let faults = parse("envelope.json", text.as_bytes()).unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "envelope.json:3:21: allowed_roots: \"srv/repo\" is relative (roots are absolute paths); write it from /"
    );
}

#[test]
fn hosts_are_compared_in_one_form() {
    let hosts = |list: &str| {
        let text = with("allowed_hosts", &format!("\"allowed_hosts\": [{list}],"));
        rules(&text.replace("\"deny\"", "\"allowlist\""))
    };
    assert!(hosts(r#""a.example", "a.example:443", "::1""#).is_empty());
    assert_eq!(hosts(r#""A.example.", "a.example""#), ["duplicate-entry"]);
    assert_eq!(hosts(r#""::ffff:1.2.3.4", "1.2.3.4""#), ["duplicate-entry"]);
}

/// Texts near the grammar, where faults are likelier than in noise.
fn near() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u",
        "d800",
        "\"network\"",
        "\"deny\"",
        "/",
        "..",
        "\"allowed_roots\"",
        "1",
        "-",
        "e9",
        "true",
        "null",
        " ",
        "\n",
        "\0",
        "é",
        "*",
        "[::1]:1",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn never_panics(bytes: Vec<u8>, text in near(), cut in 0..GOOD.len(), byte: u8) {
        let _ = parse("e", &bytes);
        let _ = parse("e", text.as_bytes());
        let mut changed = GOOD.as_bytes().to_vec();
        changed[cut] = byte;
        let _ = parse("e", &changed);
        prop_assert!(parse("e", &GOOD.as_bytes()[..cut]).is_err());
    }

    /// What was accepted, written anew from what was understood, is understood alike.
    #[test]
    fn accepted_envelopes_come_back(
        id in "[a-z0-9-]{1,12}",
        roots in prop::collection::btree_set("(/[a-zé ]{1,5}){1,3}", 0..4),
        env in prop::collection::btree_set("[A-Z_][A-Z0-9_]{0,8}", 0..4),
        hosts in prop::collection::btree_set("[a-z]{1,8}\\.example(:[1-9][0-9]{0,3})?", 0..4),
    ) {
        let network = if hosts.is_empty() { "deny" } else { "allowlist" };
        let text = serde_json::json!({
            "envelope_id": id, "allowed_roots": roots, "allowed_tools": ["t"], "allowed_env": env,
            "allowed_hosts": hosts, "network": network,
        }).to_string();
        let one = parse("e", text.as_bytes()).unwrap();
        let roots: Vec<&str> = one.roots.entries.iter().map(|root| root.path.as_str()).collect();
        let tools: Vec<&str> = one.tools.entries().iter().map(|t| t.value.name.as_str()).collect();
        let env: Vec<&str> = one.env.entries().iter().map(|key| key.value.as_str()).collect();
        let hosts: Vec<String> = one.hosts.entries().iter().map(|h| h.value.to_string()).collect();
        let again = serde_json::json!({
            "envelope_id": one.id, "allowed_roots": roots,
            "allowed_tools": tools, "allowed_env": env,
            "allowed_hosts": hosts, "network": one.network,
        }).to_string();
        prop_assert_eq!(&again, &text);
        prop_assert_eq!(parse("e", again.as_bytes()).unwrap(), one);
    }
}
