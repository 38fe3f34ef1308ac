//! The logs that are asked, one after the other, each as far as it is good.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use effectgate_core::{
    bundle::EVENTS,
    forensics::{End, Filter, Frame, Record, Scan},
    pin,
};

use super::ask::shown;
use crate::{bundle::log_at, commands::tell, exit, log, whole::directory};

/// What becomes of the reading after a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    On,
    /// Nothing more is wanted of any log.
    Enough,
    /// The record cannot be understood.
    Broken,
}

/// The logs, and what went wrong with them.
#[derive(Debug)]
pub struct Sources {
    logs: Vec<PathBuf>,
    /// Where they really are: none is read twice.
    known: HashSet<PathBuf>,
    /// Names that led to one that was known.
    again: usize,
    /// Links to directories and packed logs.
    links: Vec<PathBuf>,
    /// Everything could be read to its end.
    whole: bool,
}

impl Sources {
    /// The logs that are named, or lie below the directories that are named,
    /// in the order in which they begin.
    ///
    /// # Errors
    /// When one is not there, or there is no log in it.
    pub fn find(named: &[PathBuf]) -> Result<Sources> {
        let mut sources = Sources {
            logs: Vec::new(),
            known: HashSet::new(),
            again: 0,
            links: Vec::new(),
            whole: true,
        };
        for path in named {
            let before = (sources.logs.len(), sources.again);
            let meta = fs::metadata(path);
            let meta = meta.with_context(|| format!("cannot read the log {}", shown(path)))?;
            if meta.is_dir() {
                sources.below(path);
            } else {
                sources.add(path.clone());
            }
            if (sources.logs.len(), sources.again) == before && sources.whole {
                return Err(anyhow!(
                    "{} holds no log: there is no {} in it, nor in a directory below",
                    shown(path),
                    EVENTS
                ));
            }
        }
        sources.tell_links(named);
        if sources.logs.len() > 1 {
            let begin = |path: PathBuf| match begins(&path) {
                Some((ts, record)) => (Some(ts), path, Some(record)),
                None => (None, path, None),
            };
            let mut logs: Vec<_> =
                std::mem::take(&mut sources.logs).into_iter().map(begin).collect();
            logs.sort();
            // A packed bundle may lie beside what was packed.
            let unpacked = logs.iter().filter(|(_, path, _)| !is_packed(path));
            let mut known: HashSet<_> =
                unpacked.flat_map(|(_, _, record)| record.clone()).collect();
            logs.retain(|(_, path, record)| {
                !is_packed(path)
                    || record.as_ref().is_none_or(|record| known.insert(record.clone()))
            });
            sources.logs = logs.into_iter().map(|(_, path, _)| path).collect();
        }
        Ok(sources)
    }

    /// One log.
    ///
    /// # Errors
    /// When it is not there, or there are several.
    pub fn one(path: &Path) -> Result<Sources> {
        let sources = Sources::find(&[path.to_owned()])?;
        if sources.logs.len() > 1 {
            let many = sources.logs.len();
            return Err(anyhow!("{} holds {many} logs; name one run's", shown(path)));
        }
        Ok(sources)
    }

    pub fn logs(&self) -> Vec<PathBuf> {
        self.logs.clone()
    }

    /// Whether there is more than one log.
    pub fn are_many(&self) -> bool {
        self.logs.len() > 1
    }

