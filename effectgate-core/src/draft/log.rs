//! A recorded log, read for what its run used. One record is held at a time.

use std::collections::HashMap;
use std::io::BufRead;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use super::used::{Reached, Used};
use crate::chain::Flaw;
use crate::escape::unescape;
use crate::host;
use crate::input::{Class, Event, FileObject, Input, Namespace, RootMatch, UnixNanos, What};
use crate::judge::Tables;
use crate::policy::{self, Key, List, Network, Policy, Roots};
use crate::record::read::{self, OpenRoot, Opening};
use crate::replay::{Lines, ReplayError, stage};
use crate::step::{Output, State, step};

/// Reads a log of any policy. Its chain is checked on the way.
///
/// # Errors
/// [`ReplayError`] when the log cannot be read or does not hold.
pub fn of_log(log: impl BufRead) -> Result<Used, ReplayError> {
    let (mut lines, _, opening) = Lines::open(log)?;
    let mut run = Run::new(opening);
    while let Some((seq, line)) = lines.next()? {
        run.take(seq + 1, &line.value).map_err(|what| lines.flawed(Flaw::Content(what)))?;
    }
    Ok(run.used)
}

/// The run judged again under a policy that allows nothing: what is then
/// outside is what has to be allowed.
struct Run {
    used: Used,
    state: State,
    tables: Tables,
    places: crate::replay::Places,
    logged: Vec<OpenRoot>,
    /// What addresses were resolved from.
    names: HashMap<IpAddr, String>,
    /// Records that the last input gave and the log has yet to show.
    due: usize,
    launched: Option<UnixNanos>,
}

impl Run {
    fn new(opening: Opening) -> Run {
        let logged = opening.roots.clone();
        let mut names = HashMap::new();
        for (written, addresses) in &opening.hosts {
            // Without the protocol, which a manifest can name.
            let text = written.as_deref().and_then(|text| text.split('/').next());
            let Some(Ok(host)) = text.map(host::parse) else { continue };
            names.extend(addresses.iter().map(|address| (*address, host.name.to_string())));
        }
        let (started, places) = stage(opening, nothing(), false);
        let (workspace, home) = (started.workspace.clone(), started.home.clone());
        let scratch = started.roots.iter().map(|root| root.path.clone()).collect();
        let mut state = State::new();
        // The opening record is the first that it gives.
        let due = step(&mut state, Input::Started(Box::new(started.clone()))).records.len() - 1;
        let used = Used { scratch, workspace, home, ..Used::default() };
        Run {
            used,
            state,
            tables: Tables::new(started),
            places,
            logged,
            names,
            due,
            launched: None,
        }
    }

    fn take(&mut self, at: u64, record: &Value) -> read::Read<()> {
        if self.due > 0 {
            self.due -= 1;
            return Ok(());
        }
        let input = read::input(record, &|file, root| self.places.find(file, root))?;
        // Once more with the roots of the log itself, which know where the
        // kernel found it.
        let seen = read::input(record, &|file, root| Ok(logged(&self.logged, file, root)))?;
        let output = step(&mut self.state, input.clone());
        self.due = output.records.len().saturating_sub(1);
        match (&input, &seen) {
            (Input::Launched { ts, .. }, _) => self.launched = Some(*ts),
            (Input::Finished { ts, .. }, _) => {
                self.used.nanos = ts.saturating_sub(self.launched.unwrap_or(*ts));
            }
            (Input::Event(event), Input::Event(seen)) if self.launched.is_some() => {
                self.event(at, event, &seen.what, &output, record);
            }
            _ => {}
        }
        self.keys(at, &output);
        Ok(())
    }

    fn event(&mut self, at: u64, event: &Event, seen: &What, output: &Output, record: &Value) {
        match (&event.what, seen) {
            (
                What::File { op, object, other, .. },
                What::File { object: own, other: own_other, .. },
            ) => {
                let pair = [(Some(object), Some(own)), (other.as_ref(), own_other.as_ref())];
                for (object, own) in pair {
                    let (Some(object), Some(own)) = (object, own) else { continue };
                    let root = match own.root {
                        RootMatch::Below(index) => self.logged.get(index as usize),
                        RootMatch::Outside | RootMatch::Unknown => None,
                    };
                    let root = root.map(|root| root.path.as_slice());
                    self.used.file(&self.tables, event, at, *op, object, root);
                }
            }
            (What::Exec(exec), _) => self.used.exec(event, at, exec),
            (What::Net { address, port, namespace: Namespace::Foreign, .. }, _) => {
                let peer = SocketAddr::new(*address, *port);
                self.used.foreign(at, &String::from_utf8_lossy(&event.comm), peer);
            }
            (What::Net { address, port, protocol, .. }, _) if violates(output, Class::Net) => {
                let known = record["object"]["name"].as_str().map(str::to_owned);
                let host = known
                    .or_else(|| self.names.get(address).cloned())
                    .unwrap_or_else(|| address.to_string());
                let peer = SocketAddr::new(*address, *port);
                let who = String::from_utf8_lossy(&event.comm).into_owned();
                let reached = Reached { host, port: *port, protocol: *protocol };
                self.used.reach(at, &who, reached, peer);
            }
            (What::Unix { peer, .. }, _) if violates(output, Class::Net) => {
                self.used.socket(at, &String::from_utf8_lossy(&event.comm), peer);
            }
            _ => {}
        }
    }

    /// Keys that are outside, in whichever record they are said.
    fn keys(&mut self, at: u64, output: &Output) {
        for violation in output.records.iter().flat_map(|line| &line.violations) {
            if violation.class != Class::Env {
                continue;
            }
            let who = violation.process.as_ref().map_or("a process", |it| it.comm.as_str());
            if let Some(name) = unescape(&violation.object) {
                self.used.key(at, who, name);
            }
        }
    }
}

fn violates(output: &Output, class: Class) -> bool {
    output.records.iter().flat_map(|line| &line.violations).any(|it| it.class == class)
}

/// The root that the record names, by its index in the opening record.
fn logged(roots: &[OpenRoot], file: &FileObject, named: Option<&[u8]>) -> RootMatch {
    if file.root == RootMatch::Unknown {
        return RootMatch::Unknown;
    }
    let index = named.and_then(|path| roots.iter().position(|root| root.path == path));
    index.and_then(|index| index.try_into().ok()).map_or(RootMatch::Outside, RootMatch::Below)
}

/// A policy that asks about everything that either format asks, and allows
/// nothing of it.
fn nothing() -> Policy {
    const KEY: Key = Key { name: "draft", line: 1 };
    Policy {
        kind: policy::Kind::Envelope,
        id: String::new(),
        sha256: String::new(),
        file: String::new(),
        roots: Roots { entries: Vec::new(), writes: KEY, reads: Some(KEY) },
        binaries: None,
        tools: List::new(KEY, Vec::new()),
        env: List::new(KEY, Vec::new()),
        hosts: List::new(KEY, Vec::new()),
        network: Network::Deny,
        network_key: KEY,
        unix_sockets: List::new(KEY, Vec::new()),
        agent: None,
    }
}
