//! Tools, and the servers that have them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::findings::{Findings, shown};
use super::program::is_digest;
use crate::policy::{Key, Policy, Server};
use crate::trace::{Event, Kind};

const SERVERS: &str = "mcp_servers";

pub(super) struct Servers<'a> {
    policy: &'a Policy,
    /// By name, with the tools that the manifest froze.
    all: HashMap<&'a str, (&'a Server, BTreeSet<&'a str>)>,
}

impl<'a> Servers<'a> {
    pub fn new(policy: &'a Policy) -> Self {
        let servers = policy.agent.iter().flat_map(|agent| &agent.servers);
        let mut all: HashMap<_, _> =
            servers.map(|server| (server.name.as_str(), (server, BTreeSet::new()))).collect();
        for tool in policy.tools.entries() {
            let server = tool.value.server.as_deref();
            if let Some((_, tools)) = server.and_then(|server| all.get_mut(server)) {
                tools.insert(tool.value.name.as_str());
            }
        }
        Servers { policy, all }
    }

    pub fn judge(&self, line: u64, event: &Event<'_>, findings: &mut Findings) {
        let server = event.server.as_deref();
        if let Some(name) = server
            && !self.all.contains_key(name)
        {
            findings.add("server-not-listed", (Some(line), Some("server")), self.key(), || {
                let message = format!("no server {} is in the manifest", shown(name));
                (message, "use a server that is pinned, or have this one reviewed and pinned")
            });
            return;
        }
        match event.kind {
            Kind::McpServer => self.presented(line, event, findings),
            Kind::ToolCall if server.is_some() || event.binary.is_none() => {
                self.called(line, event, findings);
            }
            _ => {}
        }
    }

    fn called(&self, line: u64, event: &Event<'_>, findings: &mut Findings) {
        let server = event.server.as_deref();
        let listed = match server {
            Some(_) => self.policy.lists_tool(server, &event.name).is_some(),
            // Which server it was is not said: any that has such a tool.
            None => self.policy.tools.find(&event.name).is_some(),
        };
        if listed {
            return;
        }
        let known = server.and_then(|server| self.all.get(server));
        let key = known.map(|(server, _)| Key { name: SERVERS, line: server.line });
        let key = key.or(self.key());
        findings.add("tool-not-listed", (Some(line), Some("name")), key, || {
            let message = match server {
                Some(server) => {
                    format!("{} is no listed tool of {}", shown(&event.name), shown(server))
                }
                None => format!("{} is no listed tool", shown(&event.name)),
            };
            (message, "do without it, or have it reviewed and listed")
        });
    }

    fn presented(&self, line: u64, event: &Event<'_>, findings: &mut Findings) {
        let Some((server, tools)) = event.server.as_deref().and_then(|name| self.all.get(name))
        else {
            return;
        };
        let key = Key { name: SERVERS, line: server.line };
        if !event.digest.as_deref().is_some_and(|found| is_digest(found, &server.digest)) {
            findings.add("server-changed", (Some(line), Some("digest")), Some(key), || {
                let message = format!(
                    "server {} has another digest than the one pinned",
                    shown(&server.name)
                );
                (message, "run the server that was reviewed, or have the new one reviewed")
            });
        }
        let shows = event.tools.as_deref().unwrap_or_default();
        let found: BTreeSet<&str> = shows.iter().map(Cow::as_ref).collect();
        if found != *tools || found.len() != shows.len() {
            findings.add("server-tools-changed", (Some(line), Some("tools")), Some(key), || {
                let list = |words: Vec<&&str>| {
                    words.iter().take(5).map(|word| shown(word)).collect::<Vec<_>>().join(", ")
                };
                let new = list(found.difference(tools).collect());
                let gone = list(tools.difference(&found).collect());
                let message = format!(
                    "server {} has other tools than those frozen (new: {}; gone: {})",
                    shown(&server.name),
                    if new.is_empty() { "none" } else { &new },
                    if gone.is_empty() { "none" } else { &gone },
                );
                (message, "have the new list reviewed, and write it down")
            });
        }
    }

    fn key(&self) -> Option<Key> {
        Some(self.policy.tools.key)
    }
}
