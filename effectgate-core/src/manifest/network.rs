//! Which hosts may be opened.

use crate::entries::{self, Seen};
use crate::envelope;
use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::host::{Host, Protocol};
use crate::policy::{Entry, Network};
use crate::tree::{Node, Pos};

pub(super) struct Net {
    pub mode: Option<Network>,
    pub hosts: Vec<Entry<Host>>,
}

pub(super) fn read(fields: Fields, version: u8, faults: &mut Faults) -> Net {
    let Some(network) = fields.object("network") else {
        return Net { mode: None, hosts: Vec::new() };
    };
    let mode = envelope::network(network, "mode");
    check(network, mode, faults);
    let mut seen = Seen::default();
    let mut hosts = Vec::new();
    for node in network.list("hosts").unwrap_or_default() {
        for (at, host) in entry(node, version, faults) {
            seen.once(&host, &host.to_string(), "hosts", at, faults);
            hosts.push(Entry { value: host, line: at.line, column: at.column });
        }
    }
    Net { mode, hosts }
}

/// A host, once for every port that is written.
fn entry(node: &Node, version: u8, faults: &mut Faults) -> Vec<(Pos, Host)> {
    let more = Fields::of(node);
    let Some((at, text)) = node.text().map(|text| (node.at, text)).or(more.text("host")) else {
        return Vec::new();
    };
    let host = match entries::host(text) {
        Ok(host) => host,
        Err((rule, message, help)) => {
            faults.add(at, rule, format!("hosts: {message}"), help);
            return Vec::new();
        }
    };
    if host.port.is_some() && version == 1 {
        let message = format!("hosts: {} has a port, which version 2 has first", quoted(text));
        faults.add(at, "needs-version-2", message, "write `version: 2`, or the host alone");
    }
    let protocol = match more.text("protocol").map(|(_, word)| word) {
        Some("tcp") => Some(Protocol::Tcp),
        Some("udp") => Some(Protocol::Udp),
        _ => None,
    };
    let host = Host { protocol, ..host };
    let Some(ports) = more.list("ports") else { return vec![(at, host)] };
    if let (Some(at), true) = (more.at("ports"), host.port.is_some() || ports.is_empty()) {
        let what =
            if ports.is_empty() { "ports: none is listed" } else { "ports: the host has one" };
        faults.add(at, "host-ports", what, "write the ports in one place, or leave `ports` out");
    }
    ports.iter().filter_map(|node| Some((node.at, port(node, &host, faults)?))).collect()
}

fn port(node: &Node, host: &Host, faults: &mut Faults) -> Option<Host> {
    let port = u16::try_from(node.count()?).ok();
    if port.is_none() {
        let help = "write a number between 1 and 65535";
        faults.add(node.at, "host-port", "ports: there is no such port", help);
    }
    Some(Host { port: Some(port?), ..host.clone() })
}

fn check(network: Fields, mode: Option<Network>, faults: &mut Faults) {
    let (Some(at), Some(mode)) = (network.at("mode"), mode) else { return };
    let none = network.list("hosts").is_none_or(<[_]>::is_empty);
    match (mode, none) {
        (Network::Deny, false) => faults.add(
            at,
            "network-deny-with-hosts",
            "network.mode is deny, but hosts are listed",
            "remove the hosts, or write `mode: allowlist`",
        ),
        (Network::Allowlist, true) => faults.add(
            at,
            "network-allowlist-without-hosts",
            "network.mode is allowlist, but no host is listed",
            "list the hosts, or write `mode: deny`",
        ),
        (Network::Deny, true) | (Network::Allowlist, false) => {}
    }
}
