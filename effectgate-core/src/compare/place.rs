//! Whether a working directory lies below a workspace root.

use std::collections::HashMap;

use super::findings::{Findings, shown};
use crate::path::{contains, normal};
use crate::policy::{Key, Policy, RootRule};

/// Directories whose answer is kept.
const KEPT: usize = 1024;
/// Of those that are no longer (bytes; `PATH_MAX`), for memory stays what it is.
const LONGEST: usize = 4096;

pub(super) struct Places<'a> {
    workspace: String,
    resolve: &'a mut dyn FnMut(&str) -> Option<String>,
    roots: Vec<String>,
    /// Where the roots lead, as far as known.
    real: Vec<String>,
    key: Option<Key>,
    known: HashMap<String, bool>,
}

impl<'a> Places<'a> {
    pub fn new(
        policy: &Policy,
        workspace: &str,
        resolve: &'a mut dyn FnMut(&str) -> Option<String>,
    ) -> Self {
        let workspace = normal("/", workspace);
        let is_root = |root: &&RootRule| root.key.name == "workspace_roots";
        let written = policy.roots.entries.iter().filter(is_root);
        let roots: Vec<String> =
            written.clone().map(|root| normal(&workspace, &root.path)).collect();
        let real = roots.iter().filter_map(|root| resolve(root)).collect();
        let key = written.map(|root| root.key).next();
        Places { workspace, resolve, roots, real, key, known: HashMap::new() }
    }

    /// Adds a finding when the directory lies outside.
    pub fn judge(&mut self, line: u64, cwd: &str, findings: &mut Findings) {
        let inside = match self.known.get(cwd) {
            Some(inside) => *inside,
            None => {
                let inside = self.inside(cwd);
                if self.known.len() < KEPT && cwd.len() <= LONGEST {
                    self.known.insert(cwd.to_owned(), inside);
                }
                inside
            }
        };
        if !inside {
            findings.add("cwd-outside", (Some(line), Some("cwd")), self.key, || {
                let message = format!("{} is below no workspace root", shown(cwd));
                (message, "work below a workspace root, or have the root reviewed and listed")
            });
        }
    }

    /// The path, from the root of the machine, without `.` and `..`.
    pub fn absolute(&self, cwd: Option<&str>, path: &str) -> String {
        let base = normal(&self.workspace, cwd.unwrap_or("."));
        normal(&base, path)
    }

    fn inside(&mut self, cwd: &str) -> bool {
        if is_foreign(cwd) {
            return false;
        }
        let below = |roots: &[String], path: &str| roots.iter().any(|root| contains(root, path));
        if !below(&self.roots, &normal(&self.workspace, cwd)) {
            return false;
        }
        // As written, for `link/..` is not where `link` is.
        let written =
            if cwd.starts_with('/') { cwd.to_owned() } else { format!("{}/{cwd}", self.workspace) };
        match (self.resolve)(&written) {
            Some(real) if !self.real.is_empty() => below(&self.real, &real),
            _ => true,
        }
    }
}

/// A home, a variable, a URL, or a path of another system: relative by its
/// form, and not meant so.
fn is_foreign(path: &str) -> bool {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    path.starts_with(['~', '$']) || path.contains('\\') || path.contains("://") || drive
}
