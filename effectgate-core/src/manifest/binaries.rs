//! Which programs may run.

use std::collections::HashSet;

use crate::entries::{Bad, Seen};
use crate::fault::{Faults, quoted};
use crate::form::Fields;
use crate::policy::{Binary, Entry};
use crate::programs;
use crate::tree::Pos;

/// What lets shells and package managers be listed.
pub(super) struct Allowed<'a> {
    pub version: u8,
    /// The shells and forms that an exception lets through.
    pub exceptions: HashSet<&'a str>,
    pub dependency_change: bool,
}

pub(super) fn read(fields: Fields, allowed: &Allowed, faults: &mut Faults) -> Vec<Entry<Binary>> {
    let mut seen = Seen::default();
    let mut entries = Vec::new();
    for node in fields.list("binaries").unwrap_or_default() {
        let more = Fields::of(node);
        let Some((at, name)) = node.text().map(|text| (node.at, text)).or(more.text("name")) else {
            continue;
        };
        if let Err((rule, message, help)) = basename(name).and_then(|()| allowed.program(name)) {
            faults.add(at, rule, format!("binaries: {message}"), help);
        }
        seen.once(&name.to_owned(), name, "binaries", at, faults);
        let sha256 = more.text("sha256").and_then(|(at, text)| digest(at, text, "sha256", faults));
        let value = Binary { name: name.to_owned(), sha256 };
        entries.push(Entry { value, line: at.line, column: at.column });
    }
    entries
}

/// SHA-256 as a person gives it, with or without `sha256:` before it.
pub(super) fn digest(at: Pos, text: &str, key: &str, faults: &mut Faults) -> Option<String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    let digest = crate::pin::parse_digest(digits).ok();
    if digest.is_none() {
        let message = format!("{key}: {} is no SHA-256", quoted(text));
        faults.add(at, "digest", message, "write 64 hexadecimal digits, as sha256sum prints them");
    }
    digest
}

/// Whether a manifest can list a program of this name.
pub(crate) fn is_basename(name: &str) -> bool {
    basename(name).is_ok()
}

fn basename(name: &str) -> Result<(), Bad> {
    if name.contains(['/', '\\']) {
        let message = format!("{} is a path", quoted(name));
        let help = "write the basename; programs that the job builds belong below exec_roots";
        return Err(("binary-path", message, help));
    }
    if programs::is_loader(name) {
        let message = format!("{} is the loader: it runs any file that it can read", quoted(name));
        return Err(("binary-name", message, "list the programs themselves"));
    }
    let odd = |c: char| c.is_whitespace() || matches!(c, '*' | '?' | '$');
    if name.is_empty() || name == "." || name == ".." || name.contains(odd) {
        let message = format!("{} is no basename", quoted(name));
        return Err(("binary-name", message, "write one program's exact name, without arguments"));
    }
    Ok(())
}

impl Allowed<'_> {
    /// Whether this program may be listed at all.
    fn program(&self, name: &str) -> Result<(), Bad> {
        // Names on the systems that these shells come from have no case.
        if let Some(shell) = programs::shell_name(&name.to_lowercase())
            && !self.excepts(shell)
        {
            let message = format!("{} is a shell: it runs whatever it is told", quoted(name));
            return Err(("binary-shell", message, self.exception_help()));
        }
        if programs::is_package_manager(name) && !self.dependency_change {
            let message = format!("{} fetches code and runs it", quoted(name));
            let help = "remove it, or write `dependency_change: true` if this change is about dependencies";
            return Err(("binary-package-manager", message, help));
        }
        Ok(())
    }

    pub fn excepts(&self, what: &str) -> bool {
        self.exceptions.contains(what)
    }

    pub fn exception_help(&self) -> &'static str {
        if self.version == 1 {
            "list the programs it would run instead, or write `version: 2` and, with its name, \
             `exceptions: [{\"allows\": \"bash\"}]`; what else an exception needs is said then"
        } else {
            "list the programs it would run instead, or write, with its name, \
             `exceptions: [{\"allows\": \"bash\"}]`; what else an exception needs is said then"
        }
    }
}
