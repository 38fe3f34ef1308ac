//! Drafts: what a run used is allowed, nothing else is, and what cannot be
//! allowed is said.

mod common;

use common::any::any_input;
use common::*;
use effectgate_core::Outcome;
use effectgate_core::draft::{Draft, Known, TraceError, Wanted, of_log, of_trace};
use effectgate_core::input::*;
use effectgate_core::policy::{self, Policy};
use effectgate_core::replay::replay;
use proptest::prelude::*;

const DAY: &str = "2023-11-14";

fn wanted(trial: bool) -> Wanted<'static> {
    Wanted {
        workspace: b"/srv/shop",
        root_depth: None,
        id: None,
        owner: None,
        profiles: &[],
        trial,
    }
}

fn recorded(inputs: Vec<Input>) -> Vec<u8> {
    let mut started = started();
    started.workspace = Some(b"/srv/shop".to_vec());
    log(&job(started, inputs).0)
}

fn envelope(inputs: Vec<Input>) -> (Draft, Policy) {
    let draft = of_log(&recorded(inputs)[..]).unwrap().envelope(&wanted(true));
    let policy = policy::parse("d.json", draft.text.as_bytes(), DAY)
        .unwrap_or_else(|faults| panic!("{faults:?}\n{}", draft.text));
    (draft, policy)
}

fn manifest(inputs: Vec<Input>) -> Draft {
    let draft = of_log(&recorded(inputs)[..]).unwrap().manifest(&wanted(true));
    policy::parse("d.yml", draft.text.as_bytes(), DAY)
        .unwrap_or_else(|faults| panic!("{faults:?}\n{}", draft.text));
    draft
}

fn roots(policy: &Policy) -> Vec<&str> {
    policy.roots.entries.iter().map(|root| root.path.as_str()).collect()
}

fn on(op: FileOp, path: &str) -> Input {
    let mut object = object(path, RootMatch::Outside);
    if matches!(op, FileOp::Mkdir | FileOp::Rmdir) {
        object.mode = 0o040_755;
    }
    event(What::File { op, object, other: None, coverage: Coverage::Object })
}

fn connect(address: &str, port: u16) -> Input {
    let address = address.parse().unwrap();
    event(What::Net {
        op: NetOp::Connect,
        address,
        port,
        protocol: 6,
        own: false,
        namespace: Namespace::Own,
    })
}

#[test]
fn roots_are_there_before_and_after() {
    use FileOp::*;
    let work =
        |all: &[(FileOp, &str)]| all.iter().map(|(op, path)| on(*op, path)).collect::<Vec<_>>();
    for (all, want) in [
        (vec![(OpenWrite, "/srv/shop/a/f")], vec!["/srv/shop/a"]),
        (vec![(Mkdir, "/srv/shop/a"), (Create, "/srv/shop/a/f")], vec!["/srv/shop"]),
        (
            vec![(OpenWrite, "/srv/shop/a/f"), (Unlink, "/srv/shop/a/f"), (Rmdir, "/srv/shop/a")],
            vec!["/srv/shop"],
        ),
        (
            vec![(Create, "/srv/shop/a/f"), (Create, "/srv/shop/b/f")],
            vec!["/srv/shop/a", "/srv/shop/b"],
        ),
        (vec![(Create, "/srv/shop/a/b/f"), (Create, "/srv/shop/a/f")], vec!["/srv/shop/a"]),
        (vec![(Create, "/srv/repo/f")], vec!["/srv/repo"]),
        (vec![(OpenRead, "/etc/hosts")], vec![]),
    ] {
        let (draft, policy) = envelope(work(&all));
        assert_eq!(roots(&policy), want, "{all:?}");
        assert!(draft.left_out.is_empty(), "{draft:?}");
    }
    let (draft, policy) = envelope(vec![write("/tmp/effectgate-3/f", RootMatch::Below(9))]);
    assert!(roots(&policy).is_empty() && draft.left_out.is_empty(), "{draft:?}");
    let (draft, _) = envelope(work(&[(Create, "/f"), (OpenWrite, "/proc/1/oom_adj")]));
    assert_eq!(draft.left_out.len(), 2, "{draft:?}");
}

