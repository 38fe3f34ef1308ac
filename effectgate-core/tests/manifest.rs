//! What the manifest's grammar takes, refuses, and says about it.

use effectgate_core::input::{Coverage, Mode};
use effectgate_core::policy::{self, Fault, Kind, Network, OnLoss, Policy, Reached, Rights};

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

#[test]
fn version_2_compiles() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies/cases/policy/everything.yml");
    let text = std::fs::read_to_string(file).unwrap();
    let policy = parse(&text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let hosts: Vec<String> = policy.hosts.entries().iter().map(|h| h.value.to_string()).collect();
    let ports = ["[2001:db8::1]:80/tcp", "[2001:db8::1]:443/tcp"];
    assert_eq!(hosts, ["docs.example.com", "192.0.2.1:443", ports[0], ports[1]]);
    let root = |path: &str| policy.roots.entries.iter().find(|root| root.path == path).unwrap();
    assert_eq!(
        (root("src/target").rights, root("src/target").key.name),
        (Rights::EXEC, "exec_roots")
    );
    assert_eq!(root("/usr/share/dict").rights, Rights::READ);
    assert_eq!(root("/run/secrets/docs").key.name, "mounted_secrets");
    assert!(root("/etc/gitconfig").profile && root("/etc/localtime").profile);
    assert_eq!(policy.roots.reads.map(|key| key.name), Some("read_roots"));
    assert!(policy.lists_binary("mdbook").unwrap().value.sha256.is_some());
    assert!(
        policy.excepts("bash", TODAY).is_some() && policy.excepts("bash", "2027-01-01").is_none()
    );
    let agent = policy.agent.unwrap();
    assert_eq!(agent.min_coverage, Some(Coverage::Object));
    assert_eq!((agent.on_loss, agent.on_violation), (OnLoss::Kill, Mode::Enforce));
    assert_eq!(agent.pins[1], ("tool_host".to_owned(), "1.4.2".to_owned()));
    assert!(agent.dependency_change);
}

/// Without `extends` and `read_roots`, what every program needs may be read;
/// with either, only what is said.
#[test]
fn the_base_profile_is_implied_where_nothing_is_said_of_reads() {
    let profiles = |more: &str| {
        let policy = parse(&format!("{}{more}", V1.replace("version: 1", "version: 2"))).unwrap();
        let mut names: Vec<_> =
            policy.roots.entries.iter().filter(|r| r.profile).map(|r| r.key.name).collect();
        names.dedup();
        names
    };
    assert_eq!(profiles(""), ["base-linux"]);
    assert_eq!(profiles("read_roots: [/usr]\n"), [""; 0]);
    assert_eq!(profiles("extends: [git]\n"), ["git", "base-linux"]);
}

/// What a new user does who begins with nothing and follows the messages:
/// writes what stands between backquotes where the fault is.
fn follow(text: &str, fault: &Fault) -> String {
    let Some(line) = fault.help.split('`').nth(1) else { panic!("{fault} says nothing to write") };
    let (key, _) = line.split_once(": ").unwrap_or_else(|| panic!("{fault}"));
    let nested = fault.message.split(' ').next().is_some_and(|path| path.contains(['.', ':']));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if nested && fault.rule != "binary-shell" {
        let place = &mut lines[fault.line as usize - 1];
        let end = place.rfind('}').unwrap();
        let comma = if place[..end].ends_with('{') { "" } else { ", " };
        place.insert_str(end, &format!("{comma}{line}"));
    } else if let Some(there) = lines.iter_mut().find(|there| there.starts_with(&format!("{key}:")))
    {
        *there = line.to_owned();
    } else {
        lines.push(line.to_owned());
    }
    lines.join("\n") + "\n"
}

fn followed(mut text: String) -> Policy {
    for _ in 0..100 {
        match parse(&text) {
            Ok(policy) => return policy,
            Err(faults) => text = follow(&text, &faults[0]),
        }
    }
    panic!("still not good:\n{text}");
}

#[test]
fn an_empty_file_becomes_a_manifest_by_doing_what_is_said() {
    assert_eq!(followed(String::new()).id, "docs-agent");
    let shell = followed("binaries: [bash]\n".to_owned());
    // For the version that the shell needs, the exception is asked for next.
    assert_eq!(shell.agent.unwrap().exceptions[0].allows, "bash");
    let server = followed("binaries: [docs-server]\nmcp_servers: [{}]\n".to_owned());
    assert_eq!(server.agent.unwrap().servers[0].name, "docs");
}

#[test]
fn a_large_file_is_refused_unread() {
    let many = "a, ".repeat(1 << 18);
    let json = format!("{{\"allowed_tools\": [{}\"\"]}}", "\"\",".repeat(1 << 18));
    for text in ["#".repeat((2 << 20) + 1), format!("binaries: [{many}]\n"), json] {
        let faults = parse(&text).unwrap_err();
        assert_eq!((faults.len(), faults[0].rule), (1, "too-long"));
    }
}
