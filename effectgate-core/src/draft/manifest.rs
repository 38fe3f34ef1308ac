//! A draft in the form of a manifest, version 2.

use std::collections::BTreeMap;

use super::places::{Places, cut, parent, writable};
use super::used::{Reached, Used};
use super::yaml::{Yaml, quoted};
use super::{Because, Draft, Wanted, note, profiles};
use crate::escape::escape;
use crate::input::Bytes;
use crate::manifest::{is_basename, is_socket};
use crate::path::{SHARED, contains};
use crate::policy::Protocol;
use crate::programs::{SEARCH_PATH, basename};
use crate::time::SECOND;
use crate::trace::Extent;

const HEAD: &str = "\
A draft from a recorded run: it lists what that run used, and nothing else.
Read every line and take out what the agent should not need. `effectgate check`
refuses it until its owner is named and every exception has two reviewers.";

/// What stands for what people write.
const TRIAL: &str = "trial";

impl Used {
    /// The smallest manifest under which this run passes.
    pub fn manifest(&self, wanted: &Wanted<'_>) -> Draft {
        let plan = Plan::new(self, wanted);
        let mut yaml = Yaml::default();
        yaml.comment(HEAD);
        yaml.plain("version", 2, None);
        let why = "a name that stays: another one is another service";
        let id = wanted.id.or(wanted.trial.then_some(TRIAL)).unwrap_or_default();
        yaml.text("agent_id", id, wanted.id.is_none().then_some(why));
        let why = "the people who answer for it";
        let owner = wanted.owner.or(wanted.trial.then_some(TRIAL)).unwrap_or_default();
        yaml.text("owner", owner, wanted.owner.is_none().then_some(why));
        for (key, entries, required) in [
            ("extends", &plan.extends, false),
            ("workspace_roots", &plan.workspace_roots, true),
            ("write_roots", &plan.write_roots, true),
            ("read_roots", &plan.read_roots, false),
            ("exec_roots", &plan.exec_roots, false),
        ] {
            if required || !entries.is_empty() {
                yaml.list(key, entries);
            }
        }
        yaml.list("binaries", &plan.binaries);
        self.exceptions(wanted.trial, &mut yaml);
        if let Some((name, because)) = self.package_managers.first_key_value() {
            let why = format!("{name} installs what others wrote ({because})");
            yaml.plain("dependency_change", true, Some(&why));
        }
        network(&plan.hosts, &mut yaml);
        if !plan.sockets.is_empty() {
            yaml.list("unix_sockets", &plan.sockets);
        }
        yaml.list("env_allow", &plan.env);
        self.limits(&mut yaml);
        self.servers(&mut yaml);
        for what in &plan.left_out {
            yaml.comment(&format!("not drafted: {}", super::plain(what)));
        }
        Draft { text: yaml.finish(), because: Vec::new(), left_out: plan.left_out }
    }

