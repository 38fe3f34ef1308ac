//! Policies made by hand, part by part.
#![allow(dead_code, reason = "each test file uses its own part")]

use effectgate_core::input::Mode;
use effectgate_core::policy::*;

pub fn list<T: Named>(
    name: &'static str,
    line: u32,
    values: impl IntoIterator<Item = T>,
) -> List<T> {
    let entries = values.into_iter().map(|value| Entry { value, line, column: 5 }).collect();
    List::new(Key { name, line }, entries)
}

pub fn rule(path: &str, rights: Rights, profile: bool, line: u32) -> RootRule {
    let name = if profile { "python" } else { "write_roots" };
    RootRule { path: path.into(), rights, key: Key { name, line }, profile }
}

pub fn root(policy: &mut Policy, path: &str, rights: Rights) {
    policy.roots.entries.push(rule(path, rights, false, 9));
}

pub fn profile(policy: &mut Policy, path: &str) {
    policy.roots.entries.push(rule(path, Rights::READ, true, 5));
}

pub fn binaries(policy: &mut Policy, all: &[(&str, Option<&str>)]) {
    let binary = |(name, sha256): &(&str, Option<&str>)| Binary {
        name: (*name).into(),
        sha256: sha256.map(str::to_owned),
    };
    policy.binaries = Some(list("binaries", 12, all.iter().map(binary)));
}

/// `name:port`, or a name alone.
pub fn hosts(policy: &mut Policy, all: &[&str]) {
    let host = |text: &&str| {
        let (name, port) = text.split_once(':').unzip();
        Host {
            name: HostName::Name(name.unwrap_or(text).to_owned()),
            port: port.map(|port: &str| port.parse().unwrap()),
            protocol: None,
        }
    };
    policy.network = if all.is_empty() { Network::Deny } else { Network::Allowlist };
    policy.hosts = list("hosts", 17, all.iter().map(host));
}

pub fn strings(own: &mut List<String>, all: &[&str]) {
    *own = list(own.key.name, own.key.line, all.iter().map(|text| (*text).to_owned()));
}

pub fn tools(policy: &mut Policy, all: &[(Option<&str>, &str)]) {
    let tool = |(server, name): &(Option<&str>, &str)| Tool {
        server: server.map(str::to_owned),
        name: (*name).into(),
    };
    policy.tools = list("mcp_servers", 25, all.iter().map(tool));
}

pub fn except(policy: &mut Policy, allows: &str, expires: &str) {
    policy.agent.as_mut().unwrap().exceptions.push(Exception {
        allows: allows.into(),
        reviewers: vec!["A".into(), "B".into()],
        reason: "the hooks are scripts.".into(),
        expires: expires.into(),
        line: 30,
    });
}

/// A manifest with something in every part.
pub fn manifest() -> Policy {
    let limit = |value, name, line| Limit { value, key: Key { name, line } };
    let mut policy = Policy {
        kind: Kind::Manifest,
        id: "docs-bot".into(),
        sha256: "a".repeat(64),
        file: "agent-egress.yml".into(),
        roots: Roots {
            entries: vec![rule("src", Rights::WRITE, false, 8)],
            writes: Key { name: "write_roots", line: 7 },
            reads: Some(Key { name: "workspace_roots", line: 6 }),
        },
        binaries: None,
        tools: list("mcp_servers", 25, []),
        env: list("env_allow", 20, ["CI".to_owned()]),
        hosts: list("hosts", 17, []),
        network: Network::Deny,
        network_key: Key { name: "network.mode", line: 16 },
        unix_sockets: list("unix_sockets", 18, []),
        agent: Some(Box::new(Agent {
            version: 2,
            owner: "team-docs".into(),
            dependency_change: false,
            exceptions: vec![],
            servers: vec![Server {
                name: "docs".into(),
                reached: Reached::Command(vec!["docs-server".into()]),
                digest: "d".repeat(64),
                line: 25,
            }],
            pins: vec![],
            limits: Limits {
                max_steps: limit(50, "max_steps", 21),
                max_wall_clock_sec: limit(3600, "max_wall_clock_sec", 22),
                max_tool_calls_per_step: limit(5, "max_tool_calls_per_step", 23),
            },
            min_coverage: None,
            on_loss: OnLoss::Mark,
            on_violation: Mode::Observe,
        })),
    };
    profile(&mut policy, "/usr/share/zoneinfo");
    binaries(&mut policy, &[("make", None)]);
    hosts(&mut policy, &["example.com:443"]);
    tools(&mut policy, &[(None, "read_file")]);
    policy
}

/// An envelope that allows one root, one key, and nothing else.
pub fn envelope() -> Policy {
    let text = br#"{
        "envelope_id": "docs-v1", "allowed_roots": ["/srv/docs"], "allowed_tools": [],
        "allowed_env": ["CI"], "allowed_hosts": [], "network": "deny"
    }"#;
    parse("envelope.json", text, "2026-01-31").unwrap()
}