#[test]
fn hosts_and_keys_are_exact() {
    let (_, policy) = envelope(vec![
        // The first environment comes from outside.
        env(&["PATH", "CI", "EDITOR"]),
        env(&["PATH", "MADE", "MADE_TOKEN"]),
        connect("192.0.2.1", 443),
        connect("192.0.2.9", 80),
    ]);
    let keys: Vec<&str> = policy.env.entries().iter().map(|entry| entry.value.as_str()).collect();
    assert_eq!(keys, ["CI", "EDITOR", "MADE_TOKEN"]);
    let hosts: Vec<String> =
        policy.hosts.entries().iter().map(|entry| entry.value.to_string()).collect();
    assert_eq!(hosts, ["192.0.2.9:80", "example.com:443"]);
}

#[test]
fn a_manifest_says_from_what_each_entry_follows() {
    let draft = manifest(vec![
        exec(42, 1, "/usr/bin/make"),
        exec(42, 1, "/usr/bin/dash"),
        exec(42, 1, "/srv/shop/out/program"),
        exec(42, 1, "/usr/bin/npm"),
        exec(42, 1, "/opt/tool/bin/tool"),
        on(FileOp::Create, "/srv/shop/out/f"),
        on(FileOp::Create, "/srv/elsewhere/f"),
        on(FileOp::OpenRead, "/srv/shop/src/a.c"),
        on(FileOp::OpenRead, "/etc/hosts"),
        on(FileOp::OpenRead, "/home/a/.ssh/id_ed25519"),
    ]);
    let text = &draft.text;
    for line in [
        "workspace_roots:\n  - \"out\"",
        "  - \"src\"  # line ",
        "write_roots:\n  - \"out\"  # line ",
        "read_roots:\n  - \"/etc/hosts\"  # line ",
        "exec_roots:\n  - \"out\"  # line ",
        "binaries:\n  - \"dash\"  # line ",
        "  - \"make\"  # line 4: sh is /usr/bin/make\n",
        "  - allows: \"dash\"  # line ",
        "dependency_change: true  # npm installs what others wrote",
        "  mode: deny\n",
        "max_wall_clock_sec: 60  # it took 1 seconds",
        "# not drafted: /home/a/.ssh/id_ed25519: credentials are for people to grant",
        "# not drafted: /opt/tool/bin/tool: it is neither on the system's path nor",
        "# not drafted: /srv/elsewhere: a manifest allows writing below the workspace",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(draft.left_out.len(), 3, "{draft:?}");
}

#[test]
fn what_was_mapped_and_spoken_to_is_drafted() {
    let socket = |path: &str| UnixPeer::File(object(path, RootMatch::Outside));
    let speak = |peer, own| event(What::Unix { op: NetOp::Connect, peer, own });
    let draft = manifest(vec![
        on(FileOp::Create, "/srv/shop/out/plug.so"),
        on(FileOp::MapExec, "/srv/shop/out/plug.so"),
        on(FileOp::MapExec, "/srv/shop/vendor/lib.so"),
        on(FileOp::MapExec, "/tmp/effectgate-3/made.so"),
        on(FileOp::Setxattr, "/srv/shop/marks/f"),
        speak(socket("/run/bus"), false),
        speak(socket("/srv/shop/own"), true),
        speak(UnixPeer::Abstract(b"bus".to_vec()), false),
        event(What::Net {
            op: NetOp::Connect,
            address: "127.0.0.1".parse().unwrap(),
            port: 80,
            protocol: 6,
            own: false,
            namespace: Namespace::Foreign,
        }),
    ]);
    for line in [
        "exec_roots:\n  - \"out\"  # line 5: sh mapped /srv/shop/out/plug.so\n",
        "  - \"marks\"  # line ",
        "unix_sockets:\n  - \"/run/bus\"  # line ",
        "# not drafted: bus: a socket without a file",
        "# not drafted: 127.0.0.1:80: it is in a network that is not the job's",
        "# not drafted: /tmp/effectgate-3/made.so: nothing may run from TMPDIR",
    ] {
        assert!(draft.text.contains(line), "{line}\n{}", draft.text);
    }
    assert_eq!(draft.left_out.len(), 3, "{draft:?}");
    assert!(!draft.text.contains("vendor"), "{}", draft.text);
}

#[test]
fn profiles_are_chosen_and_roots_cut_as_asked() {
    let known = |name: &str, read: &[&str], search: &[&str]| {
        let bytes = |all: &[&str]| all.iter().map(|it| it.as_bytes().to_vec()).collect();
        Known::new(name, bytes(read), bytes(search))
    };
    let profiles = [
        known("base-linux", &["/etc/ld.so.cache"], &[]),
        known("c", &["/etc/ld.so.cache", "/usr/include"], &["/usr/lib/gcc"]),
        known("git", &["/etc/ld.so.cache", "/etc/gitconfig"], &[]),
    ];
    let used = of_log(
        &recorded(vec![
            exec(42, 1, "/usr/lib/gcc/cc1"),
            on(FileOp::OpenRead, "/etc/ld.so.cache"),
            on(FileOp::OpenRead, "/usr/include/stdio.h"),
            on(FileOp::Create, "/srv/shop/a/b/c/f"),
            on(FileOp::Create, "/srv/shop/a/d/f"),
        ])[..],
    )
    .unwrap();
    let draft =
        used.manifest(&Wanted { profiles: &profiles, root_depth: Some(1), ..wanted(false) });
    assert!(draft.left_out.is_empty(), "{draft:?}");
    assert!(draft.text.contains("extends:\n  - \"base-linux\"  # line"), "{}", draft.text);
    assert!(draft.text.contains("  - \"c\"  # line"), "{}", draft.text);
    assert!(!draft.text.contains("git\"") && !draft.text.contains("read_roots"), "{}", draft.text);
    assert!(draft.text.contains("write_roots:\n  - \"a\"  # line"), "{}", draft.text);
}

/// What people have to write is empty, and is refused until they have.
#[test]
fn a_draft_is_refused_until_people_have_written_their_part() {
    let used = of_log(&recorded(vec![exec(42, 1, "/usr/bin/bash")])[..]).unwrap();
    let text = used.manifest(&wanted(false)).text;
    let rules: Vec<_> = policy::parse("d.yml", text.as_bytes(), DAY)
        .unwrap_err()
        .iter()
        .map(|it| it.rule)
        .collect();
    for rule in ["agent-id", "owner-missing", "exception-reviewers", "blank", "date"] {
        assert!(rules.contains(&rule), "{rule} in {rules:?}");
    }
    let text = used.envelope(&wanted(false)).text;
    assert!(policy::parse("d.json", text.as_bytes(), DAY).is_err());
}

const TRACE: &str = r#"{"ts":"2026-11-01T10:00:00Z","type":"mcp_server","name":"hello","binary":null,"argv":["repo-tools"],"cwd":null,"host":null,"server":"repo","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","tools":["read_file"]}
{"ts":"2026-11-01T10:00:01Z","type":"step","name":"1","binary":null,"argv":[],"cwd":null,"host":null,"step":1}
{"ts":"2026-11-01T10:00:02Z","type":"tool_call","name":"read_file","binary":null,"argv":[],"cwd":"docs","host":null,"server":"repo","step":1}
{"ts":"2026-11-01T10:00:03Z","type":"exec","name":"build","binary":"bash","argv":["bash","-c","make"],"cwd":"docs/a","host":null,"step":1,"env":["CI","PATH"]}
{"ts":"2026-11-01T10:01:05Z","type":"net","name":"fetch","binary":"curl","argv":["curl"],"cwd":"docs","host":"docs.example.com:443","step":2}
"#;

#[test]
fn a_trace_passes_under_its_draft() {
    use effectgate_core::compare::{Against, compare};
    let draft = of_trace(TRACE.as_bytes(), "/srv/shop").unwrap().manifest(&wanted(true));
    assert!(draft.left_out.is_empty(), "{draft:?}");
    let policy = policy::parse("d.yml", draft.text.as_bytes(), DAY)
        .unwrap_or_else(|faults| panic!("{faults:?}\n{}", draft.text));
    let against =
        Against { policy: &policy, workspace: "/srv/shop", today: DAY, resolve: &mut |_| None };
    let found = compare(TRACE.as_bytes(), against).unwrap();
    assert!(found.holds, "{:?}\n{}", found.findings, draft.text);
    assert_eq!(roots(&policy)[0], "docs");
}

/// Programs behind others, and where they lie, count as `compare` counts them.
#[test]
fn a_trace_of_any_program_passes_under_its_draft() {
    use effectgate_core::compare::{Against, compare};
    for fields in [
        r#""binary":"env","argv":["env","A=b","timeout","5","make"]"#,
        r#""binary":"env","argv":["-S","bash -c x"]"#,
        r#""binary":"find","argv":["find",".","-exec","python3","-c","x",";"]"#,
        r#""binary":"python3","argv":["-c","x"]"#,
        r#""binary":"python3","argv":["python3","-m","pip","list"]"#,
        r#""binary":"python3","argv":["/usr/bin/pip3","list"]"#,
        r#""binary":"git","argv":["bash","-lc","x"]"#,
        r#""binary":"bash","argv":["bash","-lc","cd x && pip install y; node -e z"]"#,
        r#""binary":"bin/built","argv":[]"#,
        r#""binary":"../docs/bin/built","argv":[]"#,
        r#""binary":"node","argv":["node","--import","data:text/javascript,x"]"#,
        r#""binary":"nice","argv":["nice","bin/built"]"#,
    ] {
        let line = format!(
            "{{\"ts\":0,\"type\":\"exec\",\"name\":\"x\",\"cwd\":\"docs\",\"host\":null,{fields}}}\n"
        );
        let draft = of_trace(line.as_bytes(), "/srv/shop").unwrap().manifest(&wanted(true));
        assert!(draft.left_out.is_empty(), "{draft:?}");
        let policy = policy::parse("d.yml", draft.text.as_bytes(), DAY)
            .unwrap_or_else(|faults| panic!("{faults:?}\n{}", draft.text));
        let resolve = &mut |_: &str| None;
        let against = Against { policy: &policy, workspace: "/srv/shop", today: DAY, resolve };
        let found = compare(line.as_bytes(), against).unwrap();
        assert!(found.holds, "{fields}: {:?}\n{}", found.findings, draft.text);
    }
}

#[test]
fn a_draft_repeats_no_secret_of_a_trace() {
    const SECRET: &str = "ghp_0123456789abcdefABCDEF";
    const EVENT: &str = r#"{"ts":0,"type":"net","name":"NAME","binary":"BINARY","argv":["x","ARGV"],"cwd":"CWD","host":"HOST","env":["ENV"]}
{"ts":0,"type":"mcp_server","name":"x","binary":null,"argv":["srv","--token","ARGV"],"cwd":null,"host":null,"server":"SERVER","digest":"DIGEST","tools":["TOOLS"]}
"#;
    for field in ["NAME", "BINARY", "ARGV", "CWD", "HOST", "ENV", "SERVER", "DIGEST", "TOOLS"] {
        for secret in [SECRET.to_owned(), format!("A_TOKEN={SECRET}"), format!("//u:{SECRET}@h/")] {
            let trace = EVENT.replace(field, &secret);
            let used = of_trace(trace.as_bytes(), "/srv/shop").unwrap();
            for draft in [used.manifest(&wanted(true)), used.envelope(&wanted(true))] {
                assert!(!format!("{draft:?}").contains(SECRET), "{field}: {draft:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_gives_no_draft() {
    let whole = recorded(vec![on(FileOp::Create, "/srv/shop/f")]);
    for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
        assert!(of_log(&whole[..cut]).is_err(), "{cut}");
    }
    assert!(matches!(of_trace(&b""[..], "/srv"), Err(TraceError::Empty)));
    let broken = TRACE.replace("\"step\":2", "\"step\":0");
    assert!(matches!(of_trace(broken.as_bytes(), "/srv"), Err(TraceError::Flaw { line: 5, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever ran: the draft can be read, and either the run passes under it
    /// or it would not under any (and the draft says so when it is tried).
    #[test]
    fn any_run_has_a_draft(inputs in prop::collection::vec(any_input(), 0..24)) {
        let log = log(&job(started(), inputs).0);
        let used = of_log(&log[..]).unwrap();
        let draft = used.envelope(&wanted(true));
        let policy = policy::parse("d.json", draft.text.as_bytes(), DAY);
        prop_assert!(policy.is_ok(), "{policy:?}\n{}", draft.text);
        let verdict = replay(&log[..], policy.unwrap()).unwrap().verdict;
        // What still is outside was left out, or is what no root allows.
        if draft.left_out.is_empty() && verdict.verdict == Outcome::Fail {
            for violation in &verdict.violations {
                let class = violation.class;
                prop_assert!(matches!(class, Class::File | Class::Guard), "{violation}\n{}", draft.text);
            }
        }
        let draft = used.manifest(&wanted(true));
        let policy = policy::parse("d.yml", draft.text.as_bytes(), DAY);
        let rules: Vec<_> = policy.err().into_iter().flatten().map(|it| it.rule).collect();
        prop_assert!(rules.iter().all(|rule| ["binary-name", "nothing-runs"].contains(rule)), "{rules:?}\n{}", draft.text);
    }
}
