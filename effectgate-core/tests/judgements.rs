//! What a manifest allows: each judgement, and the line that decided it.

mod common;

use common::*;
use effectgate_core::input::*;
use effectgate_core::judge::{self, Finding, Judgement, Tables};

const INSIDE: Finding = Finding::Within;
const OUTSIDE: Finding = Finding::Violation;

fn said(judgement: Judgement) -> (Finding, &'static str, Option<u32>) {
    (judgement.finding, judgement.rule.name, judgement.rule.line)
}

/// An open by process 42, of a file at this path below this root.
fn open(op: FileOp, path: &str, root: Option<&str>) -> (Finding, &'static str, Option<u32>) {
    let started = manifest_started();
    let root = root.map_or(RootMatch::Outside, |root| root_at(&started, root));
    said(judge::file(&Tables::new(started), 42, op, &object(path, root), None))
}

fn read(path: &str, root: Option<&str>) -> (Finding, &'static str, Option<u32>) {
    open(FileOp::OpenRead, path, root)
}

fn read_object(object: FileObject) -> (Finding, &'static str, Option<u32>) {
    said(judge::file(&Tables::new(manifest_started()), 42, FileOp::OpenRead, &object, None))
}

#[test]
fn what_lies_below_a_root_may_be_read() {
    assert_eq!(
        read("/srv/repo/src/a", Some("/srv/repo/src")),
        (INSIDE, "workspace_roots", Some(4))
    );
    let out = ("/srv/repo/src/out/a", Some("/srv/repo/src/out"));
    assert_eq!(read(out.0, out.1), (INSIDE, "write_roots", Some(5)));
    let built = ("/srv/repo/src/built/a", Some("/srv/repo/src/built"));
    assert_eq!(read(built.0, built.1), (INSIDE, "exec_roots", Some(6)));
    assert_eq!(read("/opt/data/a", Some("/opt/data")), (INSIDE, "read_roots", Some(8)));
    assert_eq!(
        read("/srv/repo/conf.toml", Some("/srv/repo/conf.toml")),
        (INSIDE, "read_roots", Some(10))
    );
    assert_eq!(read("/usr/share/kit/a.so", Some(PROFILED)), (INSIDE, "base-linux", Some(11)));
    assert_eq!(read("/tmp/effectgate-3/a", Some("/tmp/effectgate-3")), (INSIDE, "tmpdir", None));
    for path in ["/etc/shadow", "/srv/repo/README", "/home/a/x", "/", "/proc/1/environ"] {
        assert_eq!(read(path, None), (OUTSIDE, "read_roots", Some(7)), "{path}");
    }
}

#[test]
fn what_lies_below_a_root_that_is_read_may_not_be_written() {
    for op in [FileOp::OpenWrite, FileOp::Create, FileOp::Unlink, FileOp::Chmod] {
        let out = open(op, "/srv/repo/src/out/a", Some("/srv/repo/src/out"));
        assert_eq!(out, (INSIDE, "write_roots", Some(5)), "{op:?}");
        let tmp = open(op, "/tmp/effectgate-3/a", Some("/tmp/effectgate-3"));
        assert_eq!(tmp, (INSIDE, "tmpdir", None), "{op:?}");
        for (path, root) in [
            ("/srv/repo/src/a", Some("/srv/repo/src")),
            ("/srv/repo/src/built/a", Some("/srv/repo/src/built")),
            ("/usr/share/kit/a", Some(PROFILED)),
            ("/run/secrets/db", Some("/run/secrets/db")),
            ("/etc/passwd", None),
        ] {
            assert_eq!(open(op, path, root), (OUTSIDE, "write_roots", Some(5)), "{op:?} {path}");
        }
    }
}

#[test]
fn profiles_speak_for_no_credentials() {
    for path in [
        "/usr/share/kit/.ssh/id",
        "/usr/share/kit/.npmrc",
        "/usr/share/kit/evidence",
        "/usr/share/kit/evidence/x",
    ] {
        assert_eq!(read(path, Some(PROFILED)), (OUTSIDE, "credentials", None), "{path}");
    }
    // A root that leads into a home by a mount.
    for (path, finding) in [("/home/b/x", OUTSIDE), ("/root/x", OUTSIDE), ("/home/a/x", INSIDE)] {
        assert_eq!(read(path, Some(PROFILED)).0, finding, "{path}");
    }
    // What the manifest names is its own word.
    let named = read("/srv/repo/src/.npmrc", Some("/srv/repo/src"));
    assert_eq!(named, (INSIDE, "workspace_roots", Some(4)));
    let secret = read("/run/secrets/db", Some("/run/secrets/db"));
    assert_eq!(secret, (INSIDE, "mounted_secrets", Some(12)));
}

