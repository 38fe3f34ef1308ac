//! The manifest's keys: what drives its checks, its schema, and the messages
//! about what is missing.

use crate::envelope::{ENV, HOST, MODES};
use crate::form::{Format, Key, Object, Shape, Syntax};
use crate::note::DAY;

pub(crate) const FORMAT: Format =
    Format { name: "a manifest", syntax: Syntax::Yaml, root: plain(KEYS) };

const KEYS: &[Key] = &[
    required("version", Shape::Version(&[1, 2]), "the version of this format", "1"),
    required(
        "agent_id",
        Shape::Word("."),
        "the agent's stable name; another name is another service",
        "\"docs-agent\"",
    ),
    required(
        "owner",
        Shape::Word("."),
        "the people or the team that answer for it, never a bot",
        "\"team-docs\"",
    ),
    required(
        "workspace_roots",
        Shape::List(&Shape::Word(RELATIVE)),
        "directories of the repository that the agent may read",
        "[\".\"]",
    ),
    required(
        "write_roots",
        Shape::List(&Shape::Word(RELATIVE)),
        "directories below the workspace roots that it may change; may be empty",
        "[\"docs\"]",
    ),
    optional(
        "read_roots",
        2,
        Shape::List(&Shape::Word(".")),
        "what else it may read: paths of the repository, or absolute ones without credentials",
        "[\"/usr/share/dict\"]",
    ),
    optional(
        "exec_roots",
        2,
        Shape::List(&Shape::Word(RELATIVE)),
        "directories below the workspace roots whose programs may run, whoever built them",
        "[\"target\"]",
    ),
    optional(
        "extends",
        2,
        Shape::List(&Shape::OneOf("unknown-profile", crate::profile::NAMES)),
        "profiles: what programs of a kind must read to start",
        "[\"base-linux\"]",
    ),
    optional(
        "mounted_secrets",
        1,
        Shape::List(&Shape::Word(".")),
        "files that hold secrets and are there for the job to read",
        "[\"/run/secrets/docs\"]",
    ),
    required(
        "binaries",
        Shape::List(&Shape::WordOr(BINARY_NAME, 2, &BINARY)),
        "programs that may run, by basename",
        "[\"git\"]",
    ),
    optional(
        "dependency_change",
        1,
        Shape::Flag,
        "whether the change is about dependencies, so that package managers may run",
        "true",
    ),
    required(
        "network",
        Shape::Object(&NETWORK),
        "which hosts may be opened",
        "{\"mode\": \"deny\"}",
    ),
    optional(
        "unix_sockets",
        2,
        Shape::List(&Shape::Word("^/")),
        "absolute paths of the sockets of other programs that it may talk to",
        "[\"/run/postgresql/.s.PGSQL.5432\"]",
    ),
    required(
        "env_allow",
        Shape::List(&Shape::Word(ENV)),
        "every environment key that its processes may hold, by full name",
        "[\"CI\"]",
    ),
    required("max_steps", Shape::Count, "the most steps of a run", "100"),
    required("max_wall_clock_sec", Shape::Count, "the most seconds that a run may take", "1800"),
    required("max_tool_calls_per_step", Shape::Count, "the most tool calls within one step", "20"),
    required(
        "mcp_servers",
        Shape::List(&Shape::Object(&SERVER)),
        "MCP servers and their frozen tools; may be empty",
        "[]",
    ),
    optional(
        "pins",
        1,
        Shape::Map(&Shape::Text),
        "what else is pinned: a name and its exact version",
        "{\"model\": \"name-2026-01\"}",
    ),
    optional(
        "exceptions",
        2,
        Shape::List(&Shape::Object(&EXCEPTION)),
        "what two reviewers let through until a day",
        "[]",
    ),
    optional(
        "min_coverage",
        2,
        Shape::OneOf("choice", &["argument", "object"]),
        "how closely the kernel must be watched for a run to begin",
        "\"object\"",
    ),
    optional(
        "on_loss",
        2,
        Shape::OneOf("choice", &["mark", "observe", "kill", "deny"]),
        "what is done when records are lost; observe is the old word for mark",
        "\"kill\"",
    ),
    optional(
        "on_violation",
        2,
        Shape::OneOf("choice", &["observe", "kill", "enforce"]),
        "what is done about a violation",
        "\"enforce\"",
    ),
];

const NETWORK: Object = plain(&[
    required("mode", Shape::OneOf("network-mode", MODES), "deny, or allowlist", "\"deny\""),
    optional(
        "hosts",
        1,
        Shape::List(&Shape::WordOr(HOST, 2, &PORTS)),
        "exact names or addresses",
        "[\"docs.example.com\"]",
    ),
]);

const PORTS: Object = plain(&[
    required("host", Shape::Word(HOST), "an exact name or address", "\"docs.example.com\""),
    optional("ports", 2, Shape::List(&Shape::Count), "ports; without it, every one", "[443]"),
    optional(
        "protocol",
        2,
        Shape::OneOf("choice", &["tcp", "udp"]),
        "the transport protocol; without it, every one",
        "\"tcp\"",
    ),
]);

const BINARY: Object = plain(&[
    required("name", Shape::Word(BINARY_NAME), "the program's basename", "\"git\""),
    required("sha256", Shape::Word(SHA256), "what its file must have", DIGEST),
]);

const SERVER: Object = Object {
    keys: &[
        required("name", Shape::Text, "the server's name", "\"docs\""),
        optional(
            "command",
            1,
            Shape::List(&Shape::Word(".")),
            "the program that serves, and its arguments",
            "[\"docs-server\", \"--stdio\"]",
        ),
        optional(
            "url",
            1,
            Shape::Word("^https?://"),
            "where it is reached",
            "\"https://mcp.example.com/\"",
        ),
        required("digest", Shape::Word(SHA256), "SHA-256 of what it is or presents", DIGEST),
        required(
            "tools",
            Shape::List(&Shape::Word(r"^\S(.*\S)?$")),
            "every tool that may be called",
            "[\"search_docs\"]",
        ),
    ],
    one_of: &["command", "url"],
};

const EXCEPTION: Object = plain(&[
    required("allows", Shape::Word("."), "a shell, or an interpreter's form", "\"python -c\""),
    required(
        "reviewers",
        Shape::List(&Shape::Text),
        "two people or more, all different",
        "[\"A. Person\", \"B. Person\"]",
    ),
    required("reason", Shape::Text, "why it is needed", "\"the generator is a one-liner\""),
    required("expires", Shape::Word(DAY), "the last day it holds", "\"2027-06-30\""),
]);

/// Relative to the workspace; what climbs out is seen when it is read.
const RELATIVE: &str = r"^[^/~\\$%*?][^\\$%*?]*$";
const BINARY_NAME: &str = r"^[^/\\\s*?]+$";
const SHA256: &str = "^(sha256:)?[0-9a-fA-F]{64}$";
const DIGEST: &str = "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"";

const fn plain(keys: &'static [Key]) -> Object {
    Object { keys, one_of: &[] }
}

const fn required(
    name: &'static str,
    shape: Shape,
    doc: &'static str,
    example: &'static str,
) -> Key {
    Key { name, since: 1, required: true, shape, doc, example }
}

const fn optional(
    name: &'static str,
    since: u8,
    shape: Shape,
    doc: &'static str,
    example: &'static str,
) -> Key {
    Key { name, since, required: false, shape, doc, example }
}
