//! The capability delta: what counts as more, how it is said, and that what it
//! does not mention is permitted by neither or by both.

mod common;
#[path = "common/manifest.rs"]
mod manifest;

use effectgate_core::diff::{Kind, diff};
use effectgate_core::input::{Coverage, Mode};
use effectgate_core::policy::*;
use effectgate_core::profile;
use manifest::{envelope, manifest, *};
use proptest::prelude::*;

const TODAY: &str = "2026-01-31";

type Edit = fn(&mut Policy);

fn agent(policy: &mut Policy) -> &mut Agent {
    policy.agent.as_mut().unwrap()
}

/// Kinds of what is more and of what is less, after both edits of the same manifest.
fn kinds(old: Edit, new: Edit) -> (Vec<Kind>, Vec<Kind>) {
    let (mut before, mut after) = (manifest(), manifest());
    old(&mut before);
    new(&mut after);
    let delta = diff(&before, &after);
    let kinds = |all: &[effectgate_core::diff::Change]| all.iter().map(|it| it.kind).collect();
    (kinds(&delta.more), kinds(&delta.less))
}

#[test]
fn what_is_more_and_what_is_not() {
    let same: Edit = |_| {};
    let table: [(&str, Edit, Edit, &[Kind]); 40] = [
        ("nothing", same, same, &[]),
        ("a root", same, |p| root(p, "docs", Rights::WRITE), &[Kind::Write]),
        ("a root below one", same, |p| root(p, "src/a", Rights::WRITE), &[]),
        ("a neighbour of one", same, |p| root(p, "srcs", Rights::WRITE), &[Kind::Write]),
        ("the whole", same, |p| root(p, ".", Rights::WRITE), &[Kind::Write]),
        ("the same again", same, |p| root(p, "src", Rights::READ), &[]),
        ("more rights", same, |p| root(p, "src", Rights::EXEC), &[Kind::Exec]),
        (
            "two, one in the other",
            same,
            |p| {
                root(p, "docs/a", Rights::WRITE);
                root(p, "docs", Rights::WRITE);
                root(p, "docs", Rights::WRITE);
            },
            &[Kind::Write],
        ),
        (
            "two ways",
            same,
            |p| {
                root(p, "docs", Rights::READ);
                root(p, "docs/a", Rights::WRITE);
            },
            &[Kind::Write, Kind::Read],
        ),
        ("an absolute root", same, |p| root(p, "/opt/x", Rights::READ), &[Kind::Read]),
        ("a place to search", same, |p| root(p, "/opt/x", Rights::SEARCH), &[Kind::Search]),
        ("a profile", same, |p| profile(p, "/usr/lib/python3"), &[Kind::ProfileRead]),
        ("a profile within one", same, |p| profile(p, "/usr/share/zoneinfo/Etc"), &[]),
        (
            "a profile's place, credentials too",
            same,
            |p| root(p, "/usr/share/zoneinfo", Rights::READ),
            &[Kind::Read],
        ),
        ("reads unjudged", same, |p| p.roots.reads = None, &[Kind::ReadsUnjudged]),
        ("reads judged", |p| p.roots.reads = None, |p| root(p, "/opt", Rights::READ), &[]),
        ("a program", same, |p| binaries(p, &[("make", None), ("gcc", None)]), &[Kind::Binary]),
        (
            "a digest dropped",
            |p| binaries(p, &[("make", Some("a"))]),
            |p| binaries(p, &[("make", None)]),
            &[Kind::Binary],
        ),
        (
            "a digest changed",
            |p| binaries(p, &[("make", Some("a"))]),
            |p| binaries(p, &[("make", Some("b"))]),
            &[Kind::Binary],
        ),
        ("a digest given", same, |p| binaries(p, &[("make", Some("b"))]), &[]),
        ("programs unjudged", same, |p| p.binaries = None, &[Kind::ProgramsUnjudged]),
        ("the network", |p| hosts(p, &[]), same, &[Kind::Network, Kind::Host]),
        ("a port", same, |p| hosts(p, &["example.com:443", "example.com:80"]), &[Kind::Host]),
        ("every port", same, |p| hosts(p, &["example.com"]), &[Kind::Host]),
        ("one of every port", |p| hosts(p, &["example.com"]), same, &[]),
        ("another host", same, |p| hosts(p, &["example.org:443"]), &[Kind::Host]),
        ("a socket", same, |p| strings(&mut p.unix_sockets, &["/run/x.sock"]), &[Kind::UnixSocket]),
        ("a key", same, |p| strings(&mut p.env, &["CI", "EDITOR"]), &[Kind::Env]),
        (
            "a secret key",
            same,
            |p| strings(&mut p.env, &["CI", "DEPLOY_TOKEN"]),
            &[Kind::SecretEnv],
        ),
        ("a key of the base set", same, |p| strings(&mut p.env, &["CI", "PATH", "LC_ALL"]), &[]),
        (
            "a tool",
            same,
            |p| tools(p, &[(None, "read_file"), (Some("docs"), "read_file")]),
            &[Kind::Tool],
        ),
        ("another server", same, |p| agent(p).servers[0].digest = "e".repeat(64), &[Kind::Server]),
        (
            "the server elsewhere",
            same,
            |p| agent(p).servers[0].reached = Reached::Url("https://example.com".into()),
            &[Kind::Server],
        ),
        ("a limit", same, |p| agent(p).limits.max_steps.value += 1, &[Kind::Limit]),
        (
            "a dependency change",
            same,
            |p| agent(p).dependency_change = true,
            &[Kind::DependencyChange],
        ),
        ("an exception", same, |p| except(p, "bash", "2026-01-31"), &[Kind::Exception]),
        (
            "an exception prolonged",
            |p| except(p, "bash", "2026-01-31"),
            |p| except(p, "bash", "2026-02-01"),
            &[Kind::Exception],
        ),
        (
            "a mounted secret",
            same,
            |p| {
                let key = Key { name: "mounted_secrets", line: 9 };
                let root = rule("src/key", Rights::READ, false, 9);
                p.roots.entries.push(RootRule { key, ..root });
            },
            &[Kind::MountedSecret],
        ),
        (
            "held less strictly",
            |p| {
                agent(p).on_violation = Mode::Enforce;
                agent(p).on_loss = OnLoss::Kill;
                agent(p).min_coverage = Some(Coverage::Object);
                agent(p).pins.push(("model".into(), "m-1".into()));
            },
            |p| agent(p).on_violation = Mode::Kill,
            &[Kind::OnViolation, Kind::OnLoss, Kind::MinCoverage, Kind::Pin],
        ),
        ("another service", same, |p| p.id = "other-bot".into(), &[Kind::Service]),
    ];
    for (what, old, new, want) in table {
        assert_eq!(kinds(old, new).0, want, "{what}");
        // What is more in one direction is less in the other.
        let less = kinds(new, old).1;
        let want: Vec<Kind> = want.iter().copied().filter(|kind| *kind != Kind::Service).collect();
        if want != [Kind::Binary] && want != [Kind::Server] {
            assert_eq!(less, want, "{what}, backwards");
        }
    }
}

