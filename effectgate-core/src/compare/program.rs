//! Whether a program may run, and what it was told to run.

use std::borrow::Cow;
use std::collections::HashMap;

use super::findings::{Findings, shown};
use super::place::Places;
use crate::path::{contains, normal};
use crate::policy::{Key, Policy};
use crate::programs::{self, Told};
use crate::trace::Event;

/// Programs whose answer is kept.
const KEPT: usize = 1024;
/// Of those whose names are no longer (bytes), for memory stays what it is.
const LONGEST: usize = 4096;

pub(super) struct Programs<'a> {
    policy: &'a Policy,
    today: &'a str,
    /// Directories (in normal form) whose files may run whoever wrote them.
    exec_roots: Vec<String>,
    /// Directories in which listed programs are looked up.
    search: Vec<String>,
    /// By a program's name: nothing has to be asked about its arguments.
    harmless: HashMap<String, bool>,
}

impl<'a> Programs<'a> {
    pub fn new(policy: &'a Policy, workspace: &str, today: &'a str) -> Self {
        let workspace = normal("/", workspace);
        let roots = |wanted: fn(&crate::policy::Rights) -> bool| {
            let entries = policy.roots.entries.iter().filter(move |root| wanted(&root.rights));
            entries.map(|root| normal(&workspace, &root.path)).collect()
        };
        Programs {
            policy,
            today,
            exec_roots: roots(|rights| rights.exec),
            search: roots(|rights| rights.search),
            harmless: HashMap::new(),
        }
    }

    pub fn judge(
        &mut self,
        line: u64,
        event: &Event<'_>,
        places: &Places<'_>,
        findings: &mut Findings,
    ) {
        match &event.binary {
            Some(binary) => {
                let cwd = event.cwd.as_deref();
                let digest = event.digest.as_deref();
                self.listed(line, (cwd, binary, digest), places, findings);
                if !self.is_harmless(binary) || !self.is_own(binary, &event.argv) {
                    let told = Told::of(binary, &event.argv);
                    self.told(line, &told, Some((cwd, places)), findings);
                }
            }
            // A tool that runs commands is handed them like any other.
            None => self.handed(line, &event.argv, findings),
        }
    }

    fn listed(
        &self,
        line: u64,
        (cwd, binary, digest): (Option<&str>, &str, Option<&str>),
        places: &Places<'_>,
        findings: &mut Findings,
    ) {
        let Some(list) = &self.policy.binaries else { return };
        let at = (Some(line), Some("binary"));
        let name = match binary.rsplit_once('/') {
            None => binary,
            Some((_, name)) => {
                let path = places.absolute(cwd, binary);
                if self.exec_roots.iter().any(|root| contains(root, &path)) {
                    return;
                }
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                let known = programs::SEARCH_PATH.contains(&directory)
                    || self.search.iter().any(|root| contains(root, directory));
                if !known {
                    findings.add("binary-elsewhere", at, Some(list.key), || {
                        let message = format!(
                            "{} is neither where the system keeps programs nor below an exec root",
                            shown(binary)
                        );
                        (message, "run the system's program, or list its directory in exec_roots")
                    });
                    return;
                }
                name
            }
        };
        let Some(entry) = self.policy.lists_binary(name) else {
            findings.add("binary-not-listed", at, Some(list.key), || {
                let message = format!("{} is not in the list", shown(name));
                (message, "do without it, or have it reviewed and listed")
            });
            return;
        };
        let wanted = entry.value.sha256.as_deref();
        if let (Some(wanted), Some(found)) = (wanted, digest)
            && !is_digest(found, wanted)
        {
            let key = Key { line: entry.line, ..list.key };
            findings.add("binary-digest", (Some(line), Some("digest")), Some(key), || {
                let message = format!("{} is another file than the one listed", shown(name));
                (message, "run the program that was reviewed, or have the new one reviewed")
            });
        }
    }

