//! Why every rule is there. A fault says what is wrong and what to write
//! instead; this says what would happen otherwise.

/// A rule's stable identifier, and why it matters.
pub type Rule = (&'static str, &'static str);

/// Why the rule of this identifier matters; empty when there is none.
pub fn why(id: &str) -> &'static str {
    let found = all().find(|(rule, _)| *rule == id);
    found.map(|(_, why)| *why).unwrap_or_default()
}

/// Every rule about files that people and harnesses write.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    POLICY.iter().chain(OTHER).chain(TRACE)
}

/// Rules of envelopes and manifests.
pub const POLICY: &[Rule] = &[
    // The text.
    (
        "empty-file",
        "A policy that says nothing cannot be held against anything; no policy is not the same as a policy that allows nothing.",
    ),
    (
        "too-long",
        "Nobody reviews a file or a line of this size, and no path of this length can be opened.",
    ),
    (
        "not-utf-8",
        "Programs disagree on what such bytes mean: the reviewer would see another text than the one that is enforced.",
    ),
    (
        "hidden-character",
        "A character that cannot be seen lets a file say something else than what the reviewer reads.",
    ),
    (
        "json-syntax",
        "A file that only some programs can read is understood differently by the reviewer's and by this one.",
    ),
    (
        "json-trailing",
        "What follows the object would be ignored by one reader and believed by another.",
    ),
    ("json-depth", "No policy needs such nesting; it is how readers are made to fall over."),
    (
        "yaml-syntax",
        "A file that only some programs can read is understood differently by the reviewer's and by this one.",
    ),
    ("yaml-depth", "No policy needs such nesting; it is how readers are made to fall over."),
    (
        "yaml-tab",
        "YAML forbids tabs as indentation, and programs that take them disagree on how deep they reach.",
    ),
    (
        "yaml-anchor",
        "An alias puts text where it cannot be seen, and a few of them in each other grow without bound.",
    ),
    ("yaml-tag", "A tag changes what a value is for the programs that know it, and for no other."),
    (
        "yaml-merge",
        "A merge key brings in permissions from another place of the file, where a reviewer does not look for them.",
    ),
    ("yaml-directive", "A directive changes how the rest of the file is read."),
    (
        "yaml-documents",
        "Of two documents one program takes the first and another the last: the one that was reviewed may not be the one that counts.",
    ),
    (
        "yaml-key",
        "Keys are names; a key that is a number, a list or nothing is read differently by every program.",
    ),
    (
        "yaml-ambiguous",
        "YAML 1.1 and 1.2 read this differently (the country code `no` as false, `010` as eight): the reviewer's tools and this one would see two policies.",
    ),
    // The form.
    ("type", "A value of another type would have to be guessed, and a policy is not guessed."),
    ("unknown-key", "A misspelt key is a rule that was meant and never applied."),
    (
        "duplicate-key",
        "Of two values one program takes the first and another the last; the reviewer may have read the other one.",
    ),
    (
        "missing-key",
        "What is not said is not allowed, and it has to be seen that it was thought of: there are no defaults that widen a policy.",
    ),
    (
        "needs-version-2",
        "The file says that it is of version 1, and readers of that version would not see this rule at all.",
    ),
    ("version", "A format that is not known cannot be enforced."),
    ("one-of", "With both nobody knows which one counts; with neither nothing is said."),
    ("blank", "An empty text names nobody and explains nothing."),
    (
        "nul",
        "The kernel ends a name at the first NUL byte: what is checked and what is opened would be two things.",
    ),
    (
        "control",
        "Control characters hide text on a terminal and break lines of logs that others rely on.",
    ),
    ("count", "A bound that is zero, negative or not a whole number stops everything or nothing."),
    ("choice", "A word that is not known would leave it open what is done."),
    (
        "duplicate-entry",
        "One of the two is left over from an edit: whoever removes only the other one believes the permission gone.",
    ),
    (
        "empty-list",
        "An empty list where something is switched on reads like a permission and is none, or the other way round.",
    ),
    ("date", "A day that the calendar does not have never comes, and what ends on it never ends."),
    ("digest", "A digest that is not whole matches no file, or many."),
    // Who.
    (
        "agent-id",
        "Records, reviews and differences hang on the agent's name; under a throw-away name nobody can say which agent did something.",
    ),
    (
        "owner-missing",
        "Somebody has to answer for what the agent may do; a draft that no one has taken on must not run.",
    ),
    ("owner-bot", "A bot cannot answer for another bot: in the end a person is asked."),
    // Where.
    ("root-relative", "A relative path means another directory wherever the job is started."),
    (
        "root-climbs",
        "A path that climbs leaves the directory that the reviewer sees in front of it.",
    ),
    ("root-is-slash", "The whole file system as a root allows everything."),
    (
        "root-empty",
        "An empty path is the current directory to some programs and an error to others.",
    ),
    (
        "root-variable",
        "What a home or a variable stands for is decided on the machine that runs the job, by whoever sets it, and not by the reviewer.",
    ),
    (
        "root-drive",
        "A drive letter is an ordinary file name here, and not the place that is meant.",
    ),
    (
        "root-backslash",
        "A backslash separates directories on some systems and is part of a name on others: the path has two meanings.",
    ),
    (
        "root-absolute",
        "A manifest belongs to a repository; an absolute path leads out of it, to what other jobs and users own.",
    ),
    (
        "root-temporary",
        "Everybody can write there: another job can put files or links in the way, and read what is left behind.",
    ),
    (
        "root-glob",
        "A pattern allows whatever will match later, which nobody has seen at the review.",
    ),
    (
        "root-outside-workspace",
        "Changing or running what the agent may not even read cannot be meant, and hides how far its hand reaches.",
    ),
    (
        "root-leads-outside",
        "A link puts another directory behind the name that the reviewer sees, and whoever can change the link can change the policy.",
    ),
    (
        "root-dot-with-secrets",
        "Whoever may read or change the whole workspace reaches the secrets mounted in it too, and can carry them into a commit.",
    ),
    ("read-root-home", "A home holds keys, histories and logins of every tool its user has."),
    ("read-root-credentials", "Whoever can read credentials can be anyone that they belong to."),
    (
        "secret-file",
        "A directory of secrets grants whatever is put there later; a reviewer can only weigh files by name.",
    ),
    (
        "socket-path",
        "A relative path means another socket wherever the job is started, and other programs act for whoever reaches them.",
    ),
    // What.
    (
        "binary-path",
        "A path says where a file lies today; a listed name means the program of the system, which the job cannot replace.",
    ),
    (
        "binary-name",
        "Only an exact name can be compared with what runs; arguments and patterns cannot.",
    ),
    (
        "binary-shell",
        "A shell runs whatever it is told: with it on the list, the list of programs says little.",
    ),
    (
        "binary-package-manager",
        "A package manager fetches code from elsewhere and runs it while installing; that belongs to changes that are about dependencies, and is reviewed as such.",
    ),
    (
        "nothing-runs",
        "An agent that can start nothing and call nothing cannot do its work; the file was not filled in.",
    ),
    // Hosts.
    ("network-mode", "There is no open network: every host is one that a reviewer has seen."),
    (
        "network-deny-with-hosts",
        "The file says that there is no network and names hosts: one of the two is not meant.",
    ),
    (
        "network-allowlist-without-hosts",
        "An allowlist of nothing is either a network that is denied, or a list that was forgotten.",
    ),
    ("host-empty", "An empty name is this machine to some programs."),
    (
        "host-not-ascii",
        "Letters of other scripts look the same: the host that is opened is not the one that was read.",
    ),
    ("host-wildcard", "Below a wildcard anybody may get a name and receive what the job sends."),
    (
        "host-form",
        "A scheme, a path or a network is not what the kernel sees; it sees an address, and only exact hosts can be held against it.",
    ),
    (
        "host-port",
        "A port that does not exist lets nothing through, and shows that something else was meant.",
    ),
    (
        "host-ports",
        "Ports in two places leave open which of them count; none at all allow nothing.",
    ),
    (
        "host-address",
        "127.1, 0x7f000001 and 010.0.0.1 are other addresses to other programs: only one notation means the same to all.",
    ),
    (
        "host-name",
        "No resolver answers such a name; a filter that took it would compare it with nothing.",
    ),
    // Environment, tools and servers.
    (
        "env-name",
        "Only exact names can be reviewed: a pattern grants the secrets that will match it tomorrow, and a value does not belong into a file.",
    ),
    (
        "tool-name",
        "Calls are compared with exact names; a name with blanks around it matches none.",
    ),
    (
        "server-tools",
        "A server without tools serves nothing, and a list that is not frozen lets it offer new ones after the review.",
    ),
    ("server-command", "A server that nobody knows how to start cannot be held to its digest."),
    (
        "server-url",
        "Only an exact host can be held against the list of hosts, and names and passwords do not belong into a URL.",
    ),
    (
        "server-form",
        "An interpreter that is given its program as an argument is a shell by another name.",
    ),
    (
        "server-binary",
        "A server that runs commands is bound by the same list of programs as the agent; otherwise it is the way around it.",
    ),
    (
        "server-host",
        "A server is reached over the same network as everything else; a host that is not listed is one that nobody allowed.",
    ),
    // Exceptions and versions.
    (
        "exception-allows",
        "An exception for something that is not refused anyway looks like a safeguard and is none.",
    ),
    (
        "exception-reviewers",
        "One pair of eyes is not enough for what opens the list of programs; two different people must have said yes.",
    ),
    ("exception-expired", "An exception that nobody looks at again becomes the rule."),
    (
        "unknown-profile",
        "A profile that does not exist grants nothing; the job would fail for reasons that nobody finds.",
    ),
    ("pin-floating", "A version that moves is another program tomorrow, under today's review."),
];

