//! What the comparison takes, refuses, and says about it.

mod common;

use effectgate_core::compare::{Against, Comparison, Form, compare, without_trace};
use effectgate_core::policy::{
    Agent, Binary, Entry, Exception, Host, HostName, Key, Kind, Limit, Limits, List, Named,
    Network, OnLoss, Policy, Protocol, Reached, Rights, RootRule, Roots, Server, Tool,
};
use proptest::prelude::*;

const DIGEST: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn list<T: Named>(name: &'static str, line: u32, values: Vec<T>) -> List<T> {
    let entry = |(at, value)| Entry { value, line: line + 1 + at as u32, column: 5 };
    List::new(Key { name, line }, values.into_iter().enumerate().map(entry).collect())
}

/// `src` and `docs` below the workspace, git, make and bash by exception, one
/// server.
fn manifest() -> Policy {
    let root = |path: &str, rights, name| RootRule {
        path: path.into(),
        rights,
        key: Key { name, line: 4 },
        profile: false,
    };
    let binary = |name: &str| Binary { name: name.into(), sha256: None };
    let host =
        |name: &str, port, protocol| Host { name: HostName::Name(name.into()), port, protocol };
    let tool = |name: &str| Tool { server: Some("repo".into()), name: name.into() };
    let limit = |name, value| Limit { value, key: Key { name, line: 40 } };
    Policy {
        kind: Kind::Manifest,
        id: "agent".into(),
        sha256: DIGEST.into(),
        file: "agent-egress.yml".into(),
        roots: Roots {
            entries: vec![
                root("src", Rights::READ, "workspace_roots"),
                root("docs", Rights::READ, "workspace_roots"),
                root("src/out", Rights::WRITE, "write_roots"),
                root("src/bin", Rights::EXEC, "exec_roots"),
            ],
            writes: Key { name: "write_roots", line: 7 },
            reads: None,
        },
        binaries: Some(list(
            "binaries",
            10,
            ["git", "make", "bash", "python3", "env"].map(binary).into(),
        )),
        tools: list("mcp_servers", 30, vec![tool("read_file"), tool("apply_patch")]),
        env: list("env_allow", 20, vec!["CI".into(), "DEPLOY_TOKEN".into()]),
        hosts: list(
            "network.hosts",
            25,
            vec![
                host("example.com", Some(443), None),
                host("plain.example", None, None),
                host("udp.example", Some(53), Some(Protocol::Udp)),
            ],
        ),
        network: Network::Allowlist,
        network_key: Key { name: "network.mode", line: 24 },
        unix_sockets: list("unix_sockets", 28, vec![]),
        agent: Some(Box::new(Agent {
            version: 2,
            owner: "team".into(),
            dependency_change: false,
            exceptions: vec![Exception {
                allows: "bash".into(),
                reviewers: vec!["a".into(), "b".into()],
                reason: "because".into(),
                expires: "2026-06-30".into(),
                line: 35,
            }],
            servers: vec![Server {
                name: "repo".into(),
                reached: Reached::Url("https://example.com/mcp".into()),
                digest: DIGEST.into(),
                line: 31,
            }],
            pins: vec![],
            limits: Limits {
                max_steps: limit("max_steps", 4),
                max_wall_clock_sec: limit("max_wall_clock_sec", 60),
                max_tool_calls_per_step: limit("max_tool_calls_per_step", 2),
            },
            min_coverage: None,
            on_loss: OnLoss::default(),
            on_violation: Default::default(),
        })),
    }
}

fn held(trace: &[u8], policy: &Policy, today: &str) -> Comparison {
    let resolve = &mut |_: &str| None;
    compare(trace, Against { policy, workspace: "/srv/repo", today, resolve }).unwrap()
}

fn result(trace: &[u8]) -> Comparison {
    held(trace, &manifest(), "2026-01-31")
}

fn rules(trace: &[u8]) -> Vec<&'static str> {
    result(trace).counts.into_keys().collect()
}

/// An event that holds, with some fields replaced or added.
fn event(fields: &str) -> String {
    let changed: serde_json::Value = serde_json::from_str(&format!("{{{fields}}}")).unwrap();
    let mut event = serde_json::json!({
        "ts": "2026-01-31T12:00:00Z", "type": "exec", "name": "git", "binary": "git",
        "argv": ["git", "status"], "cwd": "src", "host": null,
    });
    for (key, value) in changed.as_object().unwrap() {
        event[key] = value.clone();
    }
    format!("{event}\n")
}

