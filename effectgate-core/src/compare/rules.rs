//! The rules of the comparison, and why each is there.

/// Rule and reason.
pub const RULES: &[(&str, &str)] = &[
    ("binary-digest", "another file under the same name is another program"),
    ("binary-not-listed", "a program that nobody reviewed can do whatever the agent can"),
    ("binary-path", "a file of the right name in the wrong place can be anybody's program"),
    ("cwd-outside", "where a program stands, its relative paths lead"),
    ("env-not-listed", "every key that is handed on is one more thing that can leak"),
    ("env-secret", "a key with a secret in it is handed on by its full name or not at all"),
    ("env-value", "names of keys are evidence, their values are secrets"),
    ("host-form", "a host that can be read in two ways is two hosts"),
    (
        "host-metadata",
        "link-local addresses and metadata endpoints hand out credentials of the machine",
    ),
    ("host-not-listed", "data leaves to every host that can be reached"),
    ("host-port", "another port is another service"),
    ("inline-program", "a program in an argument is a program that nobody can review"),
    ("log-broken", "a log with a gap or a change says nothing about what is missing"),
    ("log-disagrees", "a log whose records come out otherwise was not written by the gate"),
    ("log-indeterminate", "effects may have gone unseen, and only what was seen can hold"),
    ("log-violation", "the kernel saw an effect outside the policy"),
    ("max-steps", "an agent that does not stop is stopped"),
    ("max-tool-calls-per-step", "many calls in one step are a loop that nobody looks at"),
    ("max-wall-clock", "an agent that does not stop is stopped"),
    ("package-manager", "installing runs programs of strangers; that is a change by itself"),
    ("pipe-into-shell", "what is fetched and run at once was never reviewed"),
    ("secret-in-arguments", "arguments are seen by every process and kept in many logs"),
    ("server-digest", "another digest is another server"),
    ("server-not-listed", "a server that nobody pinned can do whatever it likes"),
    ("server-tools", "a tool list that changed is a capability that nobody reviewed"),
    ("shell", "a shell runs any program, so its list of programs says nothing"),
    ("tool-not-listed", "a tool that is not in the list is a capability that nobody reviewed"),
    ("trace-blank", "an empty name is the name of nothing"),
    ("trace-blank-line", "a line that says nothing may have said something"),
    ("trace-duplicate-field", "of two values, each reader takes another"),
    ("trace-empty", "missing evidence is a failure"),
    ("trace-json", "a line that cannot be read hides what happened"),
    ("trace-line-too-long", "no honest event is that long, and memory is bounded"),
    ("trace-missing", "missing evidence is a failure"),
    ("trace-missing-field", "an event that leaves something out cannot be judged"),
    ("trace-not-utf-8", "bytes that are no text are read by each reader otherwise"),
    ("trace-nul", "what follows a NUL is not seen by the system that is asked to act"),
    ("trace-step-falls", "steps that go back hide how many there were"),
    ("trace-time", "without a time there is no order and no duration"),
    ("trace-time-backwards", "an order that was changed hides what came first"),
    ("trace-truncated", "the end that is missing may be the part that matters"),
    ("trace-unknown-field", "a field that nobody judges is a place to hide things"),
    ("trace-unknown-type", "an event of an unknown type cannot be judged"),
    ("trace-wrong-type", "a value of another type is read by each reader otherwise"),
];

/// Why a rule is there.
pub(super) fn why(rule: &str) -> &'static str {
    RULES.iter().find(|(name, _)| *name == rule).map_or("", |(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_and_have_reasons() {
        assert!(RULES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(RULES.iter().all(|(_, why)| !why.is_empty()));
    }
}
