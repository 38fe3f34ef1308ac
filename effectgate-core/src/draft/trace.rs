//! A trace of the agent's harness, read for what its run used. One line is
//! held at a time.

use std::borrow::Cow;
use std::io::{self, BufRead};

use super::used::{Reached, Server, Used};
use super::{Because, note};
use crate::host;
use crate::input::Bytes;
use crate::path::{contains, normal};
use crate::policy::is_base_env;
use crate::programs::{
    Told, basename, inline_form, is_package_manager, run_by_interpreter, shell_name,
};
use crate::redact;
use crate::trace::{self, Event, Extent, Flaw, Kind};

/// Why a trace gives no draft.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("the trace could not be read: {0}")]
    Io(#[from] io::Error),
    #[error("line {line}: {message}; {help}")]
    Flaw { line: u64, message: String, help: &'static str },
    #[error("the trace is empty: there is nothing to draft from; record a run first")]
    Empty,
}

/// Reads a trace whose relative paths are relative to `workspace`, which is
/// absolute and resolved.
///
/// # Errors
/// [`TraceError`]: what cannot be understood cannot be allowed.
pub fn of_trace(trace: impl BufRead, workspace: &str) -> Result<Used, TraceError> {
    let mut run = Run { workspace, used: Used::default(), extent: Extent::default() };
    let mut flaw: Option<(u64, Flaw)> = None;
    let lines = trace::read(trace, |line, seen| match seen {
        Ok(event) => run.event(line, &without_secrets(event)),
        Err(found) => {
            flaw.get_or_insert((line, found));
        }
    })?;
    if let Some((line, Flaw { message, help, .. })) = flaw {
        return Err(TraceError::Flaw { line, message, help });
    }
    if lines == 0 {
        return Err(TraceError::Empty);
    }
    let used = Used { nanos: run.extent.nanos(), extent: Some(run.extent), ..run.used };
    Ok(used)
}

/// A log holds no secrets, and its draft none either: what was taken out is
/// left out. A trace holds what its harness wrote down.
fn without_secrets(event: Event<'_>) -> Event<'static> {
    let owned = |bytes: Bytes| Cow::Owned(String::from_utf8_lossy(&bytes).into_owned());
    let text = |text: Cow<'_, str>| owned(redact::text(text.as_bytes()));
    let all = |list: Vec<Cow<'_, str>>| list.into_iter().map(text).collect();
    let argv: Vec<Bytes> = event.argv.iter().map(|word| word.as_bytes().to_vec()).collect();
    Event {
        ts: event.ts,
        kind: event.kind,
        name: text(event.name),
        binary: event.binary.map(|binary| owned(redact::path(binary.as_bytes()))),
        argv: redact::argv(&argv).into_iter().map(owned).collect(),
        cwd: event.cwd.map(|cwd| owned(redact::path(cwd.as_bytes()))),
        host: event.host.map(text),
        step: event.step,
        env: all(event.env),
        server: event.server.map(text),
        output: None,
        digest: event.digest.map(text),
        tools: event.tools.map(all),
    }
}

struct Run<'a> {
    workspace: &'a str,
    used: Used,
    extent: Extent,
}

impl Run<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        self.extent.event(event);
        let because = |did: String| Because::new(line, event.name.clone(), did);
        if let Some(cwd) = &event.cwd {
            let place = self.place(cwd);
            if contains(self.workspace, &place) {
                self.used.listed.want(&place, || because("worked there".into()));
            } else {
                let why = "a job works below the workspace";
                note(&mut self.used.beyond, (place, why), || because("worked there".into()));
            }
        }
        match &event.binary {
            Some(binary) => {
                let told = Told::of(binary, &event.argv);
                told.programs.iter().for_each(|program| self.program(line, event, program));
                told.said.iter().for_each(|program| self.told(line, event, program));
            }
            None => {
                let told = Told::handed(&event.argv);
                let all = told.programs.iter().chain(&told.said);
                all.for_each(|program| self.told(line, event, program));
            }
        }
        if let Some(host) = &event.host {
            self.host(line, event, host);
        }
        for name in event.env.iter().filter(|name| !is_base_env(name.as_bytes())) {
            self.used.key(line, &event.name, name.as_bytes().to_vec());
        }
        match (event.kind, &event.server) {
            (Kind::McpServer, Some(server)) => {
                let known = self.server(line, event, server);
                known.digest = event.digest.as_deref().unwrap_or_default().to_owned();
                known.command = event.argv.iter().map(ToString::to_string).collect();
                known.tools.extend(event.tools.iter().flatten().map(ToString::to_string));
                let command: Vec<&str> = event.argv.iter().map(AsRef::as_ref).collect();
                if event.binary.is_none() {
                    self.program(line, event, &command);
                }
            }
            (Kind::ToolCall, Some(server)) => {
                self.server(line, event, server).tools.insert(event.name.to_string());
            }
            (Kind::ToolCall, None) if event.binary.is_none() => {
                let name = event.name.to_string();
                note(&mut self.used.tools, name, || because("was called".into()));
            }
            _ => {}
        }
    }

    /// A program that runs, with its arguments; `argv` begins with its name.
    fn program(&mut self, line: u64, event: &Event<'_>, argv: &[&str]) {
        let Some(binary) = argv.first() else { return };
        let path = match binary.contains('/') {
            // From where the agent stood, as `compare` reads it.
            true => self.place(&match &event.cwd {
                Some(cwd) if !binary.starts_with('/') => format!("{cwd}/{binary}"),
                _ => (*binary).to_owned(),
            }),
            false => binary.as_bytes().to_vec(),
        };
        let because = || Because::new(line, event.name.clone(), format!("ran {binary}"));
        note(&mut self.used.programs, path, because);
        self.told(line, event, argv);
    }

    /// What a program is, by its name and arguments.
    fn told(&mut self, line: u64, event: &Event<'_>, argv: &[&str]) {
        let Some(binary) = argv.first() else { return };
        let because = |did: &str| Because::new(line, event.name.clone(), format!("ran {did}"));
        let name = basename(binary.as_bytes());
        if let Some(shell) = shell_name(&name) {
            note(&mut self.used.shells, shell, || because(binary));
        }
        if let Some(form) = inline_form(&name, argv) {
            note(&mut self.used.shells, form, || because(form));
        }
        let run = run_by_interpreter(&name, argv);
        if let Some(manager) = run.or_else(|| is_package_manager(&name).then_some(name)) {
            note(&mut self.used.package_managers, manager, || because(binary));
        }
    }

    fn host(&mut self, line: u64, event: &Event<'_>, text: &str) {
        let because = || Because::new(line, event.name.clone(), format!("reached {text}"));
        match host::reached(text) {
            Ok((host, protocol)) => {
                let port = host.port.unwrap_or_default();
                let reached = Reached { host: host.name.to_string(), port, protocol };
                note(&mut self.used.hosts, reached, because);
            }
            Err(_) => {
                let why = "it is no host that a policy can name";
                note(&mut self.used.beyond, (text.as_bytes().to_vec(), why), because);
            }
        }
    }

    fn server(&mut self, line: u64, event: &Event<'_>, name: &str) -> &mut Server {
        let name = name.to_owned();
        self.used.servers.entry(name).or_insert_with(|| Server {
            digest: String::new(),
            command: Vec::new(),
            tools: Default::default(),
            because: Because::new(line, event.name.clone(), "was there"),
        })
    }

    /// Absolute and in normal form; links are not known here.
    fn place(&self, path: &str) -> Bytes {
        normal(self.workspace, path).into_bytes()
    }
}
