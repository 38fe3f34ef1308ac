//! The envelope's grammar.

use crate::entries::{self, Bad};
use crate::fault::{Fault, Faults, quoted};
use crate::form::{self, Fields, Format, Key as K, Object, Shape, Syntax};
use crate::policy::{Entry, Key, Kind, List, Network, Policy, Rights, RootRule, Roots, Tool};

pub(crate) const FORMAT: Format =
    Format { name: "an envelope", syntax: Syntax::Json, root: Object { keys: KEYS, one_of: &[] } };

const KEYS: &[K] = &[
    key("envelope_id", Shape::Text, "the stable name of the envelope", "\"agent-patch-v1\""),
    key(
        "allowed_roots",
        Shape::List(&Shape::Word(r"^/.*[^/.]")),
        "the job may create, write, rename, link and delete only below these absolute paths",
        "[\"/srv/repo\"]",
    ),
    key(
        "allowed_tools",
        Shape::List(&Shape::Word(r"^\S(.*\S)?$")),
        "the tool calls that may appear",
        "[\"read_file\"]",
    ),
    key(
        "allowed_env",
        Shape::List(&Shape::Word(ENV)),
        "the environment keys that the job's processes may hold",
        "[\"CI\"]",
    ),
    key(
        "allowed_hosts",
        Shape::List(&Shape::Word(HOST)),
        "the hosts that the job may open: exact names or addresses, with a port or without",
        "[]",
    ),
    key(
        "network",
        Shape::OneOf("network-mode", MODES),
        "deny, or allowlist with hosts",
        "\"deny\"",
    ),
];

pub(crate) const MODES: &[&str] = &["deny", "allowlist"];
pub(crate) const ENV: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
pub(crate) const HOST: &str = r"^[A-Za-z0-9.:\[\]-]+$";

const fn key(name: &'static str, shape: Shape, doc: &'static str, example: &'static str) -> K {
    K { name, since: 1, required: true, shape, doc, example }
}

/// Reads an envelope: one JSON object with exactly the six keys.
///
/// # Errors
/// Every fault of the file, in its order. A syntax fault hides those behind it.
pub(crate) fn parse(file_name: &str, bytes: &[u8]) -> Result<Policy, Vec<Fault>> {
    let (root, mut faults) = form::open(file_name, bytes, &FORMAT)?;
    let fields = Fields::of(&root);
    let roots = entries::read(fields, "allowed_roots", &mut faults, absolute);
    let tools = entries::read(fields, "allowed_tools", &mut faults, tool);
    let env = entries::read(fields, "allowed_env", &mut faults, entries::env_name);
    let hosts = entries::read(fields, "allowed_hosts", &mut faults, entries::host);
    let network = network(fields, "network");
    check_network(fields, network, &mut faults);
    let network_key = Key { name: "network", line: entries::line(fields, "network") };
    let policy = Policy {
        kind: Kind::Envelope,
        id: fields.text("envelope_id").map(|(_, id)| id.to_owned()).unwrap_or_default(),
        sha256: crate::pin::digest(bytes),
        file: file_name.to_owned(),
        roots: written(fields, roots),
        binaries: None,
        tools: entries::listed(fields, "allowed_tools", tools),
        env: entries::listed(fields, "allowed_env", env),
        hosts: entries::listed(fields, "allowed_hosts", hosts),
        network: network.unwrap_or(Network::Deny),
        network_key,
        unix_sockets: List::new(network_key, Vec::new()),
        agent: None,
    };
    faults.none_or(policy)
}

/// The mode under a key; `None` when it is no mode.
pub(crate) fn network(fields: Fields, key: &str) -> Option<Network> {
    match fields.text(key)?.1 {
        "deny" => Some(Network::Deny),
        "allowlist" => Some(Network::Allowlist),
        _ => None,
    }
}

/// An envelope asks where a job writes, and of nothing else below its roots.
fn written(fields: Fields, entries: Vec<Entry<String>>) -> Roots {
    const NAME: &str = "allowed_roots";
    let rule = |entry: Entry<String>| RootRule {
        path: entry.value,
        rights: Rights::WRITE,
        key: Key { name: NAME, line: entry.line },
        profile: false,
    };
    Roots {
        entries: entries.into_iter().map(rule).collect(),
        writes: Key { name: NAME, line: entries::line(fields, NAME) },
        reads: None,
    }
}

/// An absolute path without its empty and `.` components.
pub(crate) fn absolute(text: &str) -> Result<String, Bad> {
    if !text.starts_with('/') {
        let message = format!("{} is relative (roots are absolute paths)", quoted(text));
        return Err(("root-relative", message, "write it from /"));
    }
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        let message = format!("{} climbs with `..`", quoted(text));
        return Err(("root-climbs", message, "write the directory that is meant"));
    }
    if parts.is_empty() {
        let message = format!("{} is the whole file system", quoted(text));
        return Err(("root-is-slash", message, "list the directories the job needs"));
    }
    Ok(format!("/{}", parts.join("/")))
}

fn tool(text: &str) -> Result<Tool, Bad> {
    entries::tool_name(text).map(|name| Tool { server: None, name })
}

fn check_network(fields: Fields, mode: Option<Network>, faults: &mut Faults) {
    let (Some(at), Some(mode), Some(hosts)) =
        (fields.at("network"), mode, fields.list("allowed_hosts"))
    else {
        return;
    };
    match (mode, hosts.is_empty()) {
        (Network::Deny, false) => faults.add(
            at,
            "network-deny-with-hosts",
            "network is \"deny\", but allowed_hosts lists hosts",
            "empty allowed_hosts, or write \"allowlist\"",
        ),
        (Network::Allowlist, true) => faults.add(
            at,
            "network-allowlist-without-hosts",
            "network is \"allowlist\", but allowed_hosts is empty",
            "list the hosts, or write \"deny\"",
        ),
        (Network::Deny, true) | (Network::Allowlist, false) => {}
    }
}