#[test]
fn what_is_said_and_permits_nothing() {
    let mut new = manifest();
    agent(&mut new).owner = "team-b".into();
    let delta = diff(&manifest(), &new);
    assert!(!delta.widens());
    assert_eq!(delta.said, ["docs-bot is now owned by team-b, before by team-docs."]);

    let excepted = |reviewers: [&str; 2]| {
        let mut policy = manifest();
        agent(&mut policy).exceptions = vec![Exception {
            allows: "bash".into(),
            reviewers: reviewers.map(str::to_owned).to_vec(),
            reason: "the build is a script".into(),
            expires: "2026-12-31".into(),
            line: 30,
        }];
        policy
    };
    let delta = diff(&excepted(["Ana", "Kim"]), &excepted(["Ana", "Lee"]));
    assert!(!delta.widens());
    let said = "The exception for bash is now by Ana and Lee: the build is a script.";
    assert_eq!(delta.said, [said]);
}

#[test]
fn two_formats() {
    let old = manifest();
    let kinds: Vec<Kind> = diff(&old, &envelope()).more.iter().map(|it| it.kind).collect();
    for kind in [Kind::ProgramsUnjudged, Kind::ReadsUnjudged, Kind::Server, Kind::Limit] {
        assert!(kinds.contains(&kind), "{kind:?} in {kinds:?}");
    }
    let delta = diff(&envelope(), &old);
    let kinds: Vec<Kind> = delta.more.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Write, Kind::Network, Kind::Host, Kind::Tool], "{delta}");
}

