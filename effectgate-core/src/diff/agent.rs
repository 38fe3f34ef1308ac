//! What only a manifest says: who it is, its servers, its limits, and how
//! strictly it is held.

use super::programs::short;
use super::roots::is_mounted_secret;
use super::{Change, Kind};
use crate::input::{Coverage, Mode};
use crate::policy::{Agent, Kind as Format, Limit, OnLoss, Policy, Reached, Server};

pub(super) fn identity(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    // An envelope's id may carry its version; an agent's is its name.
    if old.kind == Format::Manifest && new.kind == Format::Manifest && old.id != new.id {
        let act = format!("run as another service than {}", old.id);
        let change = Change::new(Kind::Service, "agent_id", None, act);
        found.push(change.between(Some(old.id.clone()), Some(new.id.clone())));
    }
}

pub(super) fn grants(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    let (before, after) = (old.agent.as_deref(), new.agent.as_deref());
    strictness(before, after, found);
    // An envelope asks none of what follows.
    let Some(before) = before else { return };
    limits(before, after, found);
    pins(before, after, found);
    match after {
        Some(after) => {
            servers(before, after, found);
            mounted_secrets(old, new, found);
        }
        None if !before.servers.is_empty() => {
            let act = "use MCP servers whatever their digests, since none is held";
            found.push(Change::new(Kind::Server, "mcp_servers", None, act));
        }
        None => {}
    }
}

/// What permits nothing, and should be known all the same.
pub(super) fn said(old: &Policy, new: &Policy) -> Vec<String> {
    let mut said = Vec::new();
    if old.kind != new.kind {
        let word = |kind| match kind {
            Format::Envelope => "an envelope",
            Format::Manifest => "a manifest",
        };
        said.push(format!(
            "{} is {} and {} is {}: where one asks and the other does not, everything counts as \
             permitted; absolute roots are not held against roots of the workspace.",
            old.file,
            word(old.kind),
            new.file,
            word(new.kind)
        ));
    }
    if old.id != new.id && (old.kind, new.kind) != (Format::Manifest, Format::Manifest) {
        said.push(format!("The policy {} is now called {}.", old.id, new.id));
    }
    let (Some(before), Some(after)) = (old.agent.as_deref(), new.agent.as_deref()) else {
        return said;
    };
    if before.owner != after.owner {
        said.push(format!(
            "{} is now owned by {}, before by {}.",
            new.id, after.owner, before.owner
        ));
    }
    for (name, version) in &after.pins {
        if let Some(before) = pin(before, name).filter(|before| *before != version) {
            said.push(format!("{name} is now pinned to {version}, before to {before}."));
        }
    }
    for now in &after.exceptions {
        let kept = before.exceptions.iter().find(|it| it.allows == now.allows);
        if kept.is_some_and(|then| then.reviewers != now.reviewers || then.reason != now.reason) {
            let who = now.reviewers.join(" and ");
            let what = &now.allows;
            said.push(format!("The exception for {what} is now by {who}: {}.", now.reason));
        }
    }
    said
}

/// How a violation, a loss and poor coverage are answered. Without a word in
/// the policy, the command line decides.
fn strictness(old: Option<&Agent>, new: Option<&Agent>, found: &mut Vec<Change>) {
    let mut add = |kind, key: &str, old: &str, new: &str, act: &str| {
        let change = Change::new(kind, key, None, act);
        found.push(change.between(Some(old.into()), Some(new.into())));
    };
    let violation = |agent: Option<&Agent>| agent.map(|it| it.on_violation).unwrap_or_default();
    let (had, has) = (violation(old), violation(new));
    if has < had {
        let act = match has {
            Mode::Observe => "go on after a violation",
            Mode::Kill | Mode::Enforce => "violate the policy once before it is stopped",
        };
        add(Kind::OnViolation, "on_violation", had.name(), has.name(), act);
    }
    let loss = |agent: Option<&Agent>| agent.map(|it| it.on_loss).unwrap_or_default();
    let (had, has) = (loss(old), loss(new));
    if has < had {
        let act = match has {
            OnLoss::Mark => "go on when records of it are lost",
            OnLoss::Kill | OnLoss::Deny => "do what nobody learns of before it is stopped",
        };
        add(Kind::OnLoss, "on_loss", had.name(), has.name(), act);
    }
    let coverage = |agent: Option<&Agent>| agent.and_then(|it| it.min_coverage);
    let (had, has) = (coverage(old), coverage(new));
    if has < had {
        let word = |coverage: Option<Coverage>| coverage.map_or("not said", Coverage::name);
        let act = match has {
            None => "run with whatever coverage the command line accepts",
            Some(_) => "run where only the arguments of its system calls are seen",
        };
        add(Kind::MinCoverage, "min_coverage", word(had), word(has), act);
    }
}

