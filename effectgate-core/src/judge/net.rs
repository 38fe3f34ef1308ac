//! The network: hosts by name or address, the job's own loopback.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::input::NetOp;
use crate::judge::{Finding, Judgement, Rule, Tables};
use crate::policy::{HostName, Key, Network};

/// `IPPROTO_UDP`.
const UDP: u32 = 17;

/// Sockets remembered of one job.
const LISTENERS: usize = 65_536;

/// Where the job itself can be reached through loopback: what it bound.
///
/// What is not known, and lets a listener of the host pass for the job's own:
/// - when a socket is closed: an entry stays until the job ends, even if the
///   host then listens there;
/// - whether a socket that was bound also listens;
/// - whether an IPv6 wildcard socket accepts IPv4 (`IPV6_V6ONLY`): it is taken
///   to do so;
/// - network namespaces: one address in two of them is taken to be the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners(BTreeSet<(u32, IpAddr, u16)>);

impl Listeners {
    /// Takes note of a bind; `address` is canonical.
    pub fn bound(&mut self, protocol: u32, address: IpAddr, port: u16) {
        // Port 0 is no place to connect to. Beyond the limit, the job's own
        // listener is judged like a stranger's.
        let reachable = address.is_loopback() || address.is_unspecified();
        if reachable && port != 0 && self.0.len() < LISTENERS {
            self.0.insert((protocol, address, port));
        }
    }

    /// Whether what answers at `address` is the job's. The unspecified address
    /// leads to whatever loopback address the connecting socket has, so only
    /// a wildcard answers there for sure.
    fn answer(&self, protocol: u32, address: IpAddr, port: u16) -> bool {
        let any4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let any6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let has = |bound| self.0.contains(&(protocol, bound, port));
        has(address) || has(any6) || address.is_ipv4() && has(any4)
    }
}

/// A judgement, and the host of the policy by which it was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetJudgement {
    pub judgement: Judgement,
    /// The listed name that this job resolved to the address.
    pub name: Option<String>,
}

/// Judges a socket effect. `address` is canonical: IPv4-mapped IPv6 is IPv4.
pub fn net(
    tables: &Tables,
    listeners: &Listeners,
    op: NetOp,
    address: IpAddr,
    port: u16,
    protocol: u32,
) -> NetJudgement {
    let built_in = |name, finding| NetJudgement {
        judgement: Judgement { rule: Rule::of_every_policy(name), finding },
        name: None,
    };
    if let Some(listed) = listed(tables, address, port, protocol) {
        return listed;
    }
    match op {
        NetOp::Bind if address.is_loopback() => return built_in("loopback", Finding::Within),
        // The kernel takes a connection to the unspecified address to loopback.
        NetOp::Connect | NetOp::Send if address.is_loopback() || address.is_unspecified() => {
            if listeners.answer(protocol, address, port) {
                return built_in("loopback", Finding::Within);
            }
            // How resolvers ask which source address they would have: nothing
            // is sent, and nothing can listen there.
            if op == NetOp::Connect && protocol == UDP && port == 0 {
                return built_in("address-probe", Finding::Within);
            }
        }
        NetOp::Bind | NetOp::Connect | NetOp::Send => {}
    }
    let started = &tables.started;
    let policy = &started.policy;
    let rule = match policy.network {
        Network::Deny => Rule::written(started, policy.network_key),
        Network::Allowlist => Rule::written(started, policy.hosts.key),
    };
    NetJudgement { judgement: Judgement { rule, finding: Finding::Violation }, name: None }
}