    fn exceptions(&self, trial: bool, yaml: &mut Yaml) {
        if self.shells.is_empty() {
            return;
        }
        let (reviewers, reason, expires) =
            if trial { (r#"["a", "b"]"#, TRIAL, "9999-12-31") } else { ("[]", "", "") };
        yaml.line(format_args!("exceptions:"));
        for (form, because) in &self.shells {
            yaml.line(format_args!("  - allows: {}  # {because}", quoted(form)));
            yaml.line(format_args!("    reviewers: {reviewers}  # two people, different ones"));
            yaml.line(format_args!("    reason: {}", quoted(reason)));
            yaml.line(format_args!("    expires: {}  # YYYY-MM-DD", quoted(expires)));
        }
    }

    fn limits(&self, yaml: &mut Yaml) {
        let seconds = self.nanos.div_ceil(SECOND).max(1);
        let limit = (2 * seconds).next_multiple_of(60);
        let (steps, why) = match self.extent {
            None => (1, "a log knows of no steps".to_owned()),
            Some(Extent { steps: 0, events, .. }) => {
                (2 * events, format!("the trace has {events} events and no steps; twice that"))
            }
            Some(Extent { steps, .. }) => (2 * steps, format!("it took {steps} steps; twice that")),
        };
        yaml.plain("max_steps", steps, Some(&why));
        let why = format!("it took {seconds} seconds; twice that, in whole minutes");
        yaml.plain("max_wall_clock_sec", limit, Some(&why));
        let (calls, why) = match self.extent {
            None => (1, "a log knows of no tool calls".to_owned()),
            Some(Extent { most_calls, .. }) => {
                ((2 * most_calls).max(1), format!("there were up to {most_calls}; twice that"))
            }
        };
        yaml.plain("max_tool_calls_per_step", calls, Some(&why));
    }

    fn servers(&self, yaml: &mut Yaml) {
        if self.servers.is_empty() {
            return yaml.list("mcp_servers", &[]);
        }
        let list = |words: &mut dyn Iterator<Item = &String>| {
            words.map(|word| quoted(word)).collect::<Vec<_>>().join(", ")
        };
        yaml.line(format_args!("mcp_servers:"));
        for (name, server) in &self.servers {
            yaml.line(format_args!("  - name: {}  # {}", quoted(name), server.because));
            let command = list(&mut server.command.iter());
            yaml.line(format_args!("    command: [{command}]  # or its url"));
            yaml.line(format_args!("    digest: {}", quoted(&server.digest)));
            yaml.line(format_args!("    tools: [{}]", list(&mut server.tools.iter())));
        }
    }
}

/// The entries of each list, as they are written, with their reasons.
#[derive(Default)]
struct Plan {
    extends: Vec<(String, String)>,
    workspace_roots: Vec<(String, String)>,
    write_roots: Vec<(String, String)>,
    read_roots: Vec<(String, String)>,
    exec_roots: Vec<(String, String)>,
    binaries: Vec<(String, String)>,
    hosts: Vec<(String, String)>,
    sockets: Vec<(String, String)>,
    env: Vec<(String, String)>,
    left_out: Vec<String>,
    /// Programs that lie off the system's path, with their directories.
    searched: Vec<(Bytes, Bytes, Because)>,
}

impl Plan {
    fn new(used: &Used, wanted: &Wanted<'_>) -> Plan {
        let mut plan = Plan { left_out: used.left_out(), ..Plan::default() };
        let inside = |path: &[u8]| contains(wanted.workspace, path);
        let around = |places: &Places| -> Vec<(String, Because)> {
            places.smallest(&used.passing, |path| match wanted.root_depth {
                Some(depth) => cut(path, wanted.workspace, depth),
                None => path.to_vec(),
            })
        };
        let smallest = |places: &Places| -> Vec<(String, String)> {
            around(places)
                .into_iter()
                .map(|(path, because)| (quoted(&relative(&path, wanted)), because.to_string()))
                .collect()
        };
        let writes = used.writes.only(inside);
        for (path, because) in
            used.writes.only(|path| !inside(path)).smallest(&used.passing, <[u8]>::to_vec)
        {
            let why = "a manifest allows writing below the workspace and in TMPDIR only";
            plan.left_out.push(format!("{path}: {why} ({because})"));
        }
        let mut execs = plan.programs(used, wanted);
        // Code that the job can write, as a program would be.
        let written = around(&writes);
        for (path, because) in &used.mapped {
            if used.scratch.iter().any(|own| contains(own, path)) {
                plan.nothing_runs_from_scratch(path, because);
            } else if written.iter().any(|(root, _)| contains(root, path)) {
                execs.want(parent(path), || because.clone());
            }
        }
        plan.write_roots = smallest(&writes);
        plan.exec_roots = smallest(&execs);
        let mut all = used.reads.only(inside).directories();
        all.extend(&used.listed.only(inside));
        all.extend(&writes);
        all.extend(&execs);
        plan.workspace_roots = smallest(&all);
        if plan.workspace_roots.is_empty() {
            let why = "the run used nothing of the workspace; where it began".to_owned();
            plan.workspace_roots.push((quoted("."), why));
        }
        plan.outside(used, wanted);
        for (tool, because) in &used.tools {
            let server = |server: &super::used::Server| server.tools.contains(tool);
            if !used.servers.values().any(server) {
                let why = "a manifest lists tools of MCP servers only";
                plan.left_out.push(format!("{tool}: {why} ({because})"));
            }
        }
        let keys = used.keys(&mut plan.left_out);
        plan.env =
            keys.into_iter().map(|(key, because)| (quoted(&key), because.to_string())).collect();
        // Protocols that a manifest cannot name make one entry.
        let mut hosts: BTreeMap<String, Because> = BTreeMap::new();
        for (reached, because) in &used.hosts {
            note(&mut hosts, entry(reached), || because.clone());
        }
        plan.hosts = hosts.into_iter().map(|(host, why)| (host, why.to_string())).collect();
        for (path, because) in &used.sockets {
            let text = String::from_utf8_lossy(path);
            if writable(path) && is_socket(&text) {
                plan.sockets.push((quoted(&text), because.to_string()));
            } else {
                let why = "no policy can write its name";
                plan.left_out.push(format!("{}: {why} ({because})", escape(path)));
            }
        }
        plan
    }

    /// What is read elsewhere: by profiles as far as they go, file by file beyond.
    fn outside(&mut self, used: &Used, wanted: &Wanted<'_>) {
        for ((path, why), because) in &used.beyond_reads {
            self.left_out.push(format!("{}: {why} ({because})", escape(path)));
        }
        let mut reads = used.reads.only(|path| !contains(wanted.workspace, path));
        reads.extend(&used.listed.only(|path| !contains(wanted.workspace, path)));
        // A program that is listed may be read as well.
        let reads = reads.only(|path| !used.programs.contains_key(path));
        let searched = std::mem::take(&mut self.searched);
        let dirs = searched.iter().map(|(_, dir, because)| (dir.as_slice(), because));
        let chosen = profiles::choose(wanted.profiles, &reads, dirs);
        for (path, dir, because) in &searched {
            if !chosen.iter().any(|(known, _)| known.searches(dir)) {
                let why = "it is neither on the system's path nor where a profile looks";
                self.left_out.push(format!("{}: {why} ({because})", escape(path)));
            }
        }
        for (path, because) in reads.files() {
            if chosen.iter().any(|(known, _)| known.covers(path)) {
                continue;
            }
            if let Some(why) = unnameable(used, path) {
                self.left_out.push(format!("{}: {why} ({because})", escape(path)));
            } else {
                let path = String::from_utf8_lossy(path);
                self.read_roots.push((quoted(&path), because.to_string()));
            }
        }
        self.extends = chosen
            .into_iter()
            .map(|(known, because)| (quoted(&known.name), because.to_string()))
            .collect();
    }

    fn nothing_runs_from_scratch(&mut self, path: &[u8], because: &Because) {
        let why = "nothing may run from TMPDIR";
        self.left_out.push(format!("{}: {why} ({because})", escape(path)));
    }

    /// Programs by name, and the places in the workspace that others lie in.
    fn programs(&mut self, used: &Used, wanted: &Wanted<'_>) -> Places {
        let mut places = Places::default();
        let mut names: BTreeMap<String, Because> = BTreeMap::new();
        for (path, because) in &used.programs {
            if used.scratch.iter().any(|own| contains(own, path)) {
                self.nothing_runs_from_scratch(path, because);
            } else if contains(wanted.workspace, path) {
                places.want(parent(path), || because.clone());
            } else if writable(path) && is_basename(&basename(path)) {
                // A trace may know no more than its name.
                let off =
                    |path: &[u8]| !SEARCH_PATH.iter().any(|dir| dir.as_bytes() == parent(path));
                if path.starts_with(b"/") && off(path) {
                    self.searched.push((path.clone(), parent(path).to_vec(), because.clone()));
                }
                note(&mut names, basename(path), || because.clone());
            } else {
                let why = "no policy can write its name";
                self.left_out.push(format!("{}: {why} ({because})", escape(path)));
            }
        }
        let entry = |(name, because): (String, Because)| (quoted(&name), because.to_string());
        self.binaries = names.into_iter().map(entry).collect();
        places
    }
}

/// As a manifest writes it; elsewhere than below the workspace, absolute.
fn relative(path: &str, wanted: &Wanted<'_>) -> String {
    let Some(rest) = path.as_bytes().strip_prefix(wanted.workspace) else { return path.to_owned() };
    let rest: Bytes = rest.strip_prefix(b"/").unwrap_or(rest).to_vec();
    if rest.is_empty() { ".".to_owned() } else { String::from_utf8_lossy(&rest).into_owned() }
}

/// Why a file outside the workspace cannot be a root for reading.
fn unnameable(used: &Used, path: &[u8]) -> Option<&'static str> {
    let process = path.strip_prefix(b"/proc/").and_then(|rest| rest.first());
    if !writable(path) {
        return Some("no policy can write its name");
    }
    if path == b"/" {
        return Some("no root may be the whole file system");
    }
    if SHARED.iter().any(|dir| contains(*dir, path)) {
        return Some("it lies in a directory that everybody shares");
    }
    if process.is_some_and(u8::is_ascii_digit) || used.passing.is_one(path) {
        return Some("it is not there before the run");
    }
    None
}

fn network(hosts: &[(String, String)], yaml: &mut Yaml) {
    yaml.line(format_args!("network:"));
    if hosts.is_empty() {
        return yaml.plain("  mode", "deny", None);
    }
    yaml.plain("  mode", "allowlist", None);
    yaml.list("  hosts", hosts);
}

/// `{host: "…", ports: [443], protocol: tcp}`
fn entry(reached: &Reached) -> String {
    let mut entry = format!("{{host: {}", quoted(&reached.host));
    if reached.port != 0 {
        entry.push_str(&format!(", ports: [{}]", reached.port));
    }
    let known = [Protocol::Tcp, Protocol::Udp];
    if let Some(protocol) = known.into_iter().find(|it| it.number() == reached.protocol) {
        entry.push_str(&format!(", protocol: {}", protocol.name()));
    }
    entry.push('}');
    entry
}