fn limits(old: &Agent, new: Option<&Agent>, found: &mut Vec<Change>) {
    let mut raised =
        |key: &str, old: &Limit, new: Option<&Limit>, act: fn(u64) -> String, unbounded: &str| {
            let before = Some(old.value.to_string());
            match new {
                None => {
                    found.push(Change::new(Kind::Limit, key, None, unbounded).between(before, None))
                }
                Some(new) if new.value > old.value => {
                    let change = Change::new(Kind::Limit, key, Some(new.key.line), act(new.value))
                        .instead(old.value.to_string());
                    found.push(change.between(before, Some(new.value.to_string())));
                }
                Some(_) => {}
            }
        };
    let new = new.map(|agent| &agent.limits);
    raised(
        "max_wall_clock_sec",
        &old.limits.max_wall_clock_sec,
        new.map(|new| &new.max_wall_clock_sec),
        |n| format!("run for {n} seconds"),
        "run for any time",
    );
    raised(
        "max_steps",
        &old.limits.max_steps,
        new.map(|new| &new.max_steps),
        |n| format!("take {n} steps"),
        "take any number of steps",
    );
    raised(
        "max_tool_calls_per_step",
        &old.limits.max_tool_calls_per_step,
        new.map(|new| &new.max_tool_calls_per_step),
        |n| format!("call {n} tools in a step"),
        "call any number of tools in a step",
    );
}

fn pin<'a>(agent: &'a Agent, name: &str) -> Option<&'a String> {
    agent.pins.iter().find(|(own, _)| own == name).map(|(_, version)| version)
}

fn pins(old: &Agent, new: Option<&Agent>, found: &mut Vec<Change>) {
    for (name, version) in &old.pins {
        if new.is_none_or(|new| pin(new, name).is_none()) {
            let act = format!("run with any version of {name}");
            let change = Change::new(Kind::Pin, name, None, act).instead(format!("{version} only"));
            found.push(change.between(Some(version.clone()), None));
        }
    }
}

fn servers(old: &Agent, new: &Agent, found: &mut Vec<Change>) {
    for server in &new.servers {
        let Server { name, reached, digest, line } = server;
        let before = old.servers.iter().find(|before| before.name == *name);
        let act = match before {
            None => format!("use the MCP server {name}, {}", how(reached)),
            Some(before) if before.digest != *digest => format!(
                "use another MCP server under the name {name}, with the digest {}, before {}",
                short(digest),
                short(&before.digest)
            ),
            Some(before) if before.reached != *reached => {
                format!(
                    "use the MCP server {name} {}, before {}",
                    how(reached),
                    how(&before.reached)
                )
            }
            Some(_) => continue,
        };
        let said = |server: &Server| format!("{} {}", server.digest, how(&server.reached));
        found.push(
            Change::new(Kind::Server, name, Some(*line), act)
                .between(before.map(said), Some(said(server))),
        );
    }
}

fn how(reached: &Reached) -> String {
    match reached {
        Reached::Command(words) => format!("started as `{}`", words.join(" ")),
        Reached::Url(url) => format!("at {url}"),
    }
}

fn mounted_secrets(old: &Policy, new: &Policy, found: &mut Vec<Change>) {
    let had = |path: &str| {
        let mut secrets = old.roots.entries.iter().filter(|root| is_mounted_secret(root));
        secrets.any(|root| root.path == path)
    };
    for root in new.roots.entries.iter().filter(|root| is_mounted_secret(root)) {
        let path = &root.path;
        if !had(path) {
            let act = format!("read the secret mounted at {path}");
            found.push(Change::new(Kind::MountedSecret, path, Some(root.key.line), act));
        }
    }
}
