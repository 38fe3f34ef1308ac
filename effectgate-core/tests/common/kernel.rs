//! What the kernel programs make of an effect, from the compiled tables and
//! from what they can see: inodes, device numbers, names on the way to a root.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::net::IpAddr;

use effectgate_core::input::*;
use effectgate_core::judge::{KernelTables, KnownFile, KnownHost, RootGrant};

/// The answer; `None` where it is left to user space.
pub type Answer = Option<Decided>;

const WITHIN: Answer = Some(Decided::Within);
const OUTSIDE: Answer = Some(Decided::Outside);
const UNKNOWN: Answer = Some(Decided::Unknown);

const TYPE_MASK: u32 = 0o170_000;
const CHARACTER: u32 = 0o020_000;
const BLOCK: u32 = 0o060_000;

/// A file effect as the kernel sees it.
pub fn file(
    tables: &KernelTables,
    op: FileOp,
    file: &Seen<'_>,
    other: Option<&Seen<'_>>,
) -> Answer {
    match op {
        FileOp::OpenRead => read(tables, file),
        FileOp::MapExec => map(tables, file),
        _ => {
            let first = write(tables, op, file);
            let second = other.map_or(WITHIN, |other| write(tables, op, other));
            if severity(second) > severity(first) { second } else { first }
        }
    }
}

fn severity(answer: Answer) -> u8 {
    match answer {
        Some(Decided::Outside) => 2,
        Some(Decided::Unknown) => 1,
        _ => 0,
    }
}

/// A file, with what its path shows on the way to the roots.
pub struct Seen<'a> {
    pub file: &'a FileObject,
    /// One of the names below the root that was found begins with a dot.
    pub dotted: bool,
}

fn granted(tables: &KernelTables, root: RootMatch) -> RootGrant {
    let RootMatch::Below(id) = root else { return RootGrant::default() };
    tables.grants.iter().find(|grant| grant.root == id).copied().unwrap_or_default()
}

fn known(tables: &KernelTables, file: &FileObject) -> KnownFile {
    let mut all = tables.files.iter();
    all.find(|known| known.id == file.id()).copied().unwrap_or_default()
}

fn is_device(file: &FileObject) -> bool {
    matches!(file.mode & TYPE_MASK, CHARACTER | BLOCK) && file.rdev != Device::default()
}

/// A device that holds nothing, or the job's terminal, or its own `/proc`.
fn harmless(tables: &KernelTables, file: &FileObject, reads: bool) -> bool {
    let Device { major, minor } = file.rdev;
    let device = matches!((major, minor), (1, 3 | 5 | 7) | (5, 0))
        || reads && matches!((major, minor), (1, 8 | 9))
        || tables.terminals.contains(&file.rdev);
    file.mode & TYPE_MASK == CHARACTER && device || file.own_proc
}

fn write(tables: &KernelTables, op: FileOp, seen: &Seen<'_>) -> Answer {
    let file = seen.file;
    let content =
        matches!(op, FileOp::OpenWrite | FileOp::Write | FileOp::Truncate | FileOp::Ioctl);
    let own = file.internal
        || content && (known(tables, file).stream_write || harmless(tables, file, false));
    if is_device(file) && (content || op == FileOp::Create) {
        return if own { WITHIN } else { OUTSIDE };
    }
    if own || granted(tables, file.root).write {
        return WITHIN;
    }
    if file.root == RootMatch::Unknown { UNKNOWN } else { OUTSIDE }
}

fn read(tables: &KernelTables, seen: &Seen<'_>) -> Answer {
    let file = seen.file;
    if !tables.reads || file.internal {
        return WITHIN;
    }
    let own = known(tables, file).stream_read || harmless(tables, file, true);
    if is_device(file) {
        return if own { WITHIN } else { OUTSIDE };
    }
    let root = granted(tables, file.root);
    if root.read {
        return if root.named || !seen.dotted { WITHIN } else { None };
    }
    if own {
        return WITHIN;
    }
    if file.root == RootMatch::Unknown { UNKNOWN } else { OUTSIDE }
}

fn map(tables: &KernelTables, seen: &Seen<'_>) -> Answer {
    let root = granted(tables, seen.file.root);
    let made = tables.programs && !seen.file.internal && root.write && !root.exec;
    if made { OUTSIDE } else { WITHIN }
}

/// A program that runs; `script`: for a script that was asked for.
pub fn exec(tables: &KernelTables, file: &FileObject, script: bool) -> Answer {
    if !tables.programs {
        return WITHIN;
    }
    let (known, root) = (known(tables, file), granted(tables, file.root));
    if known.program && !root.write {
        return if known.arguments || script { None } else { WITHIN };
    }
    if root.exec {
        return None;
    }
    if file.root == RootMatch::Unknown { UNKNOWN } else { OUTSIDE }
}

/// A socket effect; `address` is canonical.
pub fn net(
    tables: &KernelTables,
    op: NetOp,
    address: IpAddr,
    port: u16,
    protocol: u32,
    own: bool,
    namespace: Namespace,
) -> Answer {
    let listed = [Some(port), None].into_iter().any(|port| {
        [Some(protocol), None]
            .into_iter()
            .any(|protocol| tables.hosts.contains(&KnownHost { address, port, protocol }))
    });
    let local = address.is_loopback();
    let within = match op {
        NetOp::Bind => local,
        NetOp::Connect | NetOp::Send => {
            let probe = op == NetOp::Connect && protocol == 17 && port == 0;
            (local || address.is_unspecified()) && (own || probe)
        }
    };
    match namespace {
        Namespace::Foreign => OUTSIDE,
        _ if !listed && !within => OUTSIDE,
        Namespace::Own => WITHIN,
        Namespace::Unknown => UNKNOWN,
    }
}

pub fn unix(tables: &KernelTables, peer: &UnixPeer, own: bool) -> Answer {
    let listed = match peer {
        UnixPeer::File(file) => known(tables, file).unix,
        UnixPeer::Abstract(_) | UnixPeer::Unnamed => false,
    };
    if own || listed { WITHIN } else { OUTSIDE }
}
