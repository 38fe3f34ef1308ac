//! The envelope's grammar.

use std::collections::HashMap;
use std::hash::Hash;

use crate::fault::{Fault, Faults, quoted};
use crate::form::Form;
use crate::host::{self, Host};
use crate::json::Pos;
use crate::policy::{
    Entry, Key, Kind, List, Named, Network, Policy, Rights, RootRule, Roots, Tool,
};

const KEYS: [&str; 6] =
    ["envelope_id", "allowed_roots", "allowed_tools", "allowed_env", "allowed_hosts", "network"];

/// Reads an envelope: one JSON object with exactly the six keys.
///
/// # Errors
/// Every fault of the file, in its order. A syntax fault hides those behind it.
pub fn parse(file_name: &str, bytes: &[u8]) -> Result<Policy, Vec<Fault>> {
    let mut form = Form::open(file_name, bytes, &KEYS)?;
    let id = form.text("envelope_id").map(|(_, id)| id);
    let roots = list(&mut form, "allowed_roots", root);
    let tools = list(&mut form, "allowed_tools", tool);
    let env = list(&mut form, "allowed_env", env_name);
    let hosts = list(&mut form, "allowed_hosts", host_entry);
    let network = network(&mut form);
    if let (Some(hosts), Some((at, mode))) = (&hosts, network) {
        check_network(mode, &hosts.1, at, &mut form.faults);
    }
    match (id, roots, tools, env, hosts, network) {
        (Some(id), Some(roots), Some(tools), Some(env), Some(hosts), Some((at, network)))
            if form.faults.is_empty() =>
        {
            Ok(Policy {
                kind: Kind::Envelope,
                id,
                sha256: crate::pin::digest(bytes),
                file: file_name.to_owned(),
                roots: written(roots),
                binaries: None,
                tools: listed("allowed_tools", tools),
                env: listed("allowed_env", env),
                hosts: listed("allowed_hosts", hosts),
                network,
                network_key: Key { name: "network", line: at.line },
                unix_sockets: List::new(Key { name: "network", line: at.line }, Vec::new()),
                agent: None,
            })
        }
        _ => Err(form.faults.into_vec()),
    }
}

/// A list's entries and the place of its key.
type Read<T> = (Pos, Vec<Entry<T>>);

fn listed<T: Named>(name: &'static str, (at, entries): Read<T>) -> List<T> {
    List::new(Key { name, line: at.line }, entries)
}

/// An envelope asks where a job writes, and of nothing else below its roots.
fn written((at, entries): Read<String>) -> Roots {
    const NAME: &str = "allowed_roots";
    let rule = |entry: Entry<String>| RootRule {
        path: entry.value,
        rights: Rights::WRITE,
        key: Key { name: NAME, line: entry.line },
        profile: false,
    };
    Roots {
        entries: entries.into_iter().map(rule).collect(),
        writes: Key { name: NAME, line: at.line },
        reads: None,
    }
}

/// What is wrong with an entry: rule, message, help.
type Bad = (&'static str, String, &'static str);

fn list<T: Clone + Eq + Hash>(
    form: &mut Form,
    key: &str,
    read: fn(&str) -> Result<T, Bad>,
) -> Option<Read<T>> {
    let (at, strings) = form.strings(key)?;
    let mut entries: Vec<Entry<T>> = Vec::with_capacity(strings.len());
    let mut first_lines: HashMap<T, u32> = HashMap::new();
    for (place, text) in strings {
        match read(&text) {
            Err((rule, message, help)) => {
                form.faults.add(place, rule, format!("{key}: {message}"), help);
            }
            Ok(value) => {
                if let Some(line) = first_lines.get(&value) {
                    let message =
                        format!("{key}: {} was already listed in line {line}", quoted(&text));
                    form.faults.add(place, "duplicate-entry", message, "remove one of the two");
                } else {
                    first_lines.insert(value.clone(), place.line);
                }
                entries.push(Entry { value, line: place.line, column: place.column });
            }
        }
    }
    Some((at, entries))
}

/// An absolute path without its empty and `.` components.
fn root(text: &str) -> Result<String, Bad> {
    if !text.starts_with('/') {
        let message = format!("{} is relative (roots are absolute paths)", quoted(text));
        return Err(("root-relative", message, "write it from /"));
    }
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        let message = format!("{} climbs with `..`", quoted(text));
        return Err(("root-climbs", message, "write the directory that is meant"));
    }
    if parts.is_empty() {
        let message = format!("{} is the whole file system", quoted(text));
        return Err(("root-is-slash", message, "list the directories the job needs"));
    }
    Ok(format!("/{}", parts.join("/")))
}

fn tool(text: &str) -> Result<Tool, Bad> {
    if text.is_empty() || text.trim() != text {
        let message = format!("{} is empty or has blanks at its ends", quoted(text));
        return Err(("tool-name", message, "write the tool's exact name"));
    }
    Ok(Tool { server: None, name: text.to_owned() })
}

fn env_name(text: &str) -> Result<String, Bad> {
    let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit());
    if !good {
        let message = format!("{} is no environment key", quoted(text));
        let help = "write the exact name: letters, digits, `_`, no digit first; no value, no `*`";
        return Err(("env-name", message, help));
    }
    Ok(text.to_owned())
}

fn host_entry(text: &str) -> Result<Host, Bad> {
    host::parse(text).map_err(|bad| (bad.rule, bad.message, bad.help))
}

fn network(form: &mut Form) -> Option<(Pos, Network)> {
    let (at, node) = form.take("network")?;
    let text = form.string("network", &node)?;
    match text.as_str() {
        "deny" => Some((at, Network::Deny)),
        "allowlist" => Some((at, Network::Allowlist)),
        _ => {
            let message = format!("network: {} is no mode", quoted(&text));
            let help = "write \"deny\", or \"allowlist\" with allowed_hosts";
            form.faults.add(node.at, "network-mode", message, help);
            None
        }
    }
}

fn check_network(mode: Network, hosts: &[Entry<Host>], at: Pos, faults: &mut Faults) {
    match (mode, hosts.is_empty()) {
        (Network::Deny, false) => faults.add(
            at,
            "network-deny-with-hosts",
            "network is \"deny\", but allowed_hosts lists hosts",
            "empty allowed_hosts, or write \"allowlist\"",
        ),
        (Network::Allowlist, true) => faults.add(
            at,
            "network-allowlist-without-hosts",
            "network is \"allowlist\", but allowed_hosts is empty",
            "list the hosts, or write \"deny\"",
        ),
        (Network::Deny, true) | (Network::Allowlist, false) => {}
    }
}
