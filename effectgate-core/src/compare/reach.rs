//! Whether a host may be reached.

use std::net::IpAddr;

use super::findings::{Findings, shown};
use crate::host;
use crate::policy::{HostName, Network, Policy};

const TCP: u32 = 6;
const UDP: u32 = 17;

/// Adds a finding when the host is not listed. `host` is `name[:port]`, with
/// `/tcp` or `/udp` behind it where that matters; without, it is TCP.
pub(super) fn judge(line: u64, host: &str, policy: &Policy, findings: &mut Findings) {
    let at = (Some(line), Some("host"));
    let key = match policy.network {
        Network::Deny => policy.network_key,
        Network::Allowlist => policy.hosts.key,
    };
    let (plain, protocol) = match host.rsplit_once('/') {
        Some((plain, "tcp")) => (plain, TCP),
        Some((plain, "udp")) => (plain, UDP),
        _ => (host, TCP),
    };
    let parsed = match host::parse(plain) {
        Ok(parsed) => parsed,
        Err(bad) => {
            findings
                .add("host-form", at, None, || (format!("{} is no host", shown(host)), bad.help));
            return;
        }
    };
    let mut listed = false;
    for entry in policy.lists_host(&parsed.name) {
        let allows = match parsed.port {
            Some(port) => entry.value.allows(port, protocol),
            // Which port it was is not known, so that all must be allowed.
            None => entry.value.port.is_none() && entry.value.allows(0, protocol),
        };
        if allows {
            return;
        }
        listed = true;
    }
    let name = || shown(host);
    if listed {
        findings.add("host-port", at, Some(key), || {
            let message = format!("{} is listed for another port or protocol", name());
            (message, "write the port in the trace; use the one that is listed")
        });
    } else if is_metadata(&parsed.name) {
        findings.add("host-metadata", at, Some(key), || {
            (format!("{} is a metadata endpoint", name()), "hand the job what it needs instead")
        });
    } else if is_link_local(&parsed.name) {
        findings.add("host-link-local", at, Some(key), || {
            (format!("{} is a link-local address", name()), "list it by itself, if it must be")
        });
    } else {
        findings.add("host-not-listed", at, Some(key), || {
            let message = match policy.network {
                Network::Deny => format!("{} was reached, and network is deny", name()),
                Network::Allowlist => format!("{} is not in the list", name()),
            };
            (message, "do without it, or have it reviewed and listed")
        });
    }
}

/// Where clouds hand out the credentials of a machine.
fn is_metadata(name: &HostName) -> bool {
    const NAMES: [&str; 6] = [
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
    ];
    const ADDRESSES: [&str; 6] = [
        "169.254.169.254",
        "169.254.170.2",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    ];
    match name {
        HostName::Name(name) => NAMES.contains(&name.as_str()),
        HostName::Address(address) => {
            ADDRESSES.iter().any(|known| known.parse::<IpAddr>().is_ok_and(|own| own == *address))
        }
    }
}

fn is_link_local(name: &HostName) -> bool {
    match name {
        HostName::Name(_) => false,
        HostName::Address(IpAddr::V4(v4)) => v4.is_link_local(),
        HostName::Address(IpAddr::V6(v6)) => v6.is_unicast_link_local(),
    }
}
