//! Where the agent may read, write and run.

use std::collections::HashSet;

use crate::entries::{self, Bad};
use crate::envelope::absolute;
use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::path::{SHARED, contains};
use crate::policy::{Entry, Key, Rights, RootRule, Roots};
use crate::{profile, secret};

pub(super) struct Read {
    pub roots: Roots,
    /// The exec roots alone.
    pub exec: Below,
}

pub(super) fn read(fields: Fields, faults: &mut Faults) -> Read {
    let workspace = entries::read(fields, "workspace_roots", faults, relative);
    let write = entries::read(fields, "write_roots", faults, relative);
    let reads = entries::read(fields, "read_roots", faults, readable);
    let exec = entries::read(fields, "exec_roots", faults, relative);
    let secrets = entries::read(fields, "mounted_secrets", faults, secret_file);
    check_below(fields, "write_roots", &workspace, faults);
    check_below(fields, "exec_roots", &workspace, faults);
    let below = Below::of(&exec);
    check_lists(fields, faults);
    check_dot(fields, faults);
    let listed =
        ["read_roots", "workspace_roots"].into_iter().find(|key| fields.get(key).is_some());
    let reads_key = listed.unwrap_or("workspace_roots");
    let mut roots = Vec::new();
    for (name, rights, entries) in [
        ("workspace_roots", Rights::READ, workspace),
        ("write_roots", Rights::WRITE, write),
        ("read_roots", Rights::READ, reads),
        ("exec_roots", Rights::EXEC, exec),
        ("mounted_secrets", Rights::READ, secrets),
    ] {
        roots.extend(entries.into_iter().map(|entry| RootRule {
            path: entry.value,
            rights,
            key: Key { name, line: entry.line },
            profile: false,
        }));
    }
    roots.extend(profiles(fields, faults));
    Read {
        roots: Roots {
            entries: roots,
            writes: Key { name: "write_roots", line: entries::line(fields, "write_roots") },
            reads: Some(Key { name: reads_key, line: entries::line(fields, reads_key) }),
        },
        exec: below,
    }
}

/// What the profiles add; `base-linux` where the file says nothing of reads.
fn profiles(fields: Fields, faults: &mut Faults) -> Vec<RootRule> {
    let said = fields.texts("extends").unwrap_or_default();
    let implied = said.is_empty() && fields.get("read_roots").is_none();
    let line = entries::line(fields, "version");
    let named = said.into_iter().map(|(at, name)| (name, at.line));
    let named = named.chain(implied.then_some(("base-linux", line)));
    profile::roots(named, faults)
}

