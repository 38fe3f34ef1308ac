//! Files: where a job writes. An envelope asks about nothing else.

use crate::input::{Access, Device, FileObject, FileOp, RootMatch, Stream};
use crate::judge::{Doubt, Finding, Judgement, Rule, Tables, exec, read};

/// `PROC_SUPER_MAGIC`, include/uapi/linux/magic.h.
pub(super) const PROC: u64 = 0x9fa0;
/// `S_IFMT`, `S_IFCHR` and `S_IFBLK`, include/uapi/linux/stat.h.
const TYPE_MASK: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const BLOCK_DEVICE: u32 = 0o060_000;

/// Judges a file effect of the process `pid`. Both objects of a rename or a
/// link must be inside: a link to a file outside would make it writable
/// through a path inside.
pub fn file(
    tables: &Tables,
    pid: u32,
    op: FileOp,
    object: &FileObject,
    other: Option<&FileObject>,
) -> Judgement {
    match op.access() {
        Access::Read => return read::read(tables, pid, object),
        Access::Run => return exec::map(tables, object),
        Access::Change => {}
    }
    let first = place(tables, pid, op, object);
    let Some(other) = other else { return first };
    let second = place(tables, pid, op, other);
    if severity(&second) > severity(&first) { second } else { first }
}

fn severity(judgement: &Judgement) -> u8 {
    match judgement.finding {
        Finding::Recorded | Finding::Within => 0,
        Finding::Doubt(_) | Finding::RecordedWithDoubt(_) => 1,
        Finding::Violation => 2,
    }
}

fn place(tables: &Tables, pid: u32, op: FileOp, object: &FileObject) -> Judgement {
    let within = Judgement::within_rule;
    if let Some(judgement) = device(tables, pid, op, object) {
        return judgement;
    }
    if changes_file(op) && tables.is_linked(object) {
        return Judgement::violates(Rule::of_every_policy("hard-link"));
    }
    let writes = tables.started.policy.roots.writes;
    if let RootMatch::Below(id) = object.root
        && let Some(place) = tables.place(id).filter(|place| place.rights.write)
    {
        return within(match place.cited.write {
            None if place.tmpdir => Rule::of_every_policy("tmpdir"),
            entry => tables.root_rule(entry, writes),
        });
    }
    if let Some(name) = harmless(tables, pid, op, object) {
        return within(Rule::of_every_policy(name));
    }
    let rule = Rule::written(&tables.started, writes);
    let finding = match object.root {
        RootMatch::Unknown => Finding::Doubt(Doubt::Unplaced),
        RootMatch::Outside | RootMatch::Below(_) => Finding::Violation,
    };
    Judgement { rule, finding }
}

/// A device is what its number says, wherever its node lies: one below a root
/// still leads out of it. The number 0:0 is no device but overlayfs' whiteout.
fn device(tables: &Tables, pid: u32, op: FileOp, object: &FileObject) -> Option<Judgement> {
    if !is_device(object) || !(reaches_content(op) || op == FileOp::Create) {
        return None;
    }
    Some(match harmless(tables, pid, op, object) {
        Some(name) => Judgement::within_rule(Rule::of_every_policy(name)),
        None => {
            Judgement::violates(Rule::written(&tables.started, tables.started.policy.roots.writes))
        }
    })
}

/// The file itself is changed, under whatever name: not only one of its names.
fn changes_file(op: FileOp) -> bool {
    reaches_content(op)
        || matches!(op, FileOp::Chmod | FileOp::Chown | FileOp::Setxattr | FileOp::Utimes)
}

/// What lies behind the name is changed, and not the name or what is said of it.
fn reaches_content(op: FileOp) -> bool {
    matches!(op, FileOp::OpenWrite | FileOp::Write | FileOp::Truncate | FileOp::Ioctl)
}

pub(crate) fn is_device(object: &FileObject) -> bool {
    matches!(object.mode & TYPE_MASK, CHARACTER_DEVICE | BLOCK_DEVICE)
        && object.rdev != Device::default()
}

/// The rule by which a write that is below no root still changes nothing
/// outside the job.
fn harmless(tables: &Tables, pid: u32, op: FileOp, object: &FileObject) -> Option<&'static str> {
    if object.internal {
        return Some("internal");
    }
    if !reaches_content(op) {
        return None;
    }
    own(tables, pid, object, |stream| stream.write, holds_nothing)
}