/// Rules of review notes, pins, profiles and freeze ledgers.
pub const OTHER: &[Rule] = &[
    (
        "freeze-scope",
        "What a job did to the machine is inside its envelope or it is not; a freeze that could excuse it would be a way around the gate.",
    ),
    (
        "ledger-dates",
        "A freeze without an end is a test that nobody runs any more; the day says when somebody looks again.",
    ),
    (
        "ledger-form",
        "A row that can be read in two ways could freeze another property than the one that was reviewed.",
    ),
    (
        "ledger-runs",
        "A freeze is for two runners that disagree; one run, or two that agree, have nothing to freeze.",
    ),
    (
        "ledger-value",
        "Who looks into a freeze later needs the person, the reason and the evidence of both runs.",
    ),
    (
        "pin",
        "The digest is what ties a run to what was reviewed; half a digest ties it to nothing.",
    ),
    (
        "permits-more",
        "A policy that grows unseen protects nobody: somebody has to look at what is new, and say yes to it.",
    ),
    ("profile-name", "A profile is asked for by its name, and that is the name of its file."),
];

/// Rules by which a trace is read and held against a manifest.
pub const TRACE: &[Rule] = &[
    (
        "binary-digest",
        "Another file under the same name is another program, and nobody reviewed it.",
    ),
    ("binary-elsewhere", "A file of the right name in the wrong place can be anybody's program."),
    (
        "binary-not-listed",
        "A program that nobody reviewed can do whatever the agent's user can do.",
    ),
    (
        "cwd-outside",
        "Where a program stands is where its relative paths lead, and the manifest says where it may be.",
    ),
    (
        "env-not-listed",
        "Every key that is handed on is one more thing that can leak, and one more way to steer a program.",
    ),
    (
        "env-secret",
        "A key with a secret in it is handed on because somebody wrote its full name, or not at all.",
    ),
    (
        "env-value",
        "Names of keys are evidence; their values are secrets, and a trace is read by many.",
    ),
    (
        "host-metadata",
        "Link-local addresses and metadata endpoints hand out the credentials of the machine.",
    ),
    (
        "host-not-listed",
        "Data leaves to every host that can be reached, so every one of them is reviewed.",
    ),
    (
        "host-other-port",
        "Another port or protocol of the same host is another service than the one reviewed.",
    ),
    (
        "host-spelling",
        "A host that can be read in two ways is two hosts: one that is reviewed and one that is reached.",
    ),
    (
        "inline-program",
        "A program in an argument is a program that nobody can review before it runs.",
    ),
    ("log-broken", "A log with a gap or a change in it says nothing about what is missing."),
    (
        "log-disagrees",
        "A log whose records come out otherwise when they are judged again was not written by the gate.",
    ),
    (
        "log-indeterminate",
        "Effects may have gone unseen, and only what was seen can be held against a manifest.",
    ),
    (
        "log-violation",
        "The kernel saw an effect that the manifest does not allow, whatever a trace says.",
    ),
    ("max-steps", "An agent that does not come to an end by itself is brought to one."),
    (
        "max-tool-calls-per-step",
        "Many calls in one step are a loop that nobody looks at before it has run.",
    ),
    ("max-wall-clock", "An agent that does not come to an end by itself is brought to one."),
    (
        "package-manager",
        "Installing runs programs of strangers, and that is a change to be reviewed by itself.",
    ),
    (
        "pipe-into-shell",
        "What is fetched and run at once was reviewed by nobody and cannot be looked at later.",
    ),
    (
        "secret-in-arguments",
        "Arguments can be read by every process of the machine, and are kept in many logs.",
    ),
    ("server-changed", "Another digest is another server, whatever it calls itself and its tools."),
    (
        "server-not-listed",
        "A server that nobody pinned can offer any tool, and another one tomorrow.",
    ),
    (
        "server-tools-changed",
        "A tool that came or changed after the review is a capability that nobody allowed.",
    ),
    ("shell", "A shell runs any program, so a list of programs with a shell in it says nothing."),
    (
        "tool-not-listed",
        "A tool that is not in the frozen list is a capability that nobody reviewed.",
    ),
    (
        "trace-blank",
        "An empty name is the name of nothing, and cannot be held against a list of names.",
    ),
    ("trace-blank-line", "A line that says nothing may be one from which something was taken out."),
    (
        "trace-duplicate-field",
        "Of two values for one field, one reader takes the first and another the last.",
    ),
    (
        "trace-empty",
        "Missing evidence is a failure: a run of which nothing is known has not been shown to hold.",
    ),
    ("trace-json", "A line that cannot be read hides what happened in it."),
    (
        "trace-line-too-long",
        "No honest event is that long, and a reader that takes any length can be made to fall over.",
    ),
    (
        "trace-missing",
        "Missing evidence is a failure: a run of which nothing is known has not been shown to hold.",
    ),
    ("trace-missing-field", "An event that leaves out where, what or by whom cannot be judged."),
    (
        "trace-not-utf-8",
        "Programs disagree on what such bytes mean, so the reviewer sees another text than the judge.",
    ),
    (
        "trace-nul",
        "What stands behind a NUL is seen by the reader and not by the system that was asked to act.",
    ),
    (
        "trace-step-falls",
        "Steps that go back hide how many there were, and how many calls were made in each.",
    ),
    (
        "trace-time",
        "Without a time there is no order of events and no duration to hold against the limit.",
    ),
    (
        "trace-time-backwards",
        "An order that was changed hides what came first and what followed from it.",
    ),
    ("trace-truncated", "The end is missing, and that may be the part that matters."),
    (
        "trace-unknown-field",
        "A field that nobody judges is a place in which to hide what happened.",
    ),
    (
        "trace-unknown-type",
        "An event of an unknown type cannot be judged, and what cannot be judged does not hold.",
    ),
    ("trace-wrong-type", "A value of another type is read in another way by every reader."),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_rule_is_there_once_and_says_why() {
        let ids: HashSet<&str> = all().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), all().count());
        for (id, why) in all() {
            assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert!(why.ends_with('.') && why.len() > 40, "{id}: {why}");
        }
    }

    /// [`Faults::add`](crate::fault::Faults::add) refuses to be given a rule
    /// that is not in the table; here it is the other way round.
    #[test]
    fn no_rule_is_left_over() {
        let mut source = String::new();
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut source);
        let unused: Vec<_> =
            all().filter(|(id, _)| !source.contains(&format!("\"{id}\""))).collect();
        assert!(unused.is_empty(), "{unused:#?}");
    }

    fn read(directory: &Path, source: &mut String) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, source);
            } else if path.file_name().is_some_and(|name| name != "rules.rs") {
                source.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
}
