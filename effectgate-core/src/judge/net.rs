//! Sockets: hosts by name or address, and what the job itself listens on.

use std::net::IpAddr;

use crate::input::{Namespace, NetOp, UnixPeer};
use crate::judge::{Doubt, Finding, Judgement, Rule, Tables};
use crate::policy::{HostName, Key, Network};

/// `IPPROTO_UDP`.
const UDP: u32 = 17;

/// Who is spoken to, or the address that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Canonical: IPv4-mapped IPv6 is IPv4.
    pub address: IpAddr,
    pub port: u16,
    /// `IPPROTO_…`
    pub protocol: u32,
    /// The socket that answers there was made inside the job.
    pub own: bool,
    /// Where it is that address.
    pub namespace: Namespace,
}

/// A judgement, and the host of the policy by which it was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetJudgement {
    pub judgement: Judgement,
    /// The listed name that this job resolved to the address.
    pub name: Option<String>,
}

/// Judges a socket effect. What a policy lists are addresses of the job's network
/// namespaces: in another the same words mean something else.
pub fn net(tables: &Tables, op: NetOp, peer: Peer) -> NetJudgement {
    if peer.namespace == Namespace::Foreign {
        let rule = Rule::of_every_policy("foreign-network");
        return NetJudgement { judgement: Judgement::violates(rule), name: None };
    }
    let mut found = by_address(tables, op, peer);
    if peer.namespace == Namespace::Unknown && found.judgement.within() {
        found.judgement.finding = Finding::Doubt(Doubt::Namespace);
    }
    found
}

fn by_address(tables: &Tables, op: NetOp, peer: Peer) -> NetJudgement {
    let Peer { address, port, protocol, own, .. } = peer;
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
            if own {
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

/// Judges that the job speaks to a Unix socket; `own`: one that was made inside
/// the job. Behind any other stands a program that acts for whoever reaches it.
pub fn unix(tables: &Tables, peer: &UnixPeer, own: bool) -> Judgement {
    if own {
        return Judgement::within_rule(Rule::of_every_policy("own-socket"));
    }
    let sockets = &tables.started.policy.unix_sockets;
    let entry = match peer {
        UnixPeer::File(file) => tables.socket(file),
        UnixPeer::Abstract(_) | UnixPeer::Unnamed => None,
    };
    let rule = |key| Rule::written(&tables.started, key);
    match entry.and_then(|index| sockets.entries().get(index)) {
        Some(entry) => Judgement::within_rule(rule(Key { line: entry.line, ..sockets.key })),
        None => Judgement::violates(rule(sockets.key)),
    }
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
    use crate::fixture::{object, started_with_hosts, tables};
    use crate::input::{RootMatch, Started};

    const TCP: u32 = 6;

    fn peer(address: &str, port: u16, protocol: u32, own: bool) -> Peer {
        Peer { address: address.parse().unwrap(), port, protocol, own, namespace: Namespace::Own }
    }

    fn judge(
        tables: &Tables,
        op: NetOp,
        address: &str,
        port: u16,
        protocol: u32,
    ) -> (bool, &'static str) {
        let found = net(tables, op, peer(address, port, protocol, false)).judgement;
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
        let found = net(&tables, NetOp::Connect, peer("192.0.2.1", 443, TCP, false));
        assert_eq!(found.name.as_deref(), Some("example.com"));
        assert_eq!(found.judgement.rule.line, Some(tables.started.policy.hosts.entries()[0].line));
    }

    #[test]
    fn loopback() {
        let tables = tables();
        for (op, address, port, protocol, own, within, rule) in [
            (NetOp::Connect, "127.0.0.1", 8080, TCP, true, true, "loopback"),
            (NetOp::Send, "127.0.0.1", 8080, UDP, true, true, "loopback"),
            (NetOp::Connect, "::1", 8080, TCP, true, true, "loopback"),
            (NetOp::Connect, "0.0.0.0", 8080, TCP, true, true, "loopback"),
            (NetOp::Connect, "::", 8080, TCP, true, true, "loopback"),
            (NetOp::Send, "127.0.0.1", 8080, TCP, false, false, "network"),
            (NetOp::Connect, "0.0.0.0", 8080, TCP, false, false, "network"),
            (NetOp::Connect, "::1", 5432, TCP, false, false, "network"),
            (NetOp::Connect, "192.0.2.1", 8080, TCP, true, false, "network"),
            (NetOp::Connect, "::1", 0, UDP, false, true, "address-probe"),
            (NetOp::Connect, "::1", 0, TCP, false, false, "network"),
            (NetOp::Send, "::1", 0, UDP, false, false, "network"),
            (NetOp::Connect, "192.0.2.1", 0, UDP, false, false, "network"),
            (NetOp::Bind, "127.0.0.1", 0, TCP, false, true, "loopback"),
            (NetOp::Bind, "::1", 80, UDP, false, true, "loopback"),
            (NetOp::Bind, "0.0.0.0", 80, TCP, true, false, "network"),
            (NetOp::Bind, "::", 0, TCP, false, false, "network"),
            (NetOp::Bind, "192.0.2.1", 80, TCP, false, false, "network"),
        ] {
            let found = net(&tables, op, peer(address, port, protocol, own)).judgement;
            let found = (found.within(), found.rule.name);
            assert_eq!(found, (within, rule), "{op:?} {address}:{port}/{protocol} {own}");
        }
    }

    /// Neither a listed address nor the job's own listener is one in another's
    /// network namespace; what may be one is left open.
    #[test]
    fn namespaces() {
        let tables = Tables::new(started_with_hosts());
        let listed = peer("192.0.2.1", 443, TCP, false);
        let own = peer("127.0.0.1", 8080, TCP, true);
        let bound = peer("127.0.0.1", 0, TCP, false);
        let stranger = peer("8.8.8.8", 53, UDP, false);
        for (op, peer, within) in [
            (NetOp::Connect, listed, true),
            (NetOp::Send, own, true),
            (NetOp::Bind, bound, true),
            (NetOp::Connect, stranger, false),
        ] {
            let judge = |namespace| net(&tables, op, Peer { namespace, ..peer });
            let own = judge(Namespace::Own).judgement;
            assert_eq!(own.within(), within, "{peer:?}");
            let foreign = judge(Namespace::Foreign);
            assert_eq!(foreign.judgement.finding, Finding::Violation, "{peer:?}");
            assert_eq!(foreign.judgement.rule.name, "foreign-network", "{peer:?}");
            assert_eq!(foreign.name, None);
            let unknown = judge(Namespace::Unknown).judgement;
            let doubt = Finding::Doubt(Doubt::Namespace);
            let expected = if within { doubt } else { Finding::Violation };
            assert_eq!(unknown, Judgement { rule: own.rule, finding: expected }, "{peer:?}");
        }
    }

    #[test]
    fn unix_sockets() {
        let bus = UnixPeer::File(object("/run/bus", RootMatch::Outside));
        let inside = UnixPeer::File(object("/srv/repo/socket", RootMatch::Below(1)));
        for peer in [bus, inside, UnixPeer::Abstract(b"bus".to_vec()), UnixPeer::Unnamed] {
            let judge = |own| {
                let found = unix(&tables(), &peer, own);
                (found.within(), found.rule.name)
            };
            assert_eq!(judge(true), (true, "own-socket"), "{peer:?}");
            assert_eq!(judge(false), (false, "network"), "{peer:?}");
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
}