/// The rule by which a file is the job's own, or holds nothing: a stream that
/// it was handed in this direction, such a device, its terminal, its `/proc`.
pub(super) fn own(
    tables: &Tables,
    pid: u32,
    object: &FileObject,
    direction: fn(&Stream) -> bool,
    holds_nothing: fn(Device) -> bool,
) -> Option<&'static str> {
    let started = &tables.started;
    let same = |stream: &Stream| stream.id() == object.id();
    if object.ino != 0 && started.streams.iter().any(|s| same(s) && direction(s)) {
        return Some("stream");
    }
    if object.mode & TYPE_MASK == CHARACTER_DEVICE {
        if holds_nothing(object.rdev) {
            return Some("device");
        }
        if started.terminals.contains(&object.rdev) {
            return Some("terminal");
        }
    }
    let by_path = || object.magic == PROC && !object.path_cut && is_own_proc(&object.path, pid);
    (object.own_proc || by_path()).then_some("own-proc")
}

/// null, zero, full, and the name by which a process reaches its own terminal
/// (Documentation/admin-guide/devices.txt).
pub(super) fn holds_nothing(rdev: Device) -> bool {
    matches!((rdev.major, rdev.minor), (1, 3 | 5 | 7) | (5, 0))
}

/// `/proc/<pid>/…`; its threads are in `/proc/<pid>/task/<tid>/…`.
fn is_own_proc(path: &[u8], pid: u32) -> bool {
    let own = format!("/proc/{pid}/");
    path.len() > own.len()
        && path.starts_with(own.as_bytes())
        && !path.split(|b| *b == b'/').any(|part| part == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{object, started, tables};

    #[test]
    fn a_device_is_its_number_wherever_it_lies() {
        let judge = |op, kind: u32, major, minor| {
            let mut object = object("/srv/repo/node", RootMatch::Below(started().roots[0].id));
            object.mode = kind | 0o644;
            object.rdev = Device { major, minor };
            file(&tables(), 7, op, &object, None).finding
        };
        for op in [FileOp::OpenWrite, FileOp::Write, FileOp::Ioctl, FileOp::Create] {
            assert_eq!(judge(op, BLOCK_DEVICE, 7, 0), Finding::Violation, "{op:?}");
            assert_eq!(judge(op, CHARACTER_DEVICE, 1, 11), Finding::Violation, "{op:?}");
            assert_eq!(judge(op, CHARACTER_DEVICE, 0, 0), Finding::Within, "{op:?}");
        }
        assert_eq!(judge(FileOp::OpenWrite, CHARACTER_DEVICE, 1, 3), Finding::Within);
        assert_eq!(judge(FileOp::Create, CHARACTER_DEVICE, 1, 3), Finding::Violation);
        assert_eq!(judge(FileOp::Unlink, BLOCK_DEVICE, 7, 0), Finding::Within);
    }

    const WRITES: [FileOp; 15] = [
        FileOp::OpenWrite,
        FileOp::Create,
        FileOp::Mkdir,
        FileOp::Rmdir,
        FileOp::Unlink,
        FileOp::Rename,
        FileOp::Link,
        FileOp::Symlink,
        FileOp::Truncate,
        FileOp::Chmod,
        FileOp::Chown,
        FileOp::Write,
        FileOp::Setxattr,
        FileOp::Utimes,
        FileOp::Ioctl,
    ];

    fn judge(op: FileOp, object: &FileObject) -> (Finding, &'static str) {
        let judgement = file(&tables(), 42, op, object, None);
        (judgement.finding, judgement.rule.name)
    }

    #[test]
    fn roots() {
        let inside = object("/srv/repo/a", RootMatch::Below(1));
        let outside = object("/etc/passwd", RootMatch::Outside);
        let foreign = object("/srv/other/a", RootMatch::Below(99));
        let unknown = object("/srv/repo/a", RootMatch::Unknown);
        for op in WRITES {
            assert_eq!(judge(op, &inside), (Finding::Within, "allowed_roots"), "{op:?}");
            assert_eq!(judge(op, &outside), (Finding::Violation, "allowed_roots"), "{op:?}");
            assert_eq!(judge(op, &foreign), (Finding::Violation, "allowed_roots"), "{op:?}");
            let doubt = Finding::Doubt(Doubt::Unplaced);
            assert_eq!(judge(op, &unknown), (doubt, "allowed_roots"), "{op:?}");
        }
        for object in [inside, outside, foreign, unknown] {
            assert_eq!(judge(FileOp::OpenRead, &object), (Finding::Recorded, "reads"));
        }
    }

    #[test]
    fn rules_name_their_line() {
        let started = started();
        let line = |root| {
            let object = object("/x", root);
            file(&tables(), 42, FileOp::Create, &object, None).rule.line
        };
        assert_eq!(line(RootMatch::Below(1)), Some(started.policy.roots.entries[0].key.line));
        assert_eq!(line(RootMatch::Outside), Some(started.policy.roots.writes.line));
        assert_eq!(line(RootMatch::Below(9)), None, "TMPDIR stands in no file");
    }

    #[test]
    fn both_ends_count() {
        let inside = object("/srv/repo/a", RootMatch::Below(1));
        let outside = object("/etc/a", RootMatch::Outside);
        let unknown = object("/srv/repo/a", RootMatch::Unknown);
        for op in [FileOp::Rename, FileOp::Link] {
            let judge = |a, b| file(&tables(), 42, op, a, Some(b)).finding;
            assert_eq!(judge(&inside, &inside), Finding::Within);
            assert_eq!(judge(&inside, &outside), Finding::Violation);
            assert_eq!(judge(&outside, &inside), Finding::Violation);
            assert_eq!(judge(&unknown, &outside), Finding::Violation);
            assert_eq!(judge(&inside, &unknown), Finding::Doubt(Doubt::Unplaced));
        }
    }

    fn device(major: u32, minor: u32) -> FileObject {
        FileObject {
            mode: 0o020_666,
            rdev: Device { major, minor },
            ..object("/dev/x", RootMatch::Outside)
        }
    }

    #[test]
    fn devices() {
        for (major, minor, rule) in [
            (1, 3, "device"),
            (1, 5, "device"),
            (1, 7, "device"),
            (5, 0, "device"),
            (136, 4, "terminal"),
        ] {
            for op in WRITES {
                let want = match reaches_content(op) {
                    true => (Finding::Within, rule),
                    false => (Finding::Violation, "allowed_roots"),
                };
                assert_eq!(judge(op, &device(major, minor)), want, "{op:?} {major}:{minor}");
            }
        }
        for (major, minor) in [(1, 1), (1, 2), (1, 8), (5, 1), (8, 0), (136, 5)] {
            let finding = judge(FileOp::OpenWrite, &device(major, minor)).0;
            assert_eq!(finding, Finding::Violation, "{major}:{minor}");
        }
        let block = FileObject { mode: 0o060_660, ..device(1, 3) };
        assert_eq!(judge(FileOp::OpenWrite, &block).0, Finding::Violation);
    }

    #[test]
    fn own_proc() {
        for (path, magic, within) in [
            ("/proc/42/oom_score_adj", PROC, true),
            ("/proc/42/task/43/comm", PROC, true),
            ("/proc/43/oom_score_adj", PROC, false),
            ("/proc/420/comm", PROC, false),
            ("/proc/42/", PROC, false),
            ("/proc/42", PROC, false),
            ("/proc/42/../1/comm", PROC, false),
            ("/proc/sys/kernel/core_pattern", PROC, false),
            ("/proc/42/comm", 0xef53, false),
        ] {
            let object = FileObject { magic, ..object(path, RootMatch::Outside) };
            let want = if within { Finding::Within } else { Finding::Violation };
            assert_eq!(judge(FileOp::OpenWrite, &object).0, want, "{path}");
            assert_eq!(judge(FileOp::Chmod, &object).0, Finding::Violation, "{path}");
            let cut = FileObject { path_cut: true, ..object };
            assert_eq!(judge(FileOp::OpenWrite, &cut).0, Finding::Violation, "{path}");
            let seen = FileObject { own_proc: true, ..cut };
            assert_eq!(judge(FileOp::Write, &seen), (Finding::Within, "own-proc"), "{path}");
        }
    }

    #[test]
    fn streams_and_internal_mounts() {
        let dev = Device { major: 8, minor: 1 };
        let stream = FileObject { dev, ino: 77, ..object("/var/log/out", RootMatch::Outside) };
        assert_eq!(judge(FileOp::OpenWrite, &stream), (Finding::Within, "stream"));
        assert_eq!(judge(FileOp::Unlink, &stream).0, Finding::Violation);
        let near = FileObject { ino: 78, ..stream.clone() };
        assert_eq!(judge(FileOp::OpenWrite, &near).0, Finding::Violation);
        let elsewhere = FileObject { twin: 1, ..stream };
        assert_eq!(judge(FileOp::OpenWrite, &elsewhere).0, Finding::Violation);
        let memory = FileObject { internal: true, ..object("/memfd:x", RootMatch::Unknown) };
        assert_eq!(judge(FileOp::OpenWrite, &memory), (Finding::Within, "internal"));
    }
}