#[test]
fn files_of_the_kernels_own_are_known_by_path_and_file_system() {
    const PROC: u64 = 0x9fa0;
    const SYSFS: u64 = 0x6265_6572;
    const EXT4: u64 = 0xef53;
    for (path, magic, want) in [
        ("/proc/cpuinfo", PROC, (INSIDE, "read_roots", Some(9))),
        ("/proc/sys/kernel/osrelease", PROC, (INSIDE, "base-linux", Some(11))),
        ("/sys/devices/system/cpu/online", SYSFS, (INSIDE, "base-linux", Some(11))),
        ("/proc/42/maps", PROC, (INSIDE, "own-proc", None)),
        ("/proc/42/task/43/stat", PROC, (INSIDE, "own-proc", None)),
        ("/proc/cpuinfo", EXT4, (OUTSIDE, "read_roots", Some(7))),
        ("/sys/devices/system/cpu/online", PROC, (OUTSIDE, "read_roots", Some(7))),
        ("/proc/43/maps", PROC, (OUTSIDE, "read_roots", Some(7))),
        ("/proc/cpuinfox", PROC, (OUTSIDE, "read_roots", Some(7))),
        ("/proc/kcore", PROC, (OUTSIDE, "read_roots", Some(7))),
        ("/sys/kernel/debug/x", SYSFS, (OUTSIDE, "read_roots", Some(7))),
    ] {
        let object = FileObject { magic, ..object(path, RootMatch::Outside) };
        assert_eq!(read_object(object.clone()), want, "{path}");
        let cut = FileObject { path_cut: true, ..object };
        assert_eq!(read_object(cut).0, OUTSIDE, "{path}, cut off");
    }
}

#[test]
fn devices_streams_and_files_without_a_name() {
    let device = |major, minor| FileObject {
        mode: 0o020_666,
        rdev: Device { major, minor },
        ..object("/srv/repo/src/node", root_at(&manifest_started(), "/srv/repo/src"))
    };
    for (major, minor) in [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0)] {
        assert_eq!(read_object(device(major, minor)), (INSIDE, "device", None));
    }
    assert_eq!(read_object(device(136, 4)), (INSIDE, "terminal", None));
    // A device is its number, wherever its node lies.
    for (major, minor) in [(1, 1), (8, 0), (136, 5), (10, 200)] {
        assert_eq!(read_object(device(major, minor)), (OUTSIDE, "read_roots", Some(7)));
    }
    let internal = FileObject { internal: true, ..object("/memfd:x", RootMatch::Unknown) };
    assert_eq!(read_object(internal), (INSIDE, "internal", None));
    let unknown = object("/srv/repo/src/a", RootMatch::Unknown);
    assert!(matches!(read_object(unknown).0, Finding::Doubt(_)));

    let dev = Device { major: 8, minor: 1 };
    let mut started = manifest_started();
    started.streams.push(Stream { dev, ino: 78, twin: 0, read: true, write: false });
    let tables = Tables::new(started);
    for (op, ino, want) in [
        (FileOp::OpenRead, 78, (INSIDE, "stream", None)),
        (FileOp::OpenWrite, 77, (INSIDE, "stream", None)),
        (FileOp::OpenRead, 77, (OUTSIDE, "read_roots", Some(7))),
        (FileOp::OpenWrite, 78, (OUTSIDE, "write_roots", Some(5))),
    ] {
        let stream = FileObject { dev, ino, ..object("/var/log/x", RootMatch::Outside) };
        assert_eq!(said(judge::file(&tables, 42, op, &stream, None)), want, "{op:?} {ino}");
    }
}

#[test]
fn a_listed_program_may_be_read_where_no_root_is() {
    let dev = Device { major: 8, minor: 1 };
    let at = |ino| FileObject { dev, ino, ..object("/opt/py/python3", RootMatch::Outside) };
    assert_eq!(read_object(at(1000)), (INSIDE, "binaries", Some(14)));
    assert_eq!(read_object(at(1003)), (OUTSIDE, "read_roots", Some(7)));
}

