//! MCP servers, frozen with their tools.

use std::collections::{HashMap, HashSet};

use crate::entries::{self, Seen};
use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::host::{Host, HostName, Protocol};
use crate::policy::{Binary, Entry, Reached, Server, Tool};
use crate::programs;

use super::binaries::{Allowed, digest};
use super::roots::Below;

pub(super) struct Servers {
    pub servers: Vec<Server>,
    pub tools: Vec<Entry<Tool>>,
}

pub(super) fn read(
    fields: Fields,
    allowed: &Allowed,
    reach: &Reach,
    faults: &mut Faults,
) -> Servers {
    let mut seen = Seen::default();
    let mut found = Servers { servers: Vec::new(), tools: Vec::new() };
    for node in fields.list("mcp_servers").unwrap_or_default() {
        let server = Fields::of(node);
        let Some((at, name)) = server.text("name") else { continue };
        seen.once(&name.to_owned(), name, "mcp_servers", at, faults);
        found.tools.extend(tools(server, name, faults));
        check_form(server, allowed, faults);
        reach.check(server, faults);
        let digest = server
            .text("digest")
            .and_then(|(at, text)| digest(at, text, "digest", faults))
            .unwrap_or_default();
        if let Some(reached) = reached(server, faults) {
            let line = node.at.line;
            found.servers.push(Server { name: name.to_owned(), reached, digest, line });
        }
    }
    found
}

fn tools(server: Fields, name: &str, faults: &mut Faults) -> Vec<Entry<Tool>> {
    if let (Some(at), Some([])) = (server.at("tools"), server.list("tools")) {
        let message = format!("tools: {} has none", quoted(name));
        faults.add(at, "server-tools", message, "list its tools, or remove the server");
    }
    entries::read(server, "tools", faults, |text| {
        let tool = entries::tool_name(text)?;
        Ok(Tool { server: Some(name.to_owned()), name: tool })
    })
}

fn reached(server: Fields, faults: &mut Faults) -> Option<Reached> {
    if let Some((at, url)) = server.text("url") {
        if url_host(url).is_none() {
            let message = format!("url: {} is no address of a server", quoted(url));
            let help = "write it as https://host/path, without user names";
            faults.add(at, "server-url", message, help);
        }
        return Some(Reached::Url(url.to_owned()));
    }
    let command = server.texts("command")?;
    if command.first().is_none_or(|(_, program)| program.trim().is_empty()) {
        let at = server.at("command")?;
        let help = "write the program and its arguments: [\"docs-server\", \"--stdio\"]";
        faults.add(at, "server-command", "command: no program is named", help);
    }
    Some(Reached::Command(command.into_iter().map(|(_, word)| word.to_owned()).collect()))
}

fn check_form(server: Fields, allowed: &Allowed, faults: &mut Faults) {
    let Some(command) = server.texts("command") else { return };
    let Some((at, _)) = command.first() else { return };
    let words: Vec<&str> = command.iter().map(|(_, word)| *word).collect();
    if let Some(form) = words.first().and_then(|program| programs::inline_form(program, &words))
        && !allowed.excepts(form)
    {
        let message = format!("command: `{form}` uses an interpreter as a shell");
        faults.add(*at, "server-form", message, allowed.exception_help());
    }
}

/// What else of the file says whether a server may be reached: it is bound by
/// the same programs and hosts as the rest of the job.
pub(super) struct Reach<'a> {
    binaries: HashSet<&'a str>,
    hosts: HashMap<&'a HostName, Vec<&'a Host>>,
    exec: &'a Below,
}

impl<'a> Reach<'a> {
    pub fn of(binaries: &'a [Entry<Binary>], hosts: &'a [Entry<Host>], exec: &'a Below) -> Self {
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        for entry in hosts {
            by_name.entry(&entry.value.name).or_default().push(&entry.value);
        }
        let binaries = binaries.iter().map(|entry| entry.value.name.as_str()).collect();
        Reach { binaries, hosts: by_name, exec }
    }

    fn check(&self, server: Fields, faults: &mut Faults) {
        if let Some((at, url)) = server.text("url")
            && let Some(host) = url_host(url)
            && !self.allows(&host)
        {
            let message = format!("url: {host} is not among the hosts");
            faults.add(at, "server-host", message, "list it in network.hosts too");
        }
        if let Some((at, program)) =
            server.texts("command").and_then(|words| words.first().copied())
            && !self.runs(program)
        {
            let message = format!("command: {} is not among the binaries", quoted(program));
            faults.add(at, "server-binary", message, "list its basename there too");
        }
    }

    fn allows(&self, wanted: &Host) -> bool {
        let entries = self.hosts.get(&wanted.name).map(Vec::as_slice).unwrap_or_default();
        let tcp = Protocol::Tcp.number();
        entries.iter().any(|entry| wanted.port.is_none_or(|port| entry.allows(port, tcp)))
    }

    /// A path may also lead below a root whose programs may run. That a
    /// program is named at all is asked elsewhere.
    fn runs(&self, program: &str) -> bool {
        let name = program.rsplit('/').next().unwrap_or_default();
        name.trim().is_empty()
            || self.binaries.contains(name)
            || (program.contains('/') && self.exec.holds(program))
    }
}

/// The host and the port of a URL.
fn url_host(url: &str) -> Option<Host> {
    let (scheme, rest) = url.split_once("://")?;
    let port = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = crate::host::parse(authority).ok()?;
    let bare = matches!(host.name, HostName::Address(std::net::IpAddr::V6(_)))
        && !authority.starts_with('[');
    (!bare).then(|| Host { port: host.port.or(Some(port)), ..host })
}
