//! What the kernel programs are told: from it they come to the same answers.

mod common;
#[path = "common/kernel.rs"]
mod kernel;

use std::sync::LazyLock;

use common::*;
use effectgate_core::input::*;
use effectgate_core::judge::{
    self, Finding, Judgement, KernelTables, KnownFile, KnownHost, Peer, Tables,
};
use effectgate_core::policy::{Entry, Key, List, Policy, Rights};
use kernel::{Answer, Seen};
use proptest::prelude::*;

const DISK: Device = Device { major: 8, minor: 1 };
const PROC: u64 = 0x9fa0;
const PID: u32 = 42;

#[test]
fn a_manifest_compiled() {
    let mut started = manifest_started();
    started.sockets =
        vec![Found { entry: 0, path: b"/run/bus".to_vec(), dev: DISK, ino: 50, twin: 0 }];
    started.streams.push(Stream { dev: DISK, ino: 78, twin: 0, read: true, write: false });
    started.hosts = vec![vec!["192.0.2.1".parse().unwrap()]];
    let id = |path: &str| match root_at(&started, path) {
        RootMatch::Below(id) => id,
        other => panic!("{other:?}"),
    };
    let ids = ["/srv/repo/src", "/srv/repo/src/out", "/srv/repo/src/built", PROFILED].map(id);
    let KernelTables { reads, programs, grants, files, terminals, hosts } =
        Tables::new(started).for_kernel();
    assert!(reads && programs);
    let grant = |id: u32| {
        let grant = grants.iter().find(|grant| grant.root == id).unwrap();
        (grant.read, grant.write, grant.exec, grant.named)
    };
    let all = [
        (true, false, false, true),
        (true, true, false, true),
        (true, false, true, true),
        (true, false, false, false),
    ];
    assert_eq!(ids.map(grant), all);
    assert_eq!(grant(9999), (true, true, false, true), "TMPDIR");
    let file =
        |ino, known: KnownFile| KnownFile { id: FileId { dev: DISK, ino, twin: 0 }, ..known };
    let runs = KnownFile { stream_read: true, program: true, ..KnownFile::default() };
    let told = KnownFile { arguments: true, ..runs };
    let all = [
        file(50, KnownFile { unix: true, ..KnownFile::default() }),
        file(77, KnownFile { stream_write: true, ..KnownFile::default() }),
        file(78, KnownFile { stream_read: true, ..KnownFile::default() }),
        // python3, bash (an exception covers it), ls
        file(1000, told),
        file(1001, told),
        file(1002, runs),
    ];
    assert_eq!(files, all);
    assert_eq!(terminals, [Device { major: 136, minor: 4 }]);
    let address = "192.0.2.1".parse().unwrap();
    assert_eq!(hosts, [KnownHost { address, port: None, protocol: None }]);
}

#[test]
fn what_can_never_run_is_no_program() {
    for (edit, want) in [
        (|policy: &mut Policy| agent(policy).exceptions.clear(), (false, false)),
        (|policy: &mut Policy| agent(policy).dependency_change = true, (true, false)),
    ] as [(fn(&mut Policy), _); 2]
    {
        let mut policy = manifest();
        edit(&mut policy);
        let files = Tables::new(under(policy)).for_kernel().files;
        let bash = files.iter().find(|file| file.id.ino == 1001).unwrap();
        assert_eq!((bash.program, bash.arguments), want);
        assert!(bash.stream_read, "reading it is another question");
    }
}

fn agent(policy: &mut Policy) -> &mut effectgate_core::policy::Agent {
    policy.agent.as_mut().unwrap()
}

static MANIFEST: LazyLock<Policy> = LazyLock::new(manifest);

