//! Whether a host may be reached.

use super::findings::{Findings, shown};
use crate::host;
use crate::policy::{HostName, Network, Policy};

/// Adds a finding when the host is not listed. `host` is `name[:port]`, with
/// `/tcp` or `/udp` behind it where that matters; without, it is TCP.
pub(super) fn judge(line: u64, host: &str, policy: &Policy, findings: &mut Findings) {
    let at = (Some(line), Some("host"));
    let key = match policy.network {
        Network::Deny => policy.network_key,
        Network::Allowlist => policy.hosts.key,
    };
    let (parsed, protocol) = match host::reached(host) {
        Ok(parsed) => parsed,
        Err(bad) => {
            findings.add("host-spelling", at, None, || {
                (format!("{} is no host", shown(host)), bad.help)
            });
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
        findings.add("host-other-port", at, Some(key), || {
            let message = format!("{} is listed for another port or protocol", name());
            (message, "write the port in the trace; use the one that is listed")
        });
    } else if must_be_named(&parsed.name) {
        findings.add("host-metadata", at, Some(key), || {
            let message = format!("{} is link-local, or hands out metadata", name());
            (message, "hand the job what it needs instead, or list it by itself")
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

/// What is denied unless it is listed itself.
fn must_be_named(name: &HostName) -> bool {
    match name {
        HostName::Name(name) => host::is_metadata_name(name),
        HostName::Address(address) => host::must_be_named(*address),
    }
}
