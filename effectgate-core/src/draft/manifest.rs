//! A draft in the form of a manifest, version 2.

use std::collections::BTreeMap;

use super::places::{Places, contains, cut, parent, writable};
use super::used::{Reached, Used};
use super::yaml::{Yaml, quoted};
use super::{Because, Draft, Wanted, note};
use crate::escape::escape;
use crate::input::Bytes;
use crate::policy::Protocol;
use crate::programs::basename;

const HEAD: &str = "\
A draft from a recorded run: it lists what that run used, and nothing else.
Read every line and take out what the agent should not need. `effectgate check`
refuses it until its owner is named and every exception has two reviewers.";

/// A day, in seconds: nobody knows how long a run without records took.
const SECOND: u64 = 1_000_000_000;

impl Used {
    /// The smallest manifest under which this run passes.
    pub fn manifest(&self, wanted: &Wanted<'_>) -> Draft {
        let plan = Plan::new(self, wanted);
        let mut yaml = Yaml::default();
        yaml.comment(HEAD);
        yaml.plain("version", 2, None);
        let why = "a name that stays: another one is another service";
        yaml.text("agent_id", wanted.id.unwrap_or_default(), wanted.id.is_none().then_some(why));
        let why = "the people who answer for it";
        yaml.text("owner", wanted.owner.unwrap_or_default(), wanted.owner.is_none().then_some(why));
        yaml.list("workspace_roots", &plan.workspace_roots);
        yaml.list("write_roots", &plan.write_roots);
        for (key, entries) in [("read_roots", &plan.read_roots), ("exec_roots", &plan.exec_roots)] {
            if !entries.is_empty() {
                yaml.list(key, entries);
            }
        }
        yaml.list("binaries", &plan.binaries);
        self.exceptions(&mut yaml);
        if let Some((name, because)) = self.package_managers.first_key_value() {
            let why = format!("{name} installs what others wrote ({because})");
            yaml.plain("dependency_change", true, Some(&why));
        }
        network(&plan.hosts, &mut yaml);
        yaml.list("env_allow", &plan.env);
        self.limits(&mut yaml);
        yaml.list("mcp_servers", &[]);
        for what in &plan.left_out {
            yaml.comment(&format!("not drafted: {}", what.replace(char::is_control, "\u{fffd}")));
        }
        Draft { text: yaml.finish(), because: Vec::new(), left_out: plan.left_out }
    }

    fn exceptions(&self, yaml: &mut Yaml) {
        if self.shells.is_empty() {
            return;
        }
        yaml.line(format_args!("exceptions:"));
        for (form, because) in &self.shells {
            yaml.line(format_args!("  - allows: {}  # {because}", quoted(form)));
            yaml.line(format_args!("    reviewers: []  # two people, different ones"));
            yaml.line(format_args!("    reason: \"\""));
            yaml.line(format_args!("    expires: \"\"  # YYYY-MM-DD"));
        }
    }

    fn limits(&self, yaml: &mut Yaml) {
        let seconds = self.nanos.div_ceil(SECOND).max(1);
        let limit = (2 * seconds).next_multiple_of(60);
        yaml.plain("max_steps", 1, Some("the log knows of no steps"));
        let why = format!("it took {seconds} seconds; twice that, in whole minutes");
        yaml.plain("max_wall_clock_sec", limit, Some(&why));
        yaml.plain("max_tool_calls_per_step", 1, Some("the log knows of no tool calls"));
    }
}

/// The entries of each list, as they are written, with their reasons.
#[derive(Default)]
struct Plan {
    workspace_roots: Vec<(String, String)>,
    write_roots: Vec<(String, String)>,
    read_roots: Vec<(String, String)>,
    exec_roots: Vec<(String, String)>,
    binaries: Vec<(String, String)>,
    hosts: Vec<(String, String)>,
    env: Vec<(String, String)>,
    left_out: Vec<String>,
}

impl Plan {
    fn new(used: &Used, wanted: &Wanted<'_>) -> Plan {
        let mut plan = Plan { left_out: used.left_out(), ..Plan::default() };
        let inside = |path: &[u8]| contains(wanted.workspace, path);
        let smallest = |places: &Places| -> Vec<(String, String)> {
            let all = places.smallest(&used.passing, |path| match wanted.root_depth {
                Some(depth) => cut(path, wanted.workspace, depth),
                None => path.to_vec(),
            });
            all.into_iter()
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
        let execs = plan.programs(used, wanted);
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
        let mut outside = used.reads.only(|path| !inside(path));
        outside.extend(&used.listed.only(|path| !inside(path)));
        for (path, because) in outside.files() {
            if !used.passing.is_one(path) && writable(path) {
                plan.read_roots.push((quoted(&escape(path)), because.to_string()));
            } else {
                plan.left_out
                    .push(format!("{}: cannot be named beforehand ({because})", escape(path)));
            }
        }
        let keys = used.keys(&mut plan.left_out);
        plan.env =
            keys.into_iter().map(|(key, because)| (quoted(&key), because.to_string())).collect();
        plan.hosts =
            used.hosts.iter().map(|(host, because)| (entry(host), because.to_string())).collect();
        plan
    }

    /// Programs by name, and the places in the workspace that others lie in.
    fn programs(&mut self, used: &Used, wanted: &Wanted<'_>) -> Places {
        let mut places = Places::default();
        let mut names: BTreeMap<String, Because> = BTreeMap::new();
        for (path, because) in &used.programs {
            if used.scratch.iter().any(|own| contains(own, path)) {
                let why = "nothing may run from TMPDIR";
                self.left_out.push(format!("{}: {why} ({because})", escape(path)));
            } else if contains(wanted.workspace, path) {
                places.want(parent(path), || because.clone());
            } else if writable(path) {
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
