//! Whom the job spoke to.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::Value;

use crate::input::NetOp;

/// Peers listed, and programs listed of each.
const MOST: usize = 2048;
const MOST_PROGRAMS: usize = 8;

/// Peers in the order in which they were first spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Peers {
    pub listed: Vec<Peer>,
    /// Effects on peers beyond those listed.
    pub unlisted: u64,
}

/// Somebody at an address, or behind a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Peer {
    pub op: &'static str,
    /// `ipv4`, `ipv6`, `unix`
    pub family: String,
    /// The name that the policy lists the address under.
    pub name: Option<String>,
    /// The address; a path or an abstract name (`@…`) of a Unix socket.
    pub address: String,
    pub port: Option<u64>,
    pub protocol: Option<String>,
    pub count: u64,
    pub violations: u64,
    /// Not allowed and no violation: it could not be told.
    pub open: u64,
    pub programs: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    peers: Peers,
    index: HashMap<(NetOp, String, Option<u64>, Option<String>), usize>,
}

impl Recorder {
    pub fn take(
        &mut self,
        op: NetOp,
        object: &Value,
        process: &Value,
        within: bool,
        outside: bool,
    ) {
        let text = |key: &str| object[key].as_str().map(str::to_owned);
        let address = text("address").or_else(|| text("path"));
        let address = address.or_else(|| text("abstract").map(|name| format!("@{name}")));
        let address = address.unwrap_or_else(|| "(unnamed)".to_owned());
        let (port, protocol) = (object["port"].as_u64(), text("protocol"));
        let key = (op, address.clone(), port, protocol.clone());
        let at = match self.index.get(&key) {
            Some(at) => *at,
            None if self.peers.listed.len() >= MOST => {
                self.peers.unlisted += 1;
                return;
            }
            None => {
                let family = text("family").unwrap_or_default();
                self.peers.listed.push(Peer {
                    op: op.name(),
                    family,
                    name: text("name"),
                    address,
                    port,
                    protocol,
                    count: 0,
                    violations: 0,
                    open: 0,
                    programs: BTreeSet::new(),
                });
                self.index.insert(key, self.peers.listed.len() - 1);
                self.peers.listed.len() - 1
            }
        };
        let peer = &mut self.peers.listed[at];
        peer.count += 1;
        peer.violations += u64::from(outside);
        peer.open += u64::from(!within && !outside);
        if let Some(exe) = process["exe"].as_str()
            && peer.programs.len() < MOST_PROGRAMS
            && !peer.programs.contains(exe)
        {
            peer.programs.insert(exe.to_owned());
        }
    }

    pub fn finish(self) -> Peers {
        self.peers
    }
}
