//! Any start and any input, sensible or not.

use effectgate_core::input::*;
use proptest::prelude::*;

use super::{JOB, started};

/// A secret, given in forms that give it away wherever they stand.
pub const PLANTED: &str = "Pl4ntedPl4ntedPl4nted";

fn planted() -> impl Strategy<Value = String> {
    let forms =
        ["ghp_{}", "/srv/repo/ghp_{}/a", "/proc/3/x-{}=ghp_{}", "/a/password={}", "x-api-key:{}"];
    let urls = ["https://user:{}@host", "/srv/repo/https://user:{}@host/a", "/a/https:/u:{}@h/b"];
    let more =
        ["DB_PASS={}", "Bearer {}", "-uadmin:{}", "/srv/sk-{}/.ssh/id", "Authorization: Bearer {}"];
    let forms = [&forms[..], &more[..], &urls[..]].concat();
    prop::sample::select(forms).prop_map(|form| form.replace("x-{}", "x").replace("{}", PLANTED))
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        planted().prop_map(String::into_bytes),
        "[a-z/]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..12),
        prop::sample::select(vec!["/etc/shadow", "PATH", "CI", "API_KEY=x", "--token", "a\\b"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn device() -> impl Strategy<Value = Device> {
    (0..9u32, 0..9u32).prop_map(|(major, minor)| Device { major, minor })
}

prop_compose! {
    fn file()(
        path in bytes(),
        path_cut: bool,
        root in prop_oneof![
            prop::sample::select(vec![1, 2, 9, 50]).prop_map(RootMatch::Below),
            Just(RootMatch::Outside),
            Just(RootMatch::Unknown)
        ],
        dev in device(),
        ino in prop_oneof![0..100u64, any::<u64>()],
        twin in 0..3u32,
        mode in prop::sample::select(vec![0, 0o100_644, 0o020_666]),
        rdev in device(),
        magic in prop::sample::select(vec![0, 0x9fa0, u64::MAX]),
        internal: bool,
        unlinked: bool,
        own_proc: bool,
    ) -> FileObject {
        FileObject {
            path, path_cut, root, dev, ino, twin, mode, rdev, magic, internal, unlinked,
            own_proc,
        }
    }
}

fn known() -> impl Strategy<Value = Known> {
    (1..6u32, 0..6u32, 0..9u64, bytes(), bytes()).prop_map(|(pid, ppid, start, exe, comm)| Known {
        pid,
        ppid,
        start,
        exe,
        comm,
    })
}

fn what() -> impl Strategy<Value = What> {
    let start = || prop_oneof![0..9u64, any::<u64>()];
    prop_oneof![
        (1..6u32, 0..6u32, start()).prop_map(|(pid, ppid, start)| What::Fork { pid, ppid, start }),
        (
            file(),
            bytes(),
            any::<bool>(),
            prop::collection::vec(bytes(), 0..4),
            any::<bool>(),
            start()
        )
            .prop_map(|(file, asked, same, argv, argv_complete, start)| {
                let asked = if same { file.path.clone() } else { asked };
                What::Exec(Exec { file, asked, argv, argv_complete, ppid: 1, start })
            }),
        any::<u32>().prop_map(|code| What::Exit { code }),
        (prop::collection::vec(bytes(), 0..4), any::<bool>())
            .prop_map(|(names, complete)| What::Env { names, complete }),
        (
            prop::sample::select(FileOp::ALL),
            file(),
            prop::option::of(file()),
            prop::sample::select(Coverage::ALL)
        )
            .prop_map(|(op, object, other, coverage)| What::File {
                op,
                object,
                other,
                coverage
            }),
        (
            prop::sample::select(NetOp::ALL),
            prop::sample::select(vec![
                "127.0.0.1",
                "::1",
                "::ffff:192.0.2.1",
                "8.8.8.8",
                "::",
                "198.51.100.7"
            ]),
            prop::sample::select(vec![0u16, 443, 8080]),
            prop::sample::select(vec![6u32, 17, 132, u32::MAX]),
            any::<bool>(),
            prop::sample::select(Namespace::ALL)
        )
            .prop_map(|(op, address, port, protocol, own, namespace)| {
                let address = address.parse().unwrap();
                What::Net { op, address, port, protocol, own, namespace }
            }),
        (
            prop::sample::select(NetOp::ALL),
            prop_oneof![
                file().prop_map(UnixPeer::File),
                bytes().prop_map(UnixPeer::Abstract),
                Just(UnixPeer::Unnamed),
            ],
            any::<bool>()
        )
            .prop_map(|(op, peer, own)| What::Unix { op, peer, own }),
        prop_oneof![
            Just(Guard::IoUring),
            any::<u32>().prop_map(|number| Guard::CompatSyscall { number }),
            any::<[u32; 3]>()
                .prop_map(|[family, kind, protocol]| { Guard::Socket { family, kind, protocol } }),
            (known(), prop::option::of(prop::collection::vec(bytes(), 0..4)))
                .prop_map(|(process, env)| Guard::Entered { process, env }),
            (1..6u32).prop_map(|pid| Guard::Escaped { pid }),
            (prop::sample::select(Reach::ALL), any::<u32>(), 0..3u32, prop::option::of(file()))
                .prop_map(|(reach, detail, pid, object)| Guard::Reached {
                    reach,
                    detail,
                    pid,
                    object
                }),
            any::<(u16, u16)>().prop_map(|(kind, op)| Guard::Unknown { kind, op }),
        ]
        .prop_map(What::Guard),
    ]
}

fn decided() -> impl Strategy<Value = Option<Decided>> {
    prop::option::of(prop::sample::select(Decided::ALL))
}

pub fn any_input() -> impl Strategy<Value = Input> {
    let ts = || any::<u64>();
    let classes = || prop::collection::vec(prop::sample::select(Class::ALL), 0..3);
    prop_oneof![
        12 => (ts(), 1..6u32, 1..6u32, any::<u32>(), bytes(), decided(), what()).prop_map(
            |(ts, pid, tid, uid, comm, kernel, what)| {
                Input::Event(Event { ts, job: JOB, pid, tid, uid, comm, kernel, what })
            }
        ),
        1 => (ts(), classes(), classes())
            .prop_map(|(ts, seen, missing)| Input::Canary { job: JOB, ts, seen, missing }),
        1 => ts().prop_map(|ts| Input::Launched { job: JOB, ts }),
        1 => (
            ts(),
            prop::sample::select(Stage::ALL),
            prop::collection::vec((prop::sample::select(Class::ALL), any::<u64>()), 0..4)
        )
            .prop_map(|(ts, stage, lost)| Input::Gap { job: JOB, ts, stage, lost }),
        1 => (
            ts(),
            prop_oneof![
                any::<u32>().prop_map(|killed| Notice::Leftovers { killed }),
                any::<u64>().prop_map(|value| Notice::Limit { limit: Limited::WallClock, value }),
                any::<String>().prop_map(|why| Notice::Stopped { why }),
                planted().prop_map(|why| Notice::Stopped { why }),
                any::<String>().prop_map(|why| Notice::CanaryFailed { why }),
                (prop::option::of(any::<u32>()), any::<u64>())
                    .prop_map(|(pid, violation)| Notice::Killed { pid, violation }),
                prop::collection::vec((prop::sample::select(Class::ALL), any::<u64>()), 0..4)
                    .prop_map(|counts| Notice::Repeated { counts }),
            ]
        )
            .prop_map(|(ts, notice)| Input::Notice { job: JOB, ts, notice }),
    ]
}

prop_compose! {
    pub fn any_start()(
        backend in prop::sample::select(Backend::ALL),
        mode in prop::sample::select(Mode::ALL),
        judged: bool,
        min_coverage in prop::sample::select(Coverage::ALL),
        argv in prop::collection::vec(bytes(), 0..4),
        env in prop::collection::vec(bytes(), 0..3),
        processes in prop::collection::vec(known(), 0..3),
        name in ".{0,8}",
        boot_offset: u64,
        twin: bool,
        root in planted(),
    ) -> Started {
        let mut started = Started { backend, mode, judged, min_coverage, argv, env, processes, name, boot_offset, ..started() };
        started.roots[2].path = format!("/tmp/{root}").into();
        started.cgroup = format!("/sys/fs/cgroup/{root}");
        if twin {
            // Two entries of the policy that resolved to one directory.
            started.roots[1].path = started.roots[0].path.clone();
        }
        started
    }
}
