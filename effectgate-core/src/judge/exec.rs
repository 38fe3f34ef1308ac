//! Programs: by the file that runs, and by what its arguments make of it.

use crate::input::{Exec, FileObject, Found, RootMatch};
use crate::judge::{Doubt, Finding, Judgement, Rule, Tables};
use crate::policy::{Binary, Entry, Key, List};
use crate::programs::{
    self, basename, inline_form, is_package_manager, pipes_into_shell, shell_name,
};

/// A judgement, and what about the program it is about, if not its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecJudgement {
    pub judgement: Judgement,
    pub what: Option<&'static str>,
}

/// Judges a program that runs. An envelope asks about none.
pub fn exec(tables: &Tables, exec: &Exec) -> ExecJudgement {
    let Some(binaries) = &tables.started.policy.binaries else {
        return plain(Judgement::recorded("processes"));
    };
    let by_file = file(tables, binaries, exec);
    if by_file.finding != Finding::Within {
        return plain(by_file);
    }
    let entries = entries(tables, binaries, &exec.file);
    let names = names(&entries, &exec.file);
    let cite = entries.first().map_or(binaries.key.line, |entry| entry.line);
    let meant = Meant { tables, names: &names, line: cite };
    meant
        .package_manager(exec)
        .or_else(|| meant.shell(exec))
        .or_else(|| meant.inline(exec))
        .unwrap_or(plain(by_file))
}

/// What can be said of a listed program before it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// It may run, whatever its arguments.
    Freely,
    /// That depends on them.
    ByArguments,
    /// Not with any.
    Never,
}

impl Tables {
    /// By the name of its file, and those by which it is listed.
    pub(super) fn word(&self, program: &Found) -> Word {
        let Some(binaries) = &self.started.policy.binaries else { return Word::Never };
        let Found { path, dev, ino, twin, .. } = program.clone();
        let file = FileObject { path, dev, ino, twin, ..FileObject::default() };
        let names = names(&entries(self, binaries, &file), &file);
        let free = self.started.policy.changes_dependencies();
        if !free && names.iter().any(|name| is_package_manager(name)) {
            return Word::Never;
        }
        let meant = Meant { tables: self, names: &names, line: 0 };
        if names.iter().any(|name| shell_name(name).is_some()) {
            return match meant.shell_exception() {
                None => Word::Never,
                Some(_) if free => Word::Freely,
                Some(_) => Word::ByArguments,
            };
        }
        let interpreter = names.iter().any(|name| programs::is_interpreter(name));
        if interpreter { Word::ByArguments } else { Word::Freely }
    }
}

/// Judges that a file's content becomes code: a library, a plug-in, or a
/// program that a loader starts without an exec. What the job cannot write is
/// as harmless as the programs that load it; what it can write is a program of
/// its own.
pub(super) fn map(tables: &Tables, object: &FileObject) -> Judgement {
    let recorded = Judgement::recorded("mapped");
    let Some(binaries) = &tables.started.policy.binaries else { return recorded };
    let RootMatch::Below(id) = object.root else { return recorded };
    // Memory of its own: what runs there was made by a program that may run.
    let place = tables.place(id).filter(|_| !object.internal);
    match place.filter(|place| place.rights.write && !place.rights.exec) {
        Some(_) => Judgement::violates(Rule::written(&tables.started, binaries.key)),
        None => recorded,
    }
}

fn plain(judgement: Judgement) -> ExecJudgement {
    ExecJudgement { judgement, what: None }
}

/// The file: one that a listed name means, or one below an exec root.
fn file(tables: &Tables, binaries: &List<Binary>, exec: &Exec) -> Judgement {
    let place = match exec.file.root {
        RootMatch::Below(id) => tables.place(id),
        RootMatch::Outside | RootMatch::Unknown => None,
    };
    // Under whatever path it was found: what the job can write is not the
    // program that was listed.
    let written = place.is_some_and(|place| place.rights.write);
    if let Some(entry) = entries(tables, binaries, &exec.file).first().filter(|_| !written) {
        let key = Key { line: entry.line, ..binaries.key };
        let rule = Rule::written(&tables.started, key);
        if entry.value.sha256.is_some() && !tables.started.digests_hold {
            return Judgement { rule, finding: Finding::Doubt(Doubt::DigestUnknown) };
        }
        return Judgement::within_rule(rule);
    }
    let not_listed = Rule::written(&tables.started, binaries.key);
    match place.filter(|place| place.rights.exec) {
        Some(place) => Judgement::within_rule(tables.root_rule(place.cited.exec, binaries.key)),
        None if exec.file.root == RootMatch::Unknown => {
            Judgement { rule: not_listed, finding: Finding::Doubt(Doubt::Unplaced) }
        }
        None => Judgement::violates(not_listed),
    }
}