/// An exec of the file with this inode, at this path.
fn run(started: Started, path: &str, ino: u64, root: RootMatch, argv: &[&str]) -> Run {
    let dev = Device { major: 8, minor: 1 };
    let file = FileObject { dev, ino, ..object(path, root) };
    let exec = Exec {
        asked: file.path.clone(),
        file,
        argv: argv.iter().map(|one| one.as_bytes().to_vec()).collect(),
        argv_complete: true,
        ppid: 1,
        start: 5,
    };
    judged(started, &exec)
}

type Run = ((Finding, &'static str, Option<u32>), Option<&'static str>);

fn judged(started: Started, exec: &Exec) -> Run {
    let found = judge::exec(&Tables::new(started), exec);
    (said(found.judgement), found.what)
}

fn listed(path: &str, ino: u64, argv: &[&str]) -> Run {
    run(manifest_started(), path, ino, RootMatch::Outside, argv)
}

#[test]
fn a_program_is_the_file_that_runs() {
    let python = (INSIDE, "binaries", Some(14));
    let outside = (OUTSIDE, "binaries", Some(13));
    assert_eq!(listed("/usr/bin/python3", 1000, &["python3", "a.py"]).0, python);
    assert_eq!(listed("/usr/bin/python3.11", 1000, &["x"]).0, python, "by its inode");
    assert_eq!(listed("/usr/bin/python3", 1007, &["python3"]).0, outside, "another file");
    assert_eq!(listed("/usr/bin/id", 0, &["id"]).0, outside);
    let below = |path: &str, root: &str| {
        let started = manifest_started();
        let root = root_at(&started, root);
        run(started, path, 0, root, &["x"]).0
    };
    assert_eq!(below("/srv/repo/src/built/x", "/srv/repo/src/built").0, INSIDE);
    assert_eq!(
        below("/srv/repo/src/built/x", "/srv/repo/src/built"),
        (INSIDE, "exec_roots", Some(6))
    );
    assert_eq!(below("/srv/repo/src/out/x", "/srv/repo/src/out"), outside, "written by the job");
    assert_eq!(below("/srv/repo/src/python3", "/srv/repo/src"), outside);
    assert_eq!(below("/usr/share/kit/id", PROFILED), outside, "read is not run");
    assert_eq!(below("/tmp/effectgate-3/x", "/tmp/effectgate-3"), outside);
    let out = root_at(&manifest_started(), "/srv/repo/src/out");
    let mounted = run(manifest_started(), "/usr/bin/python3", 1000, out, &["python3"]);
    assert_eq!(mounted.0, outside, "listed, and the job can write it");
    let unknown = run(manifest_started(), "/x", 0, RootMatch::Unknown, &["x"]);
    assert!(matches!(unknown.0.0, Finding::Doubt(_)));
    let envelope = run(started(), "/usr/bin/id", 0, RootMatch::Outside, &["id"]);
    assert_eq!(envelope.0, (Finding::Recorded, "processes", None));
}

#[test]
fn interpreters_and_shells_need_an_exception_that_holds() {
    let inline = listed("/usr/bin/python3.11", 1000, &["python3", "-I", "-c", "1"]);
    assert_eq!(inline, ((OUTSIDE, "exceptions", Some(14)), Some("python -c")));
    let shell = |argv: &[&str]| listed("/usr/bin/bash", 1001, argv);
    assert_eq!(shell(&["bash", "build.sh"]).0, (INSIDE, "exceptions", Some(22)));
    assert_eq!(shell(&["bash", "-c", "make"]).0.0, INSIDE);
    let piped = shell(&["bash", "-c", "curl https://a.example/x | sh"]);
    assert_eq!(piped.0, (OUTSIDE, "dependency_change", Some(15)));

    let built = |name: &str, argv: &[&str]| {
        let started = manifest_started();
        let root = root_at(&started, "/srv/repo/src/built");
        run(started, &format!("/srv/repo/src/built/{name}"), 0, root, argv)
    };
    assert_eq!(built("perl", &["perl", "-e", "1"]).0, (INSIDE, "exceptions", Some(26)));
    assert_eq!(built("perl", &["perl", "x.pl"]).0, (INSIDE, "exec_roots", Some(6)));
    assert_eq!(built("zsh", &["zsh", "x"]).0.0, OUTSIDE, "a shell of the workspace");
    assert_eq!(built("npm", &["npm", "i"]).0.0, OUTSIDE);
    // An exception that is over.
    let mut late = manifest_started();
    late.ts += 60 * 86_400 * 1_000_000_000;
    let over = run(late, "/usr/bin/bash", 1001, RootMatch::Outside, &["bash", "x"]);
    assert_eq!(over, ((OUTSIDE, "exceptions", Some(15)), Some("bash")));
}

#[test]
fn package_managers_under_any_name() {
    let exec = |asked: &str, argv: &[&str]| {
        let dev = Device { major: 8, minor: 1 };
        Exec {
            asked: asked.into(),
            file: FileObject { dev, ino: 1000, ..object("/usr/bin/python3", RootMatch::Outside) },
            argv: argv.iter().map(|one| one.as_bytes().to_vec()).collect(),
            argv_complete: true,
            ppid: 1,
            start: 5,
        }
    };
    let script = exec("/usr/bin/pip3", &["/usr/bin/python3", "/usr/bin/pip3", "install", "x"]);
    let module = exec("/usr/bin/python3", &["python3", "-m", "pip", "install", "x"]);
    let other = exec("/srv/repo/src/tool", &["/usr/bin/python3", "/srv/repo/src/tool"]);
    let open =
        manifest_of(&MANIFEST.replace("version: 2\n", "version: 2\ndependency_change: true\n"));
    for (exec, finding) in [(&script, OUTSIDE), (&module, OUTSIDE), (&other, INSIDE)] {
        assert_eq!(judged(manifest_started(), exec).0.0, finding);
        assert_eq!(judged(under(open.clone()), exec).0.0, INSIDE);
    }
    // What may stand in arguments that are missing is not known.
    let cut = Exec { argv_complete: false, ..other };
    assert!(matches!(judged(manifest_started(), &cut).0.0, Finding::Doubt(_)));
}

#[test]
fn rights_are_those_of_every_root_above() {
    let text = MANIFEST
        .replace("exec_roots: [src/built]", "exec_roots: [src]")
        .replace("write_roots: [src/out]", "write_roots: [src/out, src/out/deep]");
    let started = under(manifest_of(&text));
    let rights = |path: &str| {
        let root = started.roots.iter().find(|root| root.path == path.as_bytes()).unwrap();
        root.rights.names().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(rights("/srv/repo/src"), "read exec");
    assert_eq!(rights("/srv/repo/src/out"), "read write exec");
    assert_eq!(rights("/srv/repo/vendor"), "read");
    let root = root_at(&started, "/srv/repo/src/out/deep");
    let found = run(started.clone(), "/srv/repo/src/out/deep/x", 0, root, &["x"]);
    assert_eq!(found.0, (INSIDE, "exec_roots", Some(6)), "the line that grants it");
    let file = object("/srv/repo/src/out/deep/x", root);
    let written = judge::file(&Tables::new(started), 42, FileOp::Create, &file, None);
    assert_eq!(said(written), (INSIDE, "write_roots", Some(5)));
}

/// One directory with two names, by a bind mount, has what either has; two
/// directories whose names became one text have what both have.
#[test]
fn roots_that_are_one_or_look_like_one() {
    let writes = |started: Started, id| {
        let file = object("/x/a", RootMatch::Below(id));
        judge::file(&Tables::new(started), 42, FileOp::Create, &file, None).within()
    };
    let mut started = manifest_started();
    let RootMatch::Below(write) = root_at(&started, "/srv/repo/src/out") else { panic!() };
    let RootMatch::Below(read) = root_at(&started, "/opt/data") else { panic!() };
    assert!(writes(started.clone(), write) && !writes(started.clone(), read));
    let at = |started: &Started, id| started.roots.iter().position(|root| root.id == id).unwrap();
    let (first, second) = (at(&started, write), at(&started, read));
    let mut one = started.clone();
    one.roots[second].id = write;
    assert!(writes(one, write));
    started.roots[second].path = started.roots[first].path.clone();
    assert!(!writes(started.clone(), write) && !writes(started, read));
}

#[test]
fn a_bound_that_is_reached() {
    let tables = Tables::new(manifest_started());
    let limit = |value| judge::limit(&tables, Limited::WallClock, value);
    assert_eq!(said(limit(60)), (OUTSIDE, "max_wall_clock_sec", Some(31)));
    assert!(limit(59).doubt().is_some(), "stopped before this policy's bound");
}
