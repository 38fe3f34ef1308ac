//! A draft in the form of an envelope. It holds no comments: what it follows
//! from is said beside it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::places::cut;
use super::used::{Reached, Used};
use super::{Because, Draft, Wanted, note};
use crate::entries::is_env_name;

impl Used {
    /// The smallest envelope under which this run passes.
    pub fn envelope(&self, wanted: &Wanted<'_>) -> Draft {
        let mut left_out = self.left_out();
        let mut roots = self.writes.smallest(&self.passing, |path| match wanted.root_depth {
            Some(depth) if crate::path::contains(wanted.workspace, path) => {
                cut(path, wanted.workspace, depth)
            }
            Some(depth) => cut(path, b"/", depth),
            None => path.to_vec(),
        });
        roots.retain(|(root, because)| {
            if root == "/" {
                left_out.push(format!("/: no root may be the whole file system ({because})"));
            }
            root != "/"
        });
        for (path, because) in &self.sockets {
            let path = crate::escape::escape(path);
            let why = "an envelope allows no socket of another program";
            left_out.push(format!("{path}: {why} ({because})"));
        }
        let env = self.keys(&mut left_out);
        let mut hosts: BTreeMap<String, Because> = BTreeMap::new();
        for (reached, because) in &self.hosts {
            note(&mut hosts, reached.host().to_string(), || because.clone());
        }
        let hosts: Vec<(String, Because)> = hosts.into_iter().collect();
        let network = if hosts.is_empty() { "deny" } else { "allowlist" };
        let lists = [
            ("allowed_roots", roots),
            ("allowed_tools", self.tools()),
            ("allowed_env", env),
            ("allowed_hosts", hosts),
        ];
        let mut text = format!(
            "{{\n  \"envelope_id\": {},\n",
            Value::from(wanted.id.or(wanted.trial.then_some("trial")).unwrap_or_default())
        );
        for (key, entries) in &lists {
            text.push_str(&format!("  \"{key}\": {},\n", array(entries)));
        }
        text.push_str(&format!("  \"network\": \"{network}\"\n}}\n"));
        let because = lists.iter().flat_map(|(key, entries)| {
            entries.iter().map(move |(entry, because)| format!("{key} {entry:?}: {because}"))
        });
        Draft { text, because: because.collect(), left_out }
    }

    /// By name, whosever they are.
    fn tools(&self) -> Vec<(String, Because)> {
        let mut all = self.tools.clone();
        for server in self.servers.values() {
            for tool in &server.tools {
                note(&mut all, tool.clone(), || server.because.clone());
            }
        }
        all.into_iter().collect()
    }

    /// What neither format can allow.
    pub(super) fn left_out(&self) -> Vec<String> {
        let path = |path: &[u8]| crate::escape::escape(path);
        self.beyond
            .iter()
            .map(|((what, why), because)| format!("{}: {why} ({because})", path(what)))
            .collect()
    }

    /// The keys that a policy can name.
    pub(super) fn keys(&self, left_out: &mut Vec<String>) -> Vec<(String, Because)> {
        let mut keys = Vec::new();
        for (name, because) in &self.env {
            let good = is_env_name(name);
            let name = crate::escape::escape(name);
            if good {
                keys.push((name, because.clone()));
            } else {
                left_out
                    .push(format!("{name}: no policy can name this environment key ({because})"));
            }
        }
        keys
    }
}

impl Reached {
    /// As an envelope writes it: no protocol. Port 0 stands for none, and an
    /// entry that allows it allows every port.
    pub(super) fn host(&self) -> crate::policy::Host {
        use crate::policy::{Host, HostName};
        let name = match self.host.parse() {
            Ok(address) => HostName::Address(address),
            Err(_) => HostName::Name(self.host.clone()),
        };
        Host { name, port: (self.port != 0).then_some(self.port), protocol: None }
    }
}

fn array(entries: &[(String, Because)]) -> String {
    if entries.is_empty() {
        return "[]".to_owned();
    }
    let lines: Vec<String> =
        entries.iter().map(|(entry, _)| format!("    {}", Value::from(entry.as_str()))).collect();
    format!("[\n{}\n  ]", lines.join(",\n"))
}