/// Manifests of every kind, and an envelope's questions.
fn any_started() -> impl Strategy<Value = Started> {
    let rights = || (any::<bool>(), any::<bool>(), any::<bool>());
    let flags = any::<(bool, bool, bool, bool)>();
    (flags, prop::collection::vec(rights(), 8)).prop_map(|(flags, rights)| {
        let (reads, programs, exceptions, dependencies) = flags;
        let mut policy = MANIFEST.clone();
        agent(&mut policy).dependency_change = dependencies;
        if !exceptions {
            agent(&mut policy).exceptions.clear();
        }
        let sockets = vec![Entry { value: "/run/bus".to_owned(), line: 3, column: 1 }];
        policy.unix_sockets = List::new(Key { name: "unix_sockets", line: 3 }, sockets);
        for (entry, (read, write, exec)) in policy.roots.entries.iter_mut().zip(rights) {
            if !entry.profile && !judge::is_kernel_file(entry) {
                entry.rights = Rights { read, write, exec, search: false };
            }
        }
        let mut started = under(policy);
        // It can be anywhere, and paths of it below a root are not the kernel's matter.
        started.own.clear();
        started.hosts = vec![vec!["192.0.2.1".parse().unwrap()]];
        started.sockets =
            vec![Found { entry: 0, path: b"/run/bus".to_vec(), dev: DISK, ino: 50, twin: 0 }];
        started.streams.push(Stream { dev: DISK, ino: 78, twin: 0, read: true, write: false });
        // What the kernel makes up is held like any other root.
        let cpuinfo = started.policy.roots.entries.iter().position(judge::is_kernel_file);
        let (path, rights) = (b"/proc/cpuinfo".to_vec(), Rights::READ);
        started.roots.push(Root { id: 500, path, entry: cpuinfo, rights });
        // Under one of its names a listed program is a package manager.
        started.binaries.push(Found {
            entry: 2,
            path: b"/usr/bin/npm".to_vec(),
            dev: DISK,
            ino: 1003,
            twin: 0,
        });
        if !reads {
            started.policy.roots.reads = None;
        }
        if !programs {
            started.policy.binaries = None;
            started.binaries.clear();
        }
        started
    })
}

/// A file where it can be: its path, root and file system belong together.
fn any_file(started: &Started) -> impl Strategy<Value = FileObject> + use<> {
    let roots = started.roots.clone();
    let below = prop::sample::select(roots).prop_flat_map(|root| {
        let name =
            prop::sample::select(vec!["a", "bash", "x/.ssh/id", ".npmrc", "npm", "d/python3"]);
        name.prop_map(move |name| {
            let path = [&root.path, &b"/"[..], name.as_bytes()].concat();
            (path, RootMatch::Below(root.id), 0xef53)
        })
    });
    let elsewhere = prop::sample::select(vec![
        ("/etc/passwd", 0xef53, None),
        ("/proc/cpuinfo", PROC, Some(RootMatch::Below(500))),
        ("/proc/42/comm", PROC, None),
        ("/proc/43/comm", PROC, None),
        ("/proc/cpuinfo", 0xef53, None),
    ])
    .prop_flat_map(|(path, magic, known)| {
        let root = match known {
            Some(root) => vec![root],
            None => vec![RootMatch::Outside, RootMatch::Unknown, RootMatch::Below(50)],
        };
        let root = prop::sample::select(root);
        root.prop_map(move |root| (path.as_bytes().to_vec(), root, magic))
    });
    let devices = vec![(0, 0), (1, 3), (1, 9), (1, 1), (5, 0), (136, 4), (136, 5), (8, 0)];
    let modes = vec![0o100_644, 0o100_644, 0o040_755, CHARACTER | 0o600, 0o060_600];
    (
        prop_oneof![below, elsewhere],
        prop::sample::select(vec![0, 5, 50, 77, 78]),
        prop::sample::select(modes),
        prop::sample::select(devices),
        prop::bool::weighted(0.1),
    )
        .prop_map(|((path, root, magic), ino, mode, (major, minor), internal)| FileObject {
            own_proc: magic == PROC && path.starts_with(b"/proc/42/"),
            path,
            root,
            dev: DISK,
            ino,
            mode,
            rdev: if mode & 0o100_000 == 0 { Device { major, minor } } else { Device::default() },
            magic,
            internal,
            ..FileObject::default()
        })
}

const CHARACTER: u32 = 0o020_000;

/// What the kernel programs see of it.
fn seen<'a>(started: &Started, file: &'a FileObject) -> Seen<'a> {
    let root = match file.root {
        RootMatch::Below(id) => started.roots.iter().find(|root| root.id == id),
        RootMatch::Outside | RootMatch::Unknown => None,
    };
    let below = root.and_then(|root| file.path.strip_prefix(root.path.as_slice()));
    let mut names = below.unwrap_or_default().split(|byte| *byte == b'/');
    Seen { dotted: names.any(|name| name.starts_with(b".")), file }
}

