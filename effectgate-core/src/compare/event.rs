//! One event against the manifest, rule by rule.

use super::bounds::Counts;
use super::findings::{Findings, shown};
use super::place::Places;
use super::program::Programs;
use super::server::Servers;
use super::{Against, Ended, reach};
use crate::policy::Policy;
use crate::scan::Scan;
use crate::secret::is_secret_name;
use crate::trace::Event;

pub(super) struct Judge<'a> {
    policy: &'a Policy,
    places: Places<'a>,
    programs: Programs<'a>,
    servers: Servers<'a>,
    counts: Counts,
    secrets: Scan,
}

impl<'a> Judge<'a> {
    pub fn new(against: Against<'a>) -> Self {
        let Against { policy, workspace, today, resolve } = against;
        Judge {
            policy,
            places: Places::new(policy, workspace, resolve),
            programs: Programs::new(policy, workspace, today),
            servers: Servers::new(policy),
            counts: Counts::default(),
            secrets: Scan::default(),
        }
    }

    pub fn event(&mut self, line: u64, event: &Event<'_>, findings: &mut Findings) {
        self.counts.event(line, event, self.policy);
        if let Some(cwd) = &event.cwd {
            self.places.judge(line, cwd, findings);
        }
        self.programs.judge(line, event, &self.places, findings);
        if let Some(host) = &event.host {
            reach::judge(line, host, self.policy, findings);
        }
        self.keys(line, event, findings);
        self.servers.judge(line, event, findings);
        self.secrets.event(line, event, self.policy, &mut |place| {
            let Some(index) = place.index.filter(|_| place.field == "argv") else { return };
            let field = format!("argv[{index}]");
            findings.add("secret-in-arguments", (Some(line), Some(&field)), None, || {
                let message = format!("a secret stands in the arguments ({})", place.sign.name());
                (message, "hand it over in a file or by the server; and change the secret")
            });
        });
    }

    pub fn end(self, findings: &mut Findings) -> Ended {
        Ended {
            events: self.counts.extent.events,
            times: self.counts.extent.times,
            bounds: self.counts.end(self.policy, findings),
            secrets: self.secrets,
        }
    }

    fn keys(&self, line: u64, event: &Event<'_>, findings: &mut Findings) {
        let key = Some(self.policy.env.key);
        for (index, name) in event.env.iter().enumerate() {
            if self.policy.allows_env(name.as_bytes()) {
                continue;
            }
            let field = format!("env[{index}]");
            let at = (Some(line), Some(field.as_str()));
            if let Some((name, _)) = name.split_once('=') {
                findings.add("env-value", at, key, || {
                    let message = format!("{} is written with its value", shown(name));
                    (message, "write names of keys, never their values")
                });
            } else if is_secret_name(name.as_bytes()) {
                findings.add("env-secret", at, key, || {
                    let message = format!("{} speaks of a secret and is not listed", shown(name));
                    (message, "do without it, or have it reviewed and listed by its full name")
                });
            } else {
                findings.add("env-not-listed", at, key, || {
                    let message = format!("{} is not in the list", shown(name));
                    (message, "do without it, or have it reviewed and listed")
                });
            }
        }
    }
}

/// Nothing is to be seen: a finding, when there was something to do.
pub(super) fn nothing_seen(
    rule: &'static str,
    what: &str,
    policy: &Policy,
    findings: &mut Findings,
) {
    let binaries = policy.binaries.as_ref().filter(|list| !list.is_empty());
    let servers = policy.agent.as_ref().is_some_and(|agent| !agent.servers.is_empty());
    let key = binaries.map(|list| list.key);
    let tools = (servers || !policy.tools.is_empty()).then_some(policy.tools.key);
    if let Some(key) = key.or(tools) {
        findings.add(rule, (None, None), Some(key), || {
            let message = format!("{what}, but the manifest enables tools");
            (message, "record the run; without a record it does not count")
        });
    }
}