fn of(fields: &str) -> Vec<&'static str> {
    rules(event(fields).as_bytes())
}

#[test]
fn findings_cite_both_files() {
    let trace = event("") + &event(r#""cwd": "/etc", "binary": "nc""#);
    let comparison = result(trace.as_bytes());
    let said: Vec<String> = comparison.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "line 2: cwd: \"/etc\" is below no workspace root (cwd-outside), \
             by workspace_roots (agent-egress.yml:4)",
            "line 2: binary: \"nc\" is not in the list (binary-not-listed), \
             by binaries (agent-egress.yml:10)",
        ]
    );
    assert_eq!(comparison.to_string(), "compare: does not hold (2 findings in 2 events)");
    assert!(comparison.findings.iter().all(|finding| !finding.why.is_empty()));
}

#[test]
fn directories() {
    for inside in
        ["src", "src/", "./src/a", "src//a/../b", "docs", "/srv/repo/src/x", "../repo/src"]
    {
        assert_eq!(of(&format!(r#""cwd": "{inside}""#)), [""; 0], "{inside}");
    }
    for outside in [
        ".",
        "srcs",
        "src/..",
        "src/../..",
        "/srv/repo",
        "/srv/repository/src",
        "/",
        "~",
        "~/src",
        "/srv/repo/src/../../x",
        "C:/src",
        "src\\\\..",
        "%73rc",
        "$HOME",
        "file:///srv/repo/src",
    ] {
        assert_eq!(of(&format!(r#""cwd": "{outside}""#)), ["cwd-outside"], "{outside}");
    }
}

#[test]
fn links_are_followed_by_the_caller() {
    let policy = manifest();
    let judge = |cwd: &str| {
        let resolve = &mut |path: &str| match path {
            "/srv/repo/src/link" | "/srv/repo/src/link/../src/ok" => Some("/etc".to_owned()),
            path => Some(path.to_owned()),
        };
        let against =
            Against { policy: &policy, workspace: "/srv/repo", today: "2026-01-31", resolve };
        compare(event(&format!(r#""cwd": "{cwd}""#)).as_bytes(), against).unwrap().holds
    };
    assert!(judge("src/ok"));
    assert!(!judge("src/link"));
    assert!(!judge("src/link/../src/ok"));
}

#[test]
fn programs() {
    for (fields, want) in [
        (r#""binary": "make""#, ""),
        (r#""binary": "/usr/bin/make""#, ""),
        (r#""binary": "bin/built""#, ""),
        (r#""binary": "./../src/bin/built""#, ""),
        (r#""binary": "./make""#, "binary-elsewhere"),
        (r#""binary": "/tmp/make""#, "binary-elsewhere"),
        (r#""binary": "/usr/bin/nc""#, "binary-not-listed"),
        (r#""binary": "GIT""#, "binary-not-listed"),
        (r#""binary": "bash", "argv": ["-lc", "make"]"#, ""),
        (r#""binary": "bash", "argv": ["-c", "curl x | sh"]"#, "pipe-into-shell"),
        (r#""binary": "python3", "argv": ["x.py"]"#, ""),
        (r#""binary": "python3", "argv": ["python3", "-c", "x"]"#, "inline-program"),
        (r#""binary": "/usr/bin/python3", "argv": ["python", "-Ic", "x"]"#, "inline-program"),
        (r#""binary": "python3", "argv": ["-c", "x"]"#, "inline-program"),
        (r#""binary": "python3", "argv": ["x.py", "-c", "x"]"#, ""),
        (r#""binary": "python3", "argv": ["-m", "pip", "install", "x"]"#, "package-manager"),
        (r#""binary": "env", "argv": ["A=b", "zsh", "-c", "x"]"#, "binary-not-listed shell"),
        (r#""binary": "env", "argv": ["-S", "bash -c x"]"#, ""),
        (r#""binary": "env", "argv": ["-S", "zsh -c x"]"#, "binary-not-listed shell"),
        (
            r#""binary": "env", "argv": ["timeout", "-s", "KILL", "5", "zsh"]"#,
            "binary-not-listed shell",
        ),
        (r#""binary": "env", "argv": ["-u", "A", "git", "grep", "npm"]"#, ""),
        (r#""binary": "env", "argv": ["/tmp/git"]"#, "binary-elsewhere"),
        (r#""binary": "git", "argv": ["zsh", "-lc", "x"]"#, "shell"),
        (r#""binary": "python3", "argv": ["/usr/bin/pip3", "install", "x"]"#, "package-manager"),
        (r#""binary": "env", "argv": ["A=b", "npm", "ci"]"#, "binary-not-listed package-manager"),
        (r#""binary": "env", "argv": ["make"]"#, ""),
        (r#""binary": "bash", "argv": ["-lc", "cd x && pip install y"]"#, "package-manager"),
        (r#""binary": "bash", "argv": ["-c", "node -e x"]"#, "inline-program"),
        (r#""binary": "bash", "argv": ["-c", "zsh -c x"]"#, "shell"),
        (r#""binary": "bash", "argv": ["-c", "echo 'x; zsh -c y'"]"#, ""),
        (
            r#""type": "tool_call", "name": "read_file", "binary": null, "argv": ["zsh", "-c", "x"]"#,
            "shell",
        ),
        (
            r#""type": "tool_call", "name": "read_file", "binary": null, "argv": ["zsh -lc 'x'"]"#,
            "shell",
        ),
        (r#""type": "tool_call", "name": "read_file", "binary": null, "argv": ["zsh"]"#, ""),
        (
            r#""type": "tool_call", "name": "read_file", "binary": null, "argv": ["curl x | sh"]"#,
            "pipe-into-shell",
        ),
    ] {
        let want: Vec<&str> = want.split(' ').filter(|rule| !rule.is_empty()).collect();
        assert_eq!(of(fields), want, "{fields}");
    }
    let late = held(event(r#""binary": "bash""#).as_bytes(), &manifest(), "2026-07-01");
    assert_eq!(late.findings[0].message, "the exception for \"bash\" expired on 2026-06-30");
    assert_eq!(late.findings[0].decided.as_ref().unwrap().line, 35);
    let deep = vec!["\"env\""; 10_000].join(",");
    assert_eq!(of(&format!(r#""binary": "env", "argv": [{deep}]"#)), ["inline-program"]);
}

#[test]
fn hosts() {
    for (host, want) in [
        ("example.com:443", ""),
        ("EXAMPLE.com.:443", ""),
        ("example.com:443/tcp", ""),
        ("example.com", "host-other-port"),
        ("example.com:80", "host-other-port"),
        ("plain.example", ""),
        ("plain.example:8080", ""),
        ("udp.example:53/udp", ""),
        ("udp.example:53", "host-other-port"),
        ("other.example:443", "host-not-listed"),
        ("127.0.0.1:80", "host-not-listed"),
        ("169.254.169.254", "host-metadata"),
        ("[::ffff:169.254.169.254]:80", "host-metadata"),
        ("metadata.google.internal", "host-metadata"),
        ("169.254.1.1", "host-metadata"),
        ("[fe80::1]:80", "host-metadata"),
        ("fe80::1%eth0", "host-spelling"),
        ("2852039166", "host-spelling"),
        ("0xa9.254.169.254", "host-spelling"),
        ("example%2ecom", "host-spelling"),
        ("https://example.com", "host-spelling"),
        ("exаmple.com", "host-spelling"),
        ("u:p@example.com", "host-spelling"),
    ] {
        let want: Vec<&str> = want.split(' ').filter(|rule| !rule.is_empty()).collect();
        assert_eq!(of(&format!(r#""type": "net", "host": "{host}""#)), want, "{host}");
    }
}

#[test]
fn keys_and_tools() {
    for (fields, want) in [
        (r#""env": ["CI", "PATH", "LC_ALL", "DEPLOY_TOKEN"]"#, ""),
        (r#""env": ["EDITOR"]"#, "env-not-listed"),
        (r#""env": ["GITHUB_TOKEN"]"#, "env-secret"),
        (r#""env": ["CI=1"]"#, "env-value"),
        (r#""type": "tool_call", "name": "read_file", "binary": null"#, ""),
        (r#""type": "tool_call", "name": "read_file", "server": "repo", "binary": null"#, ""),
        (r#""type": "tool_call", "name": "run", "binary": null"#, "tool-not-listed"),
        (r#""type": "tool_call", "name": "run", "server": "repo""#, "tool-not-listed"),
        (r#""type": "tool_call", "name": "read_file", "server": "x""#, "server-not-listed"),
        (r#""type": "tool_result", "name": "read_file", "server": "x""#, "server-not-listed"),
        (r#""argv": ["git", "--token", "abcd1234efgh"]"#, "secret-in-arguments"),
        (r#""argv": ["git", "--token", "$TOKEN"]"#, ""),
    ] {
        let want: Vec<&str> = want.split(' ').filter(|rule| !rule.is_empty()).collect();
        assert_eq!(of(fields), want, "{fields}");
    }
    let server = |digest: &str, tools: &str| {
        of(&format!(
            r#""type": "mcp_server", "server": "repo", "digest": "{digest}", "tools": {tools}"#
        ))
    };
    let good = r#"["apply_patch", "read_file"]"#;
    assert_eq!(server(DIGEST, good), [""; 0]);
    assert_eq!(server(&format!("sha256:{DIGEST}"), good), [""; 0]);
    assert_eq!(server(&"b".repeat(64), good), ["server-changed"]);
    for tools in ["[]", r#"["read_file"]"#, r#"["apply_patch", "read_file", "read_file"]"#] {
        assert_eq!(server(DIGEST, tools), ["server-tools-changed"], "{tools}");
    }
}

#[test]
fn limits() {
    let at = |second: u32, fields: &str| {
        event(&format!(r#""ts": "2026-01-31T12:{:02}:{:02}Z", {fields}"#, second / 60, second % 60))
    };
    let plain = |n: u32| (0..n).map(|_| at(0, r#""argv": []"#)).collect::<String>();
    assert_eq!(rules(plain(4).as_bytes()), [""; 0]);
    assert_eq!(rules(plain(5).as_bytes()), ["max-steps"]);
    // With steps, events do not count.
    let call = |step: u32| at(0, &format!(r#""step": {step}, "type": "tool_call""#));
    let calls = |steps: &[u32]| steps.iter().map(|step| call(*step)).collect::<String>();
    assert_eq!(rules((call(1) + &plain(9)).as_bytes()), [""; 0]);
    assert_eq!(rules(calls(&[1, 1, 3, 3, 7, 7, 8, 8]).as_bytes()), [""; 0]);
    assert_eq!(rules(calls(&[1, 2, 3, 4, 5]).as_bytes()), ["max-steps"]);
    assert_eq!(rules(calls(&[1, 1, 1]).as_bytes()), ["max-tool-calls-per-step"]);
    // A step that says again that it begins is no new one.
    let begin = at(0, r#""type": "step", "cwd": null, "step": 1"#);
    let again = [&*begin, &*call(1), &*call(1), &*begin, &*call(1)].concat();
    assert_eq!(rules(again.as_bytes()), ["max-tool-calls-per-step"]);
    let marked = at(0, r#""type": "step""#);
    assert_eq!(rules(marked.repeat(5).as_bytes()), ["max-steps"]);
    let bounds = result((at(0, r#""argv": []"#) + &at(60, r#""argv": []"#)).as_bytes()).bounds;
    assert!(bounds.holds);
    assert_eq!(
        bounds.limits.iter().map(|l| (l.used, l.bound)).collect::<Vec<_>>(),
        [(2, 4), (60, 60), (0, 2)]
    );
    let late = (at(0, r#""argv": []"#) + &at(61, r#""argv": []"#)).into_bytes();
    assert_eq!(rules(&late), ["max-wall-clock"]);
    assert_eq!(result(&late).findings[0].line, Some(2));
}

#[test]
fn broken_traces() {
    let good = event("");
    let with = |from: &str, to: &str| good.replace(from, to).into_bytes();
    for (trace, rule) in [
        (vec![], "trace-empty"),
        (good.trim_end().as_bytes().to_vec(), "trace-truncated"),
        (format!("{good}\n").into_bytes(), "trace-blank-line"),
        (format!("{good} \r\n").into_bytes(), "trace-blank-line"),
        (b"[]\n".to_vec(), "trace-json"),
        (format!("[{}]\n", good.trim_end()).into_bytes(), "trace-json"),
        (with("}", ""), "trace-json"),
        (with("}", "} {}"), "trace-json"),
        (with("git\"", "git\0\""), "trace-nul"),
        (with("git\"", "git\\u0000\""), "trace-nul"),
        ([b"\xff", good.as_bytes()].concat(), "trace-not-utf-8"),
        (with("{", "{\"extra\": {\"a\": [1]}, "), "trace-unknown-field"),
        (with("{", "{\"cwd\": \"src\", "), "trace-duplicate-field"),
        (with("\"host\":null,", ""), "trace-missing-field"),
        (event(r#""type": "think""#).into_bytes(), "trace-unknown-type"),
        (event(r#""argv": "git""#).into_bytes(), "trace-wrong-type"),
        (event(r#""argv": ["git", 1]"#).into_bytes(), "trace-wrong-type"),
        (event(r#""argv": [["git"]]"#).into_bytes(), "trace-wrong-type"),
        (event(r#""step": -1"#).into_bytes(), "trace-wrong-type"),
        (event(r#""step": 1.0"#).into_bytes(), "trace-wrong-type"),
        (event(r#""name": null"#).into_bytes(), "trace-wrong-type"),
        (event(r#""cwd": null"#).into_bytes(), "trace-missing-field"),
        (event(r#""binary": null"#).into_bytes(), "trace-missing-field"),
        (event(r#""type": "net""#).into_bytes(), "trace-missing-field"),
        (
            event(r#""type": "mcp_server", "server": "repo", "digest": "a""#).into_bytes(),
            "trace-missing-field",
        ),
        (event(r#""cwd": """#).into_bytes(), "trace-blank"),
        (event(r#""ts": "yesterday""#).into_bytes(), "trace-time"),
        (event(r#""ts": -1"#).into_bytes(), "trace-time"),
        ((event(r#""ts": 2"#) + &event(r#""ts": 1.5"#)).into_bytes(), "trace-time-backwards"),
        ((event(r#""step": 2"#) + &event(r#""step": 1"#)).into_bytes(), "trace-step-falls"),
        (
            event(&format!(r#""output": "{}""#, "a".repeat(1 << 20))).into_bytes(),
            "trace-line-too-long",
        ),
    ] {
        assert_eq!(
            rules(&trace),
            [rule],
            "{}",
            String::from_utf8_lossy(&trace[..trace.len().min(300)])
        );
    }
    let every = rules(
        br#"{"ts": [], "type": 1, "x": 1, "cwd": 2, "cwd": 3}
"#,
    );
    let want =
        ["trace-duplicate-field", "trace-missing-field", "trace-unknown-field", "trace-wrong-type"];
    assert_eq!(every, want);
}

#[test]
fn nothing_to_see() {
    let missing = without_trace(&manifest(), "/srv/repo", "2026-01-31");
    assert_eq!(missing.counts.keys().collect::<Vec<_>>(), [&"trace-missing"]);
    let mut idle = manifest();
    idle.binaries = Some(list("binaries", 10, vec![]));
    idle.tools = list("mcp_servers", 30, vec![]);
    idle.agent.as_mut().unwrap().servers.clear();
    assert!(without_trace(&idle, "/srv/repo", "2026-01-31").holds);
    assert!(held(b"", &idle, "2026-01-31").holds);
}

#[test]
fn findings_are_bounded_and_counted() {
    let comparison = result(event(r#""cwd": "/etc", "step": 1"#).repeat(1000).as_bytes());
    assert_eq!(comparison.findings.len(), 20);
    assert_eq!((comparison.total(), comparison.counts["cwd-outside"]), (1000, 1000));
}

#[test]
fn secrets_are_placed_and_not_shown() {
    let trace = event(r#""output": "x ghp_0123456789abcdef", "env": ["DEPLOY_TOKEN"], "step": 1"#)
        + &event(
            r#""argv": ["git", "--password=hunter2"], "host": "https://u:hunter2@h/", "step": 1"#,
        )
        + &event(
            r#""binary": "hunter2=ghp_0123456789abcdef", "cwd": "/API_KEY=ghp_0123456789abcdef", "step": 1"#,
        );
    let comparison = result(trace.as_bytes());
    let places: Vec<_> = comparison
        .secrets
        .places
        .iter()
        .map(|place| (place.line, place.field, place.index, place.sign.name()))
        .collect();
    assert_eq!(
        places,
        [
            (1, "output", None, "key"),
            (2, "argv", Some(1), "name"),
            (2, "host", None, "url"),
            (3, "binary", None, "key"),
            (3, "cwd", None, "key"),
        ]
    );
    assert!(comparison.secrets.names["DEPLOY_TOKEN"]);
    let text = serde_json::to_string(&comparison).unwrap()
        + &serde_json::to_string(&comparison.secrets).unwrap();
    assert!(!text.contains("hunter2\\\"") && !text.contains("ghp_"), "{text}");
}

#[test]
fn event_logs_are_judged_again() {
    let (lines, _) = common::job(common::started(), vec![]);
    let log = common::log(&lines);
    let policy = common::policy();
    let comparison = held(&log, &policy, "2026-01-31");
    assert_eq!(comparison.form, Form::EventLog);
    assert!(comparison.holds, "{:?}", comparison.findings);
    let outside = common::write("/etc/x", effectgate_core::input::RootMatch::Outside);
    let (lines, _) = common::job(common::started(), vec![outside]);
    let violated = held(&common::log(&lines), &policy, "2026-01-31");
    assert_eq!(violated.counts.keys().collect::<Vec<_>>(), [&"log-violation"]);
    assert_eq!(violated.findings[0].line, Some(4));
    let cut = held(&log[..log.len() - 10], &policy, "2026-01-31");
    assert_eq!(cut.counts.keys().collect::<Vec<_>>(), [&"log-broken"]);
    let inputs = vec![
        effectgate_core::input::Input::Started(Box::new(common::started())),
        common::launched(),
        common::finished(),
    ];
    let (lines, _) = common::run(inputs);
    let doubted = held(&common::log(&lines), &policy, "2026-01-31");
    assert!(doubted.counts.contains_key("log-indeterminate") && !doubted.holds);
    let mut records: Vec<_> = lines.iter().map(common::json).collect();
    records[1]["decision"] = "allowed".into();
    let forged = held(&common::seal(records), &policy, "2026-01-31");
    assert!(!forged.holds);
}

proptest! {
    #[test]
    fn any_bytes(bytes: Vec<u8>) {
        let comparison = result(&bytes);
        prop_assert!(!comparison.holds);
    }

    /// However a trace is cut into reads, it says the same.
    #[test]
    fn any_cut(size in 1..64usize, broken in 0..4usize) {
        let mut trace = event(r#""step": 1"#) + &event(r#""cwd": "/etc", "step": 1"#) + &event(r#""env": ["é"], "step": 1"#);
        trace.truncate(trace.len() - broken);
        let policy = manifest();
        let whole = result(trace.as_bytes());
        let resolve = &mut |_: &str| None;
        let cut = std::io::BufReader::with_capacity(size, trace.as_bytes());
        let against = Against { policy: &policy, workspace: "/srv/repo", today: "2026-01-31", resolve };
        prop_assert_eq!(compare(cut, against).unwrap(), whole);
    }

    /// Events of any words: nothing panics, and what holds is really inside.
    #[test]
    fn any_words(
        cwd in "(src|docs|\\.\\.|\\.|/|srv|repo|~|link){1,6}",
        binary in "(git|/usr/bin/|\\./|bash|x){1,3}",
        host in "[a-z0-9.:%\\[\\]/]{1,20}",
        argv in prop::collection::vec("(-c|-m|pip|bash|env|curl x|\\| sh|--token=| |[a-z]{1,3}){0,4}", 0..6),
    ) {
        let value = serde_json::json!({"cwd": cwd, "binary": binary, "host": host, "argv": argv});
        let text = value.to_string();
        let comparison = result(event(&text[1..text.len() - 1]).as_bytes());
        if comparison.holds {
            prop_assert!(host.starts_with("plain.example"), "{}", text);
        }
        for finding in &comparison.findings {
            prop_assert!(!finding.why.is_empty(), "{}", finding.rule);
        }
    }
}