fn listed(tables: &Tables, address: IpAddr, port: u16, protocol: u32) -> Option<NetJudgement> {
    let hosts = &tables.started.policy.hosts;
    let entries = tables.hosts(address).iter().filter_map(|index| hosts.entries().get(*index));
    let entry = entries.into_iter().find(|entry| entry.value.allows(port, protocol))?;
    let rule = Rule::written(&tables.started, Key { line: entry.line, ..hosts.key });
    let name = match &entry.value.name {
        HostName::Address(_) => None,
        HostName::Name(name) => Some(name.clone()),
    };
    Some(NetJudgement { judgement: Judgement::within_rule(rule), name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{started_with_hosts, tables};
    use crate::input::Started;

    const TCP: u32 = 6;

    fn judge(
        tables: &Tables,
        op: NetOp,
        address: &str,
        port: u16,
        protocol: u32,
    ) -> (bool, &'static str) {
        let mut listeners = Listeners::default();
        for (address, port) in [("127.0.0.1", 8080), ("::1", 8080), ("127.0.0.2", 5432)] {
            listeners.bound(TCP, address.parse().unwrap(), port);
        }
        let address = address.parse().unwrap();
        let found = net(tables, &listeners, op, address, port, protocol).judgement;
        (found.within(), found.rule.name)
    }

    #[test]
    fn hosts() {
        // example.com:443 -> 192.0.2.1, 198.51.100.7, [2001:db8::1]:53
        let tables = Tables::new(started_with_hosts());
        for op in [NetOp::Connect, NetOp::Send, NetOp::Bind] {
            for (address, port, within) in [
                ("192.0.2.1", 443, true),
                ("192.0.2.1", 80, false),
                ("192.0.2.2", 443, false),
                ("198.51.100.7", 1, true),
                ("198.51.100.7", 65535, true),
                ("2001:db8::1", 53, true),
                ("2001:db8::1", 54, false),
                ("8.8.8.8", 53, false),
            ] {
                let found = judge(&tables, op, address, port, TCP);
                assert_eq!(found, (within, "allowed_hosts"), "{op:?} {address}:{port}");
            }
        }
        let address = "192.0.2.1".parse().unwrap();
        let found = net(&tables, &Listeners::default(), NetOp::Connect, address, 443, TCP);
        assert_eq!(found.name.as_deref(), Some("example.com"));
        assert_eq!(found.judgement.rule.line, Some(tables.started.policy.hosts.entries()[0].line));
    }

    #[test]
    fn loopback() {
        let tables = tables();
        for (op, address, port, protocol, within, rule) in [
            (NetOp::Connect, "127.0.0.1", 8080, TCP, true, "loopback"),
            (NetOp::Send, "127.0.0.1", 8080, TCP, true, "loopback"),
            (NetOp::Send, "127.9.9.9", 8080, TCP, false, "network"),
            (NetOp::Connect, "::1", 8080, TCP, true, "loopback"),
            (NetOp::Connect, "0.0.0.0", 8080, TCP, false, "network"),
            (NetOp::Connect, "127.0.0.2", 5432, TCP, true, "loopback"),
            (NetOp::Connect, "127.0.0.1", 5432, TCP, false, "network"),
            (NetOp::Connect, "::1", 5432, TCP, false, "network"),
            (NetOp::Connect, "127.0.0.1", 8080, UDP, false, "network"),
            (NetOp::Connect, "127.0.0.1", 8081, TCP, false, "network"),
            (NetOp::Connect, "192.0.2.1", 8080, TCP, false, "network"),
            (NetOp::Connect, "::1", 0, UDP, true, "address-probe"),
            (NetOp::Connect, "::1", 0, TCP, false, "network"),
            (NetOp::Send, "::1", 0, UDP, false, "network"),
            (NetOp::Connect, "192.0.2.1", 0, UDP, false, "network"),
            (NetOp::Bind, "127.0.0.1", 0, TCP, true, "loopback"),
            (NetOp::Bind, "::1", 80, UDP, true, "loopback"),
            (NetOp::Bind, "0.0.0.0", 80, TCP, false, "network"),
            (NetOp::Bind, "::", 0, TCP, false, "network"),
            (NetOp::Bind, "192.0.2.1", 80, TCP, false, "network"),
        ] {
            let found = judge(&tables, op, address, port, protocol);
            assert_eq!(found, (within, rule), "{op:?} {address}:{port}/{protocol}");
        }
    }

    #[test]
    fn a_listener_answers_where_it_was_bound() {
        let answers = |bound: &str, address: &str| {
            let mut listeners = Listeners::default();
            listeners.bound(TCP, bound.parse().unwrap(), 5432);
            let address = address.parse().unwrap();
            let found = net(&tables(), &listeners, NetOp::Connect, address, 5432, TCP).judgement;
            found.within()
        };
        let asked = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "192.0.2.1"];
        for (bound, answered) in [
            ("127.0.0.1", [true, false, false, false, false, false]),
            ("127.0.0.2", [false, true, false, false, false, false]),
            ("0.0.0.0", [true, true, true, false, false, false]),
            ("::1", [false, false, false, true, false, false]),
            ("::", [true, true, true, true, true, false]),
            ("192.0.2.1", [false; 6]),
        ] {
            assert_eq!(asked.map(|address| answers(bound, address)), answered, "{bound}");
        }
    }

    /// Whoever answers for a name cannot let the job reach what must be named.
    #[test]
    fn metadata_is_reached_by_its_own_name_only() {
        let mut started = started_with_hosts();
        let metadata: IpAddr = "169.254.169.254".parse().unwrap();
        started.hosts[0].extend([metadata, "fd00:ec2::254".parse().unwrap()]);
        let judge = |started: Started, address: &str| {
            judge(&Tables::new(started), NetOp::Connect, address, 443, TCP).0
        };
        assert!(judge(started.clone(), "192.0.2.1"));
        assert!(!judge(started.clone(), "169.254.169.254"));
        assert!(!judge(started.clone(), "fd00:ec2::254"));
        for host in ["169.254.169.254", "metadata.google.internal"] {
            let text = crate::fixture::ENVELOPE_WITH_HOSTS.replace("example.com:443", host);
            let policy =
                crate::policy::parse("envelope.json", text.as_bytes(), "2026-01-31").unwrap();
            let listed = Started { policy, ..started.clone() };
            assert!(judge(listed, "169.254.169.254"), "{host}");
        }
    }

    #[test]
    fn listeners_are_bounded() {
        let mut listeners = Listeners::default();
        for port in 0..=u16::MAX {
            for address in ["127.0.0.1", "127.0.0.2"] {
                listeners.bound(TCP, address.parse().unwrap(), port);
            }
        }
        assert_eq!(listeners.0.len(), LISTENERS);
    }
}
