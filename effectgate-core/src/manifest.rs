//! The manifest's grammar, `agent-egress.yml`: who runs, what may be touched,
//! and within which bounds.

mod binaries;
mod exceptions;
mod identity;
mod keys;
mod network;
mod roots;
mod servers;
mod terms;

use crate::entries;
use crate::fault::{Fault, Faults};
use crate::form::{self, Fields};
use crate::policy::{Agent, Entry, Key, Kind, Limit, Limits, List, Network, Policy};

pub(crate) use binaries::is_basename;
pub(crate) use identity::{is_bot, look_alike};
pub(crate) use keys::FORMAT;
pub(crate) use roots::is_socket;

/// Reads a manifest of version 1 or 2. `today` is `YYYY-MM-DD`: exceptions
/// expire.
///
/// # Errors
/// Every fault of the file, in its order. A syntax fault hides those behind it.
pub(crate) fn parse(file_name: &str, bytes: &[u8], today: &str) -> Result<Policy, Vec<Fault>> {
    let (root, mut faults) = form::open(file_name, bytes, &FORMAT)?;
    let fields = Fields::of(&root);
    let version = if fields.count("version").is_some_and(|(_, said)| said == 1) { 1 } else { 2 };
    let id = identity::read(fields, "agent_id", identity::agent_id, &mut faults);
    let owner = identity::read(fields, "owner", identity::owner, &mut faults);
    let exceptions = exceptions::read(fields, today, &mut faults);
    let dependency_change = fields.flag("dependency_change").unwrap_or(false);
    let allowed = binaries::Allowed {
        version,
        exceptions: exceptions.iter().map(|exception| exception.allows.as_str()).collect(),
        dependency_change,
    };
    let binaries = binaries::read(fields, &allowed, &mut faults);
    let env = entries::read(fields, "env_allow", &mut faults, entries::env_name);
    let net = network::read(fields, version, &mut faults);
    let sockets = entries::read(fields, "unix_sockets", &mut faults, roots::socket);
    let roots = roots::read(fields, &mut faults);
    let reach = servers::Reach::of(&binaries, &net.hosts, &roots.exec);
    let servers = servers::read(fields, &allowed, &reach, &mut faults);
    check_anything_runs(fields, &mut faults);
    let network_fields = fields.object("network").unwrap_or(fields);
    let policy = Policy {
        kind: Kind::Manifest,
        id,
        sha256: crate::pin::digest(bytes),
        file: file_name.to_owned(),
        binaries: Some(entries::listed(fields, "binaries", binaries)),
        tools: entries::listed(fields, "mcp_servers", servers.tools),
        env: entries::listed(fields, "env_allow", env),
        hosts: hosts(network_fields, net.hosts),
        network: net.mode.unwrap_or(Network::Deny),
        network_key: Key { name: "network.mode", line: entries::line(network_fields, "mode") },
        unix_sockets: entries::listed(fields, "unix_sockets", sockets),
        agent: Some(Box::new(Agent {
            version,
            owner,
            dependency_change,
            servers: servers.servers,
            pins: terms::pins(fields, &mut faults),
            limits: limits(fields),
            min_coverage: terms::min_coverage(fields),
            on_loss: terms::on_loss(fields),
            on_violation: terms::on_violation(fields),
            exceptions,
        })),
        roots: roots.roots,
    };
    faults.none_or(policy)
}

/// Where the list of hosts is left out, the mode's line stands for it.
fn hosts(network: Fields, entries: Vec<Entry<crate::host::Host>>) -> List<crate::host::Host> {
    let at = network.at("hosts").or_else(|| network.at("mode"));
    List::new(Key { name: "network.hosts", line: at.map_or(1, |at| at.line) }, entries)
}

fn limits(fields: Fields) -> Limits {
    let limit = |name| Limit {
        value: fields.count(name).map_or(1, |(_, value)| value),
        key: Key { name, line: entries::line(fields, name) },
    };
    Limits {
        max_steps: limit("max_steps"),
        max_wall_clock_sec: limit("max_wall_clock_sec"),
        max_tool_calls_per_step: limit("max_tool_calls_per_step"),
    }
}

/// A manifest that lets nothing run and nothing be called is one that was not
/// filled in.
fn check_anything_runs(fields: Fields, faults: &mut Faults) {
    let empty = |key| fields.list(key).is_some_and(<[_]>::is_empty);
    if let Some(at) = fields.at("binaries")
        && empty("binaries")
        && empty("mcp_servers")
        && fields.list("exec_roots").is_none_or(<[_]>::is_empty)
    {
        let message = "neither a binary, an exec root nor an MCP server is listed: nothing can run";
        faults.add(at, "nothing-runs", message, "list the programs that the agent starts");
    }
}