#[test]
fn it_reads_like_sentences() {
    let mut new = manifest();
    root(&mut new, "src/generated", Rights::WRITE);
    root(&mut new, "docs", Rights::WRITE);
    for place in
        ["/usr/lib/python3", "/usr/lib/python3.11", "/etc/python3", "/usr/share/python3", "/x"]
    {
        profile(&mut new, place);
    }
    hosts(&mut new, &["example.com"]);
    strings(&mut new.env, &["DEPLOY_TOKEN"]);
    binaries(&mut new, &[("make", None), ("gcc", None), ("ld", None)]);
    agent(&mut new).limits.max_wall_clock_sec.value = 7200;
    except(&mut new, "bash", "2026-01-31");
    let text = diff(&manifest(), &new).to_string();
    assert_eq!(
        text,
        "docs-bot may newly write below docs (agent-egress.yml:9).\n\
         docs-bot may newly use bash until 2026-01-31, by leave of A and B, because: the hooks are scripts (agent-egress.yml:30).\n\
         docs-bot may newly hold DEPLOY_TOKEN, a key whose name promises a secret (agent-egress.yml:20).\n\
         docs-bot may newly reach example.com on every port (agent-egress.yml:17).\n\
         docs-bot may newly run gcc and ld (agent-egress.yml:12).\n\
         docs-bot may newly read what the profile python names: /usr/lib/python3, /usr/lib/python3.11, /etc/python3 and 2 more places (agent-egress.yml:5).\n\
         docs-bot may newly run for 7200 seconds, before 3600 (agent-egress.yml:22).\n\
         docs-bot may no longer hold the environment key CI (agent-egress.yml:20).\n\
         delta: 12 more, 1 less"
    );
}

/// The pairs under `policies/cases/diff`, each held against its index.
#[test]
fn each_pair_is_compared_as_expected() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/cases/diff");
    let read = |name: &str| {
        let bytes = std::fs::read(directory.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        parse(name, &bytes, TODAY).unwrap_or_else(|faults| panic!("{faults:?}"))
    };
    let index = std::fs::read_to_string(directory.join("EXPECTED")).unwrap();
    let cases = index.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut seen = std::collections::BTreeSet::from(["EXPECTED".to_owned()]);
    for case in cases {
        let (pair, expected) = case.split_once(": ").unwrap();
        let (old, new) = pair.split_once(' ').unwrap();
        seen.extend([old.to_owned(), new.to_owned()]);
        let delta = diff(&read(old), &read(new));
        let mut found: Vec<String> = delta
            .more
            .iter()
            .map(|change| {
                let kind = serde_json::to_value(change.kind).unwrap();
                let kind = kind.as_str().unwrap();
                let by = change.new.as_deref().filter(|by| profile::NAMES.contains(by));
                by.map_or(format!("{kind} {}", change.what), |by| format!("{kind} by {by}"))
            })
            .collect();
        found.dedup();
        let found = if found.is_empty() { "holds".to_owned() } else { found.join(", ") };
        assert_eq!(found, expected, "{pair}\n{delta}");
    }
    let files = std::fs::read_dir(&directory).unwrap();
    let files: std::collections::BTreeSet<String> =
        files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(files, seen);
}