    /// Hands on every line of a log whose job is asked about. Says on standard
    /// error how far the log is good when it is not whole.
    pub fn read(
        &mut self,
        path: &Path,
        filter: &Filter,
        on: &mut dyn FnMut(&Frame<'_>, &[u8]) -> Step,
    ) -> Step {
        let log = match log_at(path) {
            Ok(log) => log,
            Err(error) => {
                self.wrong(&format!("{error:#}"));
                return Step::On;
            }
        };
        let mut scan = Scan::new(log);
        let end = loop {
            let broken = match scan.step() {
                Ok((frame, _)) if frame.seq == 0 && !filter.job(frame.job) => return Step::On,
                Ok((frame, line)) => match on(&frame, line) {
                    Step::On => false,
                    Step::Enough => return Step::Enough,
                    Step::Broken => true,
                },
                Err(end) => break end,
            };
            if broken {
                let good = scan.records() - 1;
                self.wrong(&format!(
                    "{}: record {good} cannot be understood; the log was read up to there",
                    shown(path)
                ));
                return Step::On;
            }
        };
        let good = scan.records();
        let place = shown(path);
        match end {
            End::Closed => {}
            End::Open => tell(&format!(
                "{place}: the log has no closing record: its job still runs, or its observer was \
                 stopped; {good} records were read"
            )),
            End::Flawed(flaw) => self.wrong(&format!(
                "{place}: record {good}: {flaw}; the {good} records before it were read"
            )),
            End::Io(error) => {
                self.wrong(&format!("{place}: cannot be read on after {good} records: {error}"))
            }
        }
        Step::On
    }

    /// The exit code when all was asked that there is.
    pub fn code(&self) -> u8 {
        if self.whole { exit::HOLDS } else { exit::USAGE }
    }

    fn wrong(&mut self, what: &str) {
        self.whole = false;
        tell(what);
    }

    /// What a link leads to that is not below what was named is not passed over
    /// in silence.
    fn tell_links(&mut self, named: &[PathBuf]) {
        let named: Vec<PathBuf> = named.iter().flat_map(|path| path.canonicalize()).collect();
        for link in std::mem::take(&mut self.links) {
            let below = |target: PathBuf| named.iter().any(|named| target.starts_with(named));
            if !link.canonicalize().is_ok_and(below) {
                let link = shown(&link);
                self.wrong(&format!(
                    "{link} leads elsewhere and was not followed: name it as well"
                ));
            }
        }
    }

    /// A log, unless it is one of those already: its `events.jsonl` means all of
    /// it.
    fn add(&mut self, path: PathBuf) {
        let is_open = path.file_name().is_some_and(|name| name == EVENTS);
        let place = if is_open { directory(&path) } else { &path };
        if self.known.insert(place.canonicalize().unwrap_or_else(|_| place.to_owned())) {
            self.logs.push(path);
        } else {
            self.again += 1;
        }
    }

    /// Looks for logs in a directory, packed ones as well. Links are not followed.
    fn below(&mut self, root: &Path) {
        let mut dirs = vec![root.to_owned()];
        while let Some(dir) = dirs.pop() {
            let read = fs::read_dir(&dir).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
            let entries = match read {
                Ok(entries) => entries,
                Err(error) => {
                    self.wrong(&format!("cannot look for logs in {}: {error}", shown(&dir)));
                    continue;
                }
            };
            let names = entries.iter().map(fs::DirEntry::file_name);
            if names.into_iter().any(|name| name.to_str().is_some_and(log::is_segment)) {
                self.add(dir);
                continue;
            }
            for entry in entries {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => dirs.push(path),
                    Ok(kind) if kind.is_file() && is_packed(&path) => self.add(path),
                    Ok(kind) if kind.is_symlink() && (path.is_dir() || is_packed(&path)) => {
                        self.links.push(path);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// By its name, as `bundle --output` suggests it.
fn is_packed(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b".tar.zst")
}

/// The record of a line, when the filter means it.
pub fn asked<'a>(
    filter: &Filter,
    frame: &Frame<'_>,
    line: &'a [u8],
) -> Result<Option<Record<'a>>, Step> {
    if !filter.may(frame, line) {
        return Ok(None);
    }
    let record = Record::of(line).map_err(|_| Step::Broken)?;
    Ok(filter.matches(&record).then_some(record))
}

/// The time of a log's first record, and the record's digest, which no other log has;
/// whatever has none comes first, and so does a pipe, which is read only once.
fn begins(path: &Path) -> Option<(Vec<u8>, String)> {
    let kind = fs::metadata(path).ok()?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        return None;
    }
    let mut scan = Scan::new(log_at(path).ok()?);
    let (frame, line) = scan.step().ok()?;
    Some((frame.ts.to_vec(), pin::digest(line)))
}