/// A listed program where it lies, or any file.
fn any_program(started: &Started) -> impl Strategy<Value = FileObject> + use<> {
    let listed: Vec<FileObject> = started
        .binaries
        .iter()
        .map(|found| FileObject {
            path: found.path.clone(),
            dev: found.dev,
            ino: found.ino,
            mode: 0o100_755,
            ..FileObject::default()
        })
        .collect();
    let roots: Vec<RootMatch> =
        started.roots.iter().map(|root| RootMatch::Below(root.id)).collect();
    let root = prop_oneof![
        2 => Just(RootMatch::Outside),
        1 => prop::sample::select(roots),
    ];
    let any = any_file(started);
    if listed.is_empty() {
        return any.boxed();
    }
    let listed =
        (prop::sample::select(listed), root).prop_map(|(file, root)| FileObject { root, ..file });
    prop_oneof![listed, any].boxed()
}

fn any_exec(started: &Started) -> impl Strategy<Value = Exec> + use<> {
    let words = vec!["-c", "x", "-m", "pip", "curl", "|", "sh", "curl x | sh"];
    (
        any_program(started),
        prop::sample::select(vec!["", "", "/usr/bin/npm", "/srv/repo/src/tool"]),
        prop::collection::vec(prop::sample::select(words), 0..4),
        any::<bool>(),
    )
        .prop_map(|(file, asked, argv, argv_complete)| Exec {
            asked: if asked.is_empty() { file.path.clone() } else { asked.into() },
            file,
            argv: ["program"].into_iter().chain(argv).map(|word| word.into()).collect(),
            argv_complete,
            ppid: 1,
            start: 1,
        })
}

/// Where the kernel answers at all, it says the same.
fn agrees(answer: Answer, judgement: &Judgement) -> Result<(), TestCaseError> {
    prop_assert!(!judgement.differs(answer), "{answer:?}, and {judgement:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn files(
        (started, mut object, other, op) in any_started().prop_flat_map(|started| {
            let (one, other) = (any_file(&started), any_file(&started));
            (Just(started), one, prop::option::of(other), prop::sample::select(FileOp::ALL))
        })
    ) {
        let other = other.filter(|_| matches!(op, FileOp::Rename | FileOp::Link));
        let (one, two) =
            (seen(&started, &object), other.as_ref().map(|other| seen(&started, other)));
        let tables = Tables::new(started.clone());
        let said = kernel::file(&tables.for_kernel(), op, &one, two.as_ref());
        let judgement = judge::file(&tables, PID, op, &object, other.as_ref());
        agrees(said, &judgement)?;
        // What it leaves to user space is reading only, and hardly any of it.
        prop_assert!(said.is_some() || op == FileOp::OpenRead, "{op:?}");
        object.own_proc = false;
        prop_assert_eq!(judgement, judge::file(&tables, PID, op, &object, other.as_ref()));
    }

    #[test]
    fn programs(
        (started, exec) in any_started().prop_flat_map(|started| {
            let exec = any_exec(&started);
            (Just(started), exec)
        })
    ) {
        let tables = Tables::new(started);
        let script = exec.asked != exec.file.path;
        let said = kernel::exec(&tables.for_kernel(), &exec.file, script);
        let judgement = judge::exec(&tables, &exec).judgement;
        agrees(said, &judgement)?;
        if said.is_none() {
            let unasked = judgement.finding == Finding::Recorded;
            prop_assert!(!unasked, "{judgement:?}");
        }
    }

    #[test]
    fn sockets(
        started in any_started(),
        op in prop::sample::select(NetOp::ALL),
        address in prop::sample::select(vec!["192.0.2.1", "127.0.0.1", "::1", "::", "0.0.0.0", "8.8.8.8"]),
        port in prop::sample::select(vec![0u16, 443, 80]),
        protocol in prop::sample::select(vec![6u32, 17]),
        own: bool,
        namespace in prop::sample::select(Namespace::ALL),
        ino in prop::sample::select(vec![0u64, 50, 77]),
    ) {
        let tables = Tables::new(started);
        let told = tables.for_kernel();
        let peer = Peer { address: address.parse().unwrap(), port, protocol, own, namespace };
        let said = kernel::net(&told, op, peer.address, port, protocol, own, namespace);
        agrees(said, &judge::net(&tables, op, peer).judgement)?;
        let bound = FileObject { dev: DISK, ino, ..object("/run/bus", RootMatch::Outside) };
        for peer in [UnixPeer::File(bound), UnixPeer::Abstract(b"bus".to_vec()), UnixPeer::Unnamed] {
            let said = kernel::unix(&told, &peer, own);
            agrees(said, &judge::unix(&tables, &peer, own))?;
        }
    }
}