/// What a policy says of one effect, by the model's own words.
#[derive(Clone, Debug)]
enum Effect {
    Write(String),
    Read { path: String, credential: bool },
    RunFrom(String),
    Search(String),
    Run(String, String),
    Reach(String, u16, u32),
    Socket(String),
    Hold(String),
    Call(Option<String>, String),
}

fn permits(policy: &Policy, effect: &Effect) -> bool {
    let below = |path: &str, can: fn(&RootRule) -> bool| {
        policy.roots.entries.iter().any(|root| {
            let around = match root.path.as_str() {
                "." => !path.starts_with('/'),
                own => format!("{path}/").starts_with(&format!("{own}/")),
            };
            around && can(root)
        })
    };
    let programs = |can: bool| policy.binaries.is_none() || can;
    match effect {
        Effect::Write(path) => below(path, |root| root.rights.write),
        Effect::Read { path, credential: false } => {
            policy.roots.reads.is_none() || below(path, |root| root.rights.read)
        }
        Effect::Read { path, credential: true } => {
            policy.roots.reads.is_none() || below(path, |root| root.rights.read && !root.profile)
        }
        Effect::RunFrom(path) => programs(below(path, |root| root.rights.exec)),
        Effect::Search(path) => programs(below(path, |root| root.rights.search)),
        Effect::Run(name, digest) => policy.binaries.as_ref().is_none_or(|list| {
            list.all(name).any(|it| it.value.sha256.as_ref().is_none_or(|own| own == digest))
        }),
        Effect::Reach(host, port, protocol) => {
            let host = HostName::Name(host.clone());
            policy.lists_host(&host).any(|entry| entry.value.allows(*port, *protocol))
        }
        Effect::Socket(path) => policy.unix_sockets.find(path).is_some(),
        Effect::Hold(key) => policy.allows_env(key.as_bytes()),
        Effect::Call(server, name) => policy.lists_tool(server.as_deref(), name).is_some(),
    }
}

fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec![".", "a", "a/b", "ab", "a/b/c", "/a", "/a/b", "/ab"])
        .prop_map(String::from)
}

