//! What a run used, as far as a policy has to allow it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::places::{Passing, Places, parent};
use super::{Because, note};
use crate::escape::escape;
use crate::input::{Bytes, Event, Exec, FileObject, FileOp, RootMatch, UnixNanos, UnixPeer};
use crate::judge::{self, Tables};
use crate::path::{OF_KERNEL, contains};
use crate::programs::{self, basename, inline_form, is_package_manager, shell_name};
use crate::secret::is_credential_path;
use crate::trace::Extent;

/// `S_IFMT` and `S_IFDIR`, include/uapi/linux/stat.h.
const TYPE_MASK: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;

/// What a run used, gathered record by record. Memory grows with the distinct
/// files and names, not with the run.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// Directories that are written.
    pub(super) writes: Places,
    /// Files that are read and that no rule lets be read anyway.
    pub(super) reads: Places,
    /// Directories whose entries are listed.
    pub(super) listed: Places,
    pub(super) passing: Passing,
    /// Files that ran.
    pub(super) programs: BTreeMap<Bytes, Because>,
    /// Files that were mapped to be executed.
    pub(super) mapped: BTreeMap<Bytes, Because>,
    /// Shells, and interpreters used as such, in the words of exceptions.
    pub(super) shells: BTreeMap<&'static str, Because>,
    pub(super) package_managers: BTreeMap<String, Because>,
    pub(super) hosts: BTreeMap<Reached, Because>,
    /// Files of Unix sockets that are not the job's own.
    pub(super) sockets: BTreeMap<Bytes, Because>,
    pub(super) env: BTreeMap<Bytes, Because>,
    /// Tools of the harness's own.
    pub(super) tools: BTreeMap<String, Because>,
    pub(super) servers: BTreeMap<String, Server>,
    /// A log knows of no steps and no tool calls.
    pub(super) extent: Option<Extent>,
    /// What no policy can allow: what, and why not.
    pub(super) beyond: BTreeMap<(Bytes, &'static str), Because>,
    /// The same of reads, about which an envelope does not ask.
    pub(super) beyond_reads: BTreeMap<(Bytes, &'static str), Because>,
    /// The job's own temporary directories.
    pub(super) scratch: Vec<Bytes>,
    /// Where the command was started, when the log knows.
    pub(super) workspace: Option<Bytes>,
    /// The home of the job's user.
    pub(super) home: Option<Bytes>,
    /// From the command's start to its end.
    pub(super) nanos: UnixNanos,
}

/// An MCP server, as far as it said who it is.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub digest: String,
    pub command: Vec<String>,
    pub tools: BTreeSet<String>,
    pub because: Because,
}

/// A host by the name that the log knows, or by its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reached {
    pub host: String,
    /// 0 where it is not known, or none.
    pub port: u16,
    pub protocol: u32,
}

impl Used {
    /// Where the command was started, when the log knows.
    pub fn workspace(&self) -> Option<&[u8]> {
        self.workspace.as_deref()
    }

    /// The home of the job's user, when the log knows.
    pub fn home(&self) -> Option<&[u8]> {
        self.home.as_deref()
    }

    /// A file effect. `root` is the resolved root that the log says it was below.
    pub(super) fn file(
        &mut self,
        tables: &Tables,
        event: &Event,
        at: u64,
        op: FileOp,
        object: &FileObject,
        root: Option<&[u8]>,
    ) {
        if matches!(op, FileOp::Mkdir | FileOp::Rmdir)
            || op == FileOp::Rename && may_be_directory(object)
        {
            self.passing.add(&object.path);
        }
        if op == FileOp::MapExec {
            let code = !object.internal && !object.path_cut;
            if code {
                let did = || format!("mapped {}", escape(&object.path));
                let because = || Because::new(at, escape(&event.comm), did());
                note(&mut self.mapped, object.path.clone(), because);
            }
            return;
        }
        let judgement = judge::file(tables, event.pid, op, object, None);
        if judgement.within() {
            return;
        }
        let because = || {
            let what = format!("{} {}", op.name().replace('_', " "), escape(&object.path));
            Because::new(at, escape(&event.comm), what)
        };
        if let Some(why) = beyond(op, object, root) {
            let all = match op {
                FileOp::OpenRead => &mut self.beyond_reads,
                _ => &mut self.beyond,
            };
            return note(all, (object.path.clone(), why), because);
        }
        // A path that leads elsewhere in the job's own view: the root is what
        // the kernel found.
        let place = match root {
            Some(root) if object.path_cut || !contains(root, &object.path) => root,
            _ => &object.path,
        };
        match (op, own(op, object)) {
            (FileOp::OpenRead, true) => self.listed.want(place, because),
            (FileOp::OpenRead, false) => self.reads.want(place, because),
            (_, true) => self.writes.want(place, because),
            (_, false) => self.writes.want(parent(place), because),
        }
    }