    /// Whether the arguments begin with the program's own name.
    fn is_own(&self, binary: &str, argv: &[Cow<'_, str>]) -> bool {
        argv.first().is_none_or(|first| first == binary)
    }

    fn is_harmless(&mut self, binary: &str) -> bool {
        if let Some(known) = self.harmless.get(binary) {
            return *known;
        }
        let name = programs::basename(binary.as_bytes());
        let harmless = programs::shell_name(&name).is_none()
            && !programs::is_package_manager(&name)
            && !programs::is_interpreter(&name)
            && !programs::is_wrapper(&name);
        if self.harmless.len() < KEPT && binary.len() <= LONGEST {
            self.harmless.insert(binary.to_owned(), harmless);
        }
        harmless
    }

    /// What each program is, by its name and arguments. With `at`, those that
    /// another one runs must be listed as well.
    fn told(
        &self,
        line: u64,
        told: &Told<'_>,
        at: Option<(Option<&str>, &Places<'_>)>,
        findings: &mut Findings,
    ) {
        for (index, program) in told.programs.iter().enumerate() {
            self.told_one(line, program, findings);
            if let (Some((cwd, places)), Some(inner)) = (at, program.first().filter(|_| index > 0))
            {
                self.listed(line, (cwd, inner, None), places, findings);
            }
        }
        told.said.iter().for_each(|program| self.told_one(line, program, findings));
        if told.too_deep {
            findings.add("inline-program", (Some(line), Some("argv")), self.binaries(), || {
                let message = "too many programs run one another".to_owned();
                (message, "run the program itself")
            });
        }
    }

    fn told_one(&self, line: u64, argv: &[&str], findings: &mut Findings) {
        let Some(program) = argv.first() else { return };
        let name = programs::basename(program.as_bytes());
        let key = self.key(&name);
        let binary = (Some(line), Some("binary"));
        let arguments = (Some(line), Some("argv"));
        if let Some(shell) = programs::shell_name(&name) {
            self.excepted("shell", binary, shell, key, findings);
            self.fetched(line, argv, findings);
        } else if let Some(form) = programs::inline_form(&name, argv) {
            self.excepted("inline-program", arguments, form, key, findings);
        }
        if let Some(run) = programs::run_by_interpreter(&name, argv) {
            self.manages(&run, arguments, key, findings);
        } else if programs::is_package_manager(&name) {
            self.manages(&name, binary, key, findings);
        }
    }

    fn handed(&self, line: u64, argv: &[Cow<'_, str>], findings: &mut Findings) {
        self.told(line, &Told::handed(argv), None, findings);
        // Here the first word may be a script as well.
        let argv: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        self.fetched(line, &[&[""], argv.as_slice()].concat(), findings);
    }

    fn fetched(&self, line: u64, argv: &[&str], findings: &mut Findings) {
        if self.policy.changes_dependencies() || !programs::pipes_into_shell(argv) {
            return;
        }
        findings.add("pipe-into-shell", (Some(line), Some("argv")), self.binaries(), || {
            let message = "a script runs what it fetches".to_owned();
            (message, "fetch, review and then run; or write dependency_change: true")
        });
    }

    fn manages(
        &self,
        what: &str,
        at: (Option<u64>, Option<&str>),
        key: Option<Key>,
        findings: &mut Findings,
    ) {
        if !self.policy.changes_dependencies() {
            findings.add("package-manager", at, key, || {
                let message = format!("{} changes what is installed", shown(what));
                (message, "write dependency_change: true where the change is about dependencies")
            });
        }
    }

    fn excepted(
        &self,
        rule: &'static str,
        at: (Option<u64>, Option<&str>),
        what: &str,
        key: Option<Key>,
        findings: &mut Findings,
    ) {
        if self.policy.excepts(what, self.today).is_some() {
            return;
        }
        let mut held = self.policy.agent.iter().flat_map(|agent| &agent.exceptions);
        let expired = held.find(|exception| exception.allows == what);
        let key = expired.map(|e| Key { name: "exceptions", line: e.line }).or(key);
        findings.add(rule, at, key, || {
            let message = match expired {
                Some(exception) => {
                    format!("the exception for {} expired on {}", shown(what), exception.expires)
                }
                None => format!("{} runs, and no exception lets it", shown(what)),
            };
            (message, "run the program itself, or write an exception with two reviewers")
        });
    }

    /// The line of this program, or that of the list.
    fn key(&self, program: &str) -> Option<Key> {
        let list = self.policy.binaries.as_ref()?;
        Some(list.find(program).map_or(list.key, |entry| Key { line: entry.line, ..list.key }))
    }

    fn binaries(&self) -> Option<Key> {
        self.policy.binaries.as_ref().map(|list| list.key)
    }
}

/// Whether a digest as a trace writes it is this one.
pub(super) fn is_digest(found: &str, wanted: &str) -> bool {
    found.strip_prefix("sha256:").unwrap_or(found).eq_ignore_ascii_case(wanted)
}