fn entries<'a>(
    tables: &Tables,
    binaries: &'a List<Binary>,
    file: &FileObject,
) -> Vec<&'a Entry<Binary>> {
    let found = tables.programs(file).iter();
    found.filter_map(|index| binaries.entries().get(*index)).collect()
}

/// What the program is called: its file, and the names by which it is listed.
fn names(entries: &[&Entry<Binary>], file: &FileObject) -> Vec<String> {
    let listed = entries.iter().map(|entry| entry.value.name.clone());
    std::iter::once(basename(&file.path)).chain(listed).collect()
}

/// A program that may run, and what its names and arguments make of it.
struct Meant<'a> {
    tables: &'a Tables,
    names: &'a [String],
    /// The line cited where no line says otherwise.
    line: u32,
}

impl Meant<'_> {
    /// A package manager, under its own name or run by its interpreter.
    fn package_manager(&self, exec: &Exec) -> Option<ExecJudgement> {
        let asked = basename(&exec.asked);
        let named = || self.names.iter().chain([&asked]).any(|name| is_package_manager(name));
        let run = || {
            let mut names = self.names.iter();
            names.any(|name| programs::run_by_interpreter(name, &exec.argv).is_some())
        };
        (!self.tables.started.policy.changes_dependencies() && (named() || run()))
            .then(|| self.violates("dependency_change", "a package manager"))
    }

    fn shell(&self, exec: &Exec) -> Option<ExecJudgement> {
        let shell = self.names.iter().find_map(|name| shell_name(name))?;
        let Some(line) = self.shell_exception() else {
            return Some(self.violates("exceptions", shell));
        };
        if !self.tables.started.policy.changes_dependencies() {
            if pipes_into_shell(&exec.argv) {
                return Some(self.violates("dependency_change", "a download piped into a shell"));
            }
            if !exec.argv_complete {
                return Some(self.cut(line));
            }
        }
        Some(plain(Judgement::within_rule(self.rule("exceptions", line))))
    }

    /// The line of an exception for the shell, under any of its names.
    fn shell_exception(&self) -> Option<u32> {
        let shells = self.names.iter().filter_map(|name| shell_name(name));
        let mut names = self.names.iter().map(String::as_str).chain(shells);
        names.find_map(|name| self.excepted(name))
    }

    fn inline(&self, exec: &Exec) -> Option<ExecJudgement> {
        let form = self.names.iter().find_map(|name| inline_form(name, &exec.argv));
        let Some(form) = form else {
            let interpreter = self.names.iter().any(|name| programs::is_interpreter(name));
            return (interpreter && !exec.argv_complete).then(|| self.cut(self.line));
        };
        Some(match self.excepted(form) {
            Some(line) => plain(Judgement::within_rule(self.rule("exceptions", line))),
            None => self.violates("exceptions", form),
        })
    }

    /// The line of the exception that holds on the day of the job.
    fn excepted(&self, what: &str) -> Option<u32> {
        let exception = self.tables.started.policy.excepts(what, &self.tables.today)?;
        Some(exception.line)
    }

    fn violates(&self, rule: &'static str, what: &'static str) -> ExecJudgement {
        let judgement = Judgement::violates(self.rule(rule, self.line));
        ExecJudgement { judgement, what: Some(what) }
    }

    /// Arguments are missing in which what is asked for may stand.
    fn cut(&self, line: u32) -> ExecJudgement {
        let finding = Finding::Doubt(Doubt::ArgumentsCut);
        plain(Judgement { rule: self.rule("exceptions", line), finding })
    }

    fn rule(&self, name: &'static str, line: u32) -> Rule {
        Rule::written(&self.tables.started, Key { name, line })
    }
}