    pub(super) fn exec(&mut self, event: &Event, at: u64, exec: &Exec) {
        let path = &exec.file.path;
        let who = || escape(&event.comm);
        note(&mut self.programs, path.clone(), || {
            let asked = if exec.asked == *path {
                String::new()
            } else {
                format!(" for {}", escape(&exec.asked))
            };
            Because::new(at, who(), format!("is {}{asked}", escape(path)))
        });
        let name = basename(path);
        if let Some(shell) = shell_name(&name) {
            note(&mut self.shells, shell, || {
                Because::new(at, who(), format!("is {}", escape(path)))
            });
        }
        // The arguments of a script begin with its interpreter's.
        if exec.asked == *path
            && let Some(form) = inline_form(&name, &exec.argv)
        {
            note(&mut self.shells, form, || {
                Because::new(at, who(), "was given its program by argument")
            });
        }
        let run = programs::run_by_interpreter(&name, &exec.argv);
        let named = [name, basename(&exec.asked)].into_iter().find(|it| is_package_manager(it));
        let named = named.or(run);
        if let Some(name) = named {
            let because = || Because::new(at, who(), format!("is {}", escape(&exec.asked)));
            note(&mut self.package_managers, name, because);
        }
    }

    pub(super) fn key(&mut self, at: u64, who: &str, name: Bytes) {
        note(&mut self.env, name, || Because::new(at, who, "holds it"));
    }

    /// A Unix socket that is not the job's own.
    pub(super) fn socket(&mut self, at: u64, who: &str, peer: &UnixPeer) {
        let (name, why) = match peer {
            UnixPeer::File(file) if file.path_cut => {
                (file.path.clone(), "where it lies is not known")
            }
            UnixPeer::File(file) => {
                let because = || Because::new(at, who, "spoke to it");
                return note(&mut self.sockets, file.path.clone(), because);
            }
            UnixPeer::Abstract(name) => (name.clone(), "a socket without a file can be anybody's"),
            UnixPeer::Unnamed => (Vec::new(), "a socket without a name can be anybody's"),
        };
        note(&mut self.beyond, (name, why), || Because::new(at, who, "spoke to it"));
    }

    /// An address in a network namespace that is not the job's.
    pub(super) fn foreign(&mut self, at: u64, who: &str, peer: SocketAddr) {
        let name = (peer.to_string().into_bytes(), "it is in a network that is not the job's");
        note(&mut self.beyond, name, || Because::new(at, who, "reached it"));
    }

    pub(super) fn reach(&mut self, at: u64, who: &str, reached: Reached, peer: SocketAddr) {
        note(&mut self.hosts, reached, || Because::new(at, who, format!("reached {peer}")));
    }
}

/// Whether the effect is on the directory itself, and not on an entry of the
/// one around it.
fn own(op: FileOp, object: &FileObject) -> bool {
    let entry = matches!(
        op,
        FileOp::Create
            | FileOp::Mkdir
            | FileOp::Rmdir
            | FileOp::Unlink
            | FileOp::Rename
            | FileOp::Link
            | FileOp::Symlink
    );
    !entry && object.mode & TYPE_MASK == DIRECTORY
}

fn may_be_directory(object: &FileObject) -> bool {
    matches!(object.mode & TYPE_MASK, 0 | DIRECTORY)
}

/// Why no root can allow it.
fn beyond(op: FileOp, object: &FileObject, root: Option<&[u8]>) -> Option<&'static str> {
    let device = judge::is_device(object);
    let kernel = OF_KERNEL.iter().any(|own| contains(*own, &object.path));
    let whole = object.path.starts_with(b"/") && !object.path.windows(2).any(|two| two == b"//");
    if object.root == RootMatch::Unknown || !whole || object.path_cut && root.is_none() {
        return Some("where it lies is not known");
    }
    if is_credential_path(&object.path) {
        return Some("credentials are for people to grant");
    }
    if device && op == FileOp::OpenRead {
        return Some("a device is what its number says, wherever it lies");
    }
    if op == FileOp::OpenRead {
        return None;
    }
    if device {
        return Some("a device is what its number says, wherever it lies");
    }
    if kernel {
        return Some("the kernel's own files are no root");
    }
    None
}
