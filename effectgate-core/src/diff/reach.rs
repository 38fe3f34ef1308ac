//! What can be reached: hosts, sockets of other programs, the environment,
//! tools.

use super::{Change, Kind, uncovered};
use crate::policy::{Host, Network, Policy, Tool};
use crate::secret::is_secret_name;

pub(super) fn grants(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    if (old.network, new.network) == (Network::Deny, Network::Allowlist) {
        let act = "use the network, for the hosts that are listed";
        let change = Change::new(Kind::Network, "network", Some(new.network_key.line), act);
        found.push(change.between(Some("deny".into()), Some("allowlist".into())));
    }
    hosts(old, new, found);
    unix_sockets(old, new, found);
    env(old, new, found);
    tools(old, new, found);
}

fn hosts(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    for entry in uncovered(&new.hosts, |host| covered(old, host)) {
        let host = &entry.value;
        let before: Vec<String> =
            old.lists_host(&host.name).map(|entry| entry.value.to_string()).collect();
        let protocol = host.protocol.map(|it| format!(" over {}", it.name())).unwrap_or_default();
        let act = match host.port {
            Some(port) => format!("reach {} on port {port}{protocol}", host.name),
            None => format!("reach {} on every port{protocol}", host.name),
        };
        let before = (!before.is_empty()).then(|| before.join(", "));
        found.push(
            Change::new(Kind::Host, host.name.to_string(), Some(entry.line), act)
                .between(before, Some(host.to_string())),
        );
    }
}

/// Whether one entry of the old policy lets all of this one through.
fn covered(old: &Policy, host: &Host) -> bool {
    old.lists_host(&host.name).any(|had| {
        let had = &had.value;
        (had.port.is_none() || had.port == host.port)
            && (had.protocol.is_none() || had.protocol == host.protocol)
    })
}

/// An envelope lists none.
fn unix_sockets(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    for entry in uncovered(&new.unix_sockets, |path| old.unix_sockets.find(path).is_some()) {
        let act = format!("talk to the program behind the socket {}", entry.value);
        found.push(Change::new(Kind::UnixSocket, &entry.value, Some(entry.line), act));
    }
}

fn env(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    for entry in uncovered(&new.env, |key| old.allows_env(key.as_bytes())) {
        let key = &entry.value;
        let (kind, act) = if is_secret_name(key.as_bytes()) {
            (Kind::SecretEnv, format!("hold {key}, a key whose name promises a secret"))
        } else {
            (Kind::Env, format!("hold the environment key {key}"))
        };
        found.push(Change::new(kind, key, Some(entry.line), act));
    }
}

fn tools(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    let covered = |tool: &Tool| old.lists_tool(tool.server.as_deref(), &tool.name).is_some();
    for entry in uncovered(&new.tools, covered) {
        let Tool { server, name } = &entry.value;
        let (what, act) = match server {
            Some(server) => {
                (format!("{server}/{name}"), format!("call the tool {name} of the server {server}"))
            }
            None => (name.clone(), format!("call the tool {name}")),
        };
        found.push(Change::new(Kind::Tool, what, Some(entry.line), act));
    }
}