/// A path of the repository in normal form; `.` is the workspace itself.
fn relative(text: &str) -> Result<String, Bad> {
    let bad = |rule, what: &str, help| Err((rule, format!("{} {what}", quoted(text)), help));
    let mut letters = text.chars();
    let drive =
        letters.next().is_some_and(|c| c.is_ascii_alphabetic()) && letters.next() == Some(':');
    if text.is_empty() {
        return bad("root-empty", "names nothing", "write `.` if the whole workspace is meant");
    }
    if text.starts_with('~') || text.contains(['$', '%']) {
        let help = "write a path of the repository: homes and variables differ between machines";
        return bad(
            "root-variable",
            "has a `~`, a `$` or a `%`, which stand for something else",
            help,
        );
    }
    if drive {
        return bad("root-drive", "begins with a drive letter", "write a path of the repository");
    }
    if text.contains('\\') {
        return bad("root-backslash", "has a backslash", "separate directories by `/`");
    }
    if is_temporary(text) {
        let help = "leave it out: a job has a temporary directory of its own, in TMPDIR";
        return bad("root-temporary", "is a directory that everybody shares", help);
    }
    if text.starts_with('/') {
        let help = "write a path of the repository; what else is read belongs in read_roots";
        return bad("root-absolute", "is absolute", help);
    }
    if text.contains(['*', '?']) {
        return bad(
            "root-glob",
            "is a pattern",
            "write the directory itself; all below it is meant",
        );
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part != ".." {
            parts.push(part);
        } else if parts.pop().is_none() {
            return bad("root-climbs", "climbs out with `..`", "write a path of the repository");
        }
    }
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

/// Whether an absolute path is or lies below what every user can write to.
fn is_temporary(path: &str) -> bool {
    path.starts_with('/')
        && absolute(path).is_ok_and(|path| SHARED.iter().any(|root| contains(*root, &path)))
}

/// A path of the repository, or an absolute one where no credentials are.
fn readable(text: &str) -> Result<String, Bad> {
    if !text.starts_with('/') || is_temporary(text) {
        return relative(text);
    }
    let path = absolute(text)?;
    if secret::is_home(&path) {
        let message = format!("{} is a home", quoted(text));
        return Err(("read-root-home", message, "list the directory in it that is needed"));
    }
    if secret::is_credential_path(path.as_bytes())
        || secret::holds_credentials(&path)
        || secret::is_of_another_process(&path)
    {
        let message = format!("{} holds credentials", quoted(text));
        let help = "list the files that are needed; secrets for the job belong in mounted_secrets";
        return Err(("read-root-credentials", message, help));
    }
    Ok(path)
}

fn secret_file(text: &str) -> Result<String, Bad> {
    let path = if text.starts_with('/') { absolute(text)? } else { relative(text)? };
    if path == "."
        || text.ends_with('/')
        || secret::is_home(&path)
        || secret::holds_credentials(&path)
    {
        let message = format!("{} is a directory", quoted(text));
        return Err(("secret-file", message, "list every file by its path"));
    }
    if ["/proc/", "/sys/"].iter().any(|top| path.starts_with(top)) {
        let message = format!("{} is made up by the kernel", quoted(text));
        return Err(("secret-file", message, "list the file in which the secret is mounted"));
    }
    Ok(path)
}

pub(super) fn socket(text: &str) -> Result<String, Bad> {
    absolute(text).ok().filter(|_| !text.ends_with('/')).ok_or_else(|| {
        let message = format!("{} is no absolute path of a socket", quoted(text));
        ("socket-path", message, "write its whole path from /, without `..`")
    })
}

/// Whether a manifest can list a socket of this path, in these words.
pub(crate) fn is_socket(path: &str) -> bool {
    socket(path).is_ok_and(|normal| normal == path)
}

/// Roots in normal form, to be asked about paths.
pub(super) struct Below {
    roots: HashSet<String>,
}

impl Below {
    fn of(roots: &[Entry<String>]) -> Self {
        Below { roots: roots.iter().map(|root| root.value.clone()).collect() }
    }

    /// Whether a path of the repository is one of the roots or lies below one.
    pub fn holds(&self, path: &str) -> bool {
        let Ok(path) = relative(path) else { return false };
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        [".", &path].into_iter().chain(above).any(|root| self.roots.contains(root))
    }
}

fn check_below(fields: Fields, key: &str, workspace: &[Entry<String>], faults: &mut Faults) {
    // A workspace root that is wrong itself says nothing about what lies below it.
    let listed = fields.list("workspace_roots").map_or(0, <[_]>::len);
    if listed == 0 || listed > workspace.len() {
        return;
    }
    let below = Below::of(workspace);
    for (at, text) in fields.texts(key).unwrap_or_default() {
        if relative(text).is_ok() && !below.holds(text) {
            let message = format!("{key}: {} lies below no workspace root", quoted(text));
            let help = "list the directory, or one above it, in workspace_roots";
            faults.add(at, "root-outside-workspace", message, help);
        }
    }
}

/// Lists that say nothing by being empty.
fn check_lists(fields: Fields, faults: &mut Faults) {
    let empty = |key| fields.list(key).is_some_and(<[_]>::is_empty);
    for key in ["workspace_roots", "read_roots", "exec_roots", "extends"] {
        if let (Some(at), true) = (fields.at(key), empty(key)) {
            let help = if key == "workspace_roots" {
                "list a directory of the repository, as in [\".\"]"
            } else {
                "list what is meant, or leave the key out"
            };
            faults.add(at, "empty-list", format!("{key} is empty"), help);
        }
    }
}

/// The whole workspace and secrets in it do not go together: whatever the
/// agent writes or sends may come from either.
fn check_dot(fields: Fields, faults: &mut Faults) {
    if fields.list("mounted_secrets").is_none_or(<[_]>::is_empty) {
        return;
    }
    for key in ["workspace_roots", "write_roots"] {
        for (at, text) in fields.texts(key).unwrap_or_default() {
            if relative(text).is_ok_and(|path| path == ".") {
                let message = format!("{key}: the whole workspace, while secrets are mounted");
                faults.add(
                    at,
                    "root-dot-with-secrets",
                    message,
                    "list the directories that are needed",
                );
            }
        }
    }
}
