//! What the manifest's grammar takes, refuses, and says about it.

use effectgate_core::policy::{self, Fault, Kind, Network, Policy, Reached, Rights};

const TODAY: &str = "2026-01-31";

const V1: &str = r#"version: 1
agent_id: docs-agent
owner: team-docs
workspace_roots: [docs, src]
write_roots:
  - docs/generated
binaries: [git, mdbook]
network:
  mode: allowlist
  hosts: [docs.example.com]
env_allow: [CI]
max_steps: 100
max_wall_clock_sec: 1800
max_tool_calls_per_step: 20
mcp_servers:
  - name: search
    command: [git, serve]
    digest: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    tools: [search_docs]
"#;

fn parse(text: &str) -> Result<Policy, Vec<Fault>> {
    policy::parse("agent-egress.yml", text.as_bytes(), TODAY)
}

#[test]
fn version_1_compiles() {
    let policy = parse(V1).unwrap_or_else(|faults| panic!("{faults:#?}"));
    assert_eq!((policy.kind, policy.id.as_str()), (Kind::Manifest, "docs-agent"));
    assert_eq!((policy.network, policy.network_key.line), (Network::Allowlist, 9));
    let root = |path: &str| policy.roots.entries.iter().find(|root| root.path == path).unwrap();
    assert_eq!((root("docs").rights, root("docs").key.line), (Rights::READ, 4));
    assert_eq!(
        (root("docs/generated").rights, root("docs/generated").key.line),
        (Rights::WRITE, 6)
    );
    assert!(root("/etc/localtime").profile && root("/etc/localtime").key.name == "base-linux");
    assert!(policy.lists_binary("mdbook").is_some() && policy.lists_binary("cargo").is_none());
    assert!(policy.lists_tool(Some("search"), "search_docs").is_some());
    assert!(policy.lists_tool(None, "search_docs").is_none());
    let agent = policy.agent.unwrap();
    assert_eq!((agent.version, agent.owner.as_str()), (1, "team-docs"));
    assert_eq!((agent.limits.max_steps.value, agent.limits.max_steps.key.line), (100, 12));
    assert_eq!(agent.servers[0].reached, Reached::Command(vec!["git".into(), "serve".into()]));
    assert_eq!(agent.servers[0].digest.len(), 64);
}
