//! MCP servers, frozen with their tools.

use crate::entries::{self, Seen};
use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::host::{Host, HostName};
use crate::policy::{Binary, Entry, Reached, Server, Tool};
use crate::programs;
use crate::tree::{Node, Pos};

use super::binaries::{Allowed, digest};
use super::network::Net;
use super::roots::{is_below, relative};

pub(super) struct Servers {
    pub servers: Vec<Server>,
    pub tools: Vec<Entry<Tool>>,
}

pub(super) fn read(fields: Fields, allowed: &Allowed, faults: &mut Faults) -> Servers {
    let mut seen = Seen::default();
    let mut found = Servers { servers: Vec::new(), tools: Vec::new() };
    for node in fields.list("mcp_servers").unwrap_or_default() {
        let server = Fields::of(node);
        let Some((at, name)) = server.text("name") else { continue };
        seen.once(&name.to_owned(), name, "mcp_servers", at, faults);
        found.tools.extend(tools(server, name, faults));
        check_form(server, allowed, faults);
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

/// A server is bound by the same programs and hosts as the rest of the job.
pub(super) fn check_reach(
    fields: Fields,
    servers: &Servers,
    binaries: &[Entry<Binary>],
    net: &Net,
    faults: &mut Faults,
) {
    let nodes = fields.list("mcp_servers").unwrap_or_default();
    for server in &servers.servers {
        let Some(place) = nodes.iter().find_map(|node| place(node, server)) else { continue };
        match &server.reached {
            Reached::Command(command) => {
                let program = command.first().map(String::as_str).unwrap_or_default();
                let name = program.rsplit('/').next().unwrap_or_default();
                let listed = binaries.iter().any(|entry| entry.value.name == name);
                if !name.is_empty() && !listed && !is_built(fields, program) {
                    let message = format!("command: {} is not among the binaries", quoted(name));
                    faults.add(place, "server-binary", message, "list it there too");
                }
            }
            Reached::Url(url) => {
                let Some(host) = url_host(url) else { continue };
                if !net.hosts.iter().any(|entry| lets_through(&entry.value, &host)) {
                    let message = format!("url: {host} is not among the hosts");
                    faults.add(place, "server-host", message, "list it in network.hosts too");
                }
            }
        }
    }
}

/// Whether a path leads below a root whose programs may run.
fn is_built(fields: Fields, program: &str) -> bool {
    let roots = fields.texts("exec_roots").unwrap_or_default();
    program.contains('/')
        && relative(program).is_ok_and(|path| {
            roots.iter().any(|(_, root)| relative(root).is_ok_and(|root| is_below(&path, &root)))
        })
}

/// Where the first word of this server's command, or its URL, stands.
fn place(node: &Node, server: &Server) -> Option<Pos> {
    let fields = Fields::of(node);
    if node.at.line != server.line || fields.text("name")?.1 != server.name {
        return None;
    }
    match &server.reached {
        Reached::Command(_) => Some(fields.texts("command")?.first()?.0),
        Reached::Url(_) => Some(fields.text("url")?.0),
    }
}

fn lets_through(entry: &Host, wanted: &Host) -> bool {
    const TCP: u32 = 6;
    entry.name == wanted.name && wanted.port.is_none_or(|port| entry.allows(port, TCP))
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