fn effect() -> impl Strategy<Value = Effect> {
    let name = || prop::sample::select(vec!["a", "b", "c"]).prop_map(String::from);
    prop_oneof![
        path().prop_map(Effect::Write),
        (path(), any::<bool>()).prop_map(|(path, credential)| Effect::Read { path, credential }),
        path().prop_map(Effect::RunFrom),
        path().prop_map(Effect::Search),
        (name(), name()).prop_map(|(name, digest)| Effect::Run(name, digest)),
        (name(), 1..3u16, prop::sample::select(vec![6, 17, 132]))
            .prop_map(|(host, port, protocol)| Effect::Reach(host, port, protocol)),
        name().prop_map(Effect::Socket),
        prop::sample::select(vec!["A", "PATH", "A_TOKEN"]).prop_map(|key| Effect::Hold(key.into())),
        (prop::option::of(name()), name()).prop_map(|(server, name)| Effect::Call(server, name)),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let name = || prop::sample::select(vec!["a", "b", "c"]).prop_map(String::from);
    let rights =
        prop::sample::select(vec![Rights::READ, Rights::WRITE, Rights::EXEC, Rights::SEARCH]);
    let roots = prop::collection::vec((path(), rights, any::<bool>()), 0..4);
    let programs =
        prop::option::of(prop::collection::vec((name(), prop::option::of(name())), 0..3));
    let host = (
        name(),
        prop::option::of(1..3u16),
        prop::option::of(prop::sample::select(vec![Protocol::Tcp, Protocol::Udp])),
    );
    let hosts = prop::collection::vec(host, 0..3);
    let keys = prop::collection::vec(
        prop::sample::select(vec!["A", "PATH", "A_TOKEN"]).prop_map(String::from),
        0..3,
    );
    let tools = prop::collection::vec((prop::option::of(name()), name()), 0..3);
    let sockets = prop::collection::vec(name(), 0..2);
    (roots, programs, hosts, keys, tools, sockets, any::<bool>(), any::<bool>()).prop_map(
        |(roots, programs, hosts, keys, tools, sockets, reads, judged)| {
            let mut policy = manifest();
            policy.roots.entries.clear();
            for (path, rights, profile) in roots {
                let rights = if profile { Rights::READ } else { rights };
                policy.roots.entries.push(rule(&path, rights, profile, 9));
            }
            if !reads {
                policy.roots.reads = None;
            }
            policy.binaries = programs.map(|all| {
                list("binaries", 12, all.into_iter().map(|(name, sha256)| Binary { name, sha256 }))
            });
            let hosts: Vec<Host> = hosts
                .into_iter()
                .map(|(name, port, protocol)| Host { name: HostName::Name(name), port, protocol })
                .collect();
            policy.network = if hosts.is_empty() { Network::Deny } else { Network::Allowlist };
            policy.hosts = list("hosts", 17, hosts);
            policy.env = list("env_allow", 20, keys);
            policy.tools = list(
                "mcp_servers",
                25,
                tools.into_iter().map(|(server, name)| Tool { server, name }),
            );
            policy.unix_sockets = list("unix_sockets", 18, sockets);
            if !judged {
                policy.kind = effectgate_core::policy::Kind::Envelope;
                policy.agent = None;
            }
            policy
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_differs_from_itself(policy in any_policy()) {
        prop_assert!(diff(&policy, &policy).is_empty());
    }

    #[test]
    fn what_no_change_names_is_nothing_new(
        old in any_policy(),
        new in any_policy(),
        effects in prop::collection::vec(effect(), 32),
    ) {
        let delta = diff(&old, &new);
        for effect in effects {
            if permits(&new, &effect) && !permits(&old, &effect) {
                prop_assert!(delta.widens(), "{effect:?}");
                prop_assert!(delta.more.iter().any(|it| names(it.kind, &effect)), "{effect:?}: {delta}");
            }
        }
    }

    /// A wider policy is one: dropping entries never widens.
    #[test]
    fn dropping_entries_is_no_widening(policy in any_policy()) {
        let mut less = policy.clone();
        less.roots.entries.pop();
        less.hosts = list("hosts", 17, less.hosts.entries().iter().skip(1).map(|it| it.value.clone()));
        let delta = diff(&policy, &less);
        prop_assert!(!delta.widens(), "{delta}");
    }
}

/// Whether a change of this kind is what such an effect wants to hear of.
fn names(kind: Kind, effect: &Effect) -> bool {
    match effect {
        Effect::Write(_) => kind == Kind::Write,
        // A root that is newly written or run from is read as well.
        Effect::Read { .. } => matches!(
            kind,
            Kind::ReadsUnjudged
                | Kind::Read
                | Kind::ProfileRead
                | Kind::Write
                | Kind::Exec
                | Kind::Search
        ),
        Effect::RunFrom(_) => matches!(kind, Kind::Exec | Kind::ProgramsUnjudged),
        Effect::Search(_) => matches!(kind, Kind::Search | Kind::ProgramsUnjudged),
        Effect::Run(..) => matches!(kind, Kind::Binary | Kind::ProgramsUnjudged),
        Effect::Reach(..) => kind == Kind::Host,
        Effect::Socket(_) => kind == Kind::UnixSocket,
        Effect::Hold(_) => matches!(kind, Kind::Env | Kind::SecretEnv),
        Effect::Call(..) => kind == Kind::Tool,
    }
}
