//! Numbers, times and processes in words, the same in every report.

use effectgate_core::{
    Outcome, Verdict, Violation, process,
    report::{Peer, Report},
    time,
};

use crate::diagnose::visible;

/// `1 violation`, `2,300 violations`
pub fn counted(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", number(count))
}

/// With a comma every three digits.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `850 ms`, `31.1 s`, `4 min 5 s`, `2 h 10 min`; from nanoseconds.
pub fn duration(nanos: u64) -> String {
    let millis = nanos / 1_000_000;
    let seconds = nanos / time::SECOND;
    match seconds {
        0 if nanos > 0 && millis == 0 => "<1 ms".to_owned(),
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, millis / 100 % 10),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `2026-11-30 19:50:11 UTC`, from RFC 3339.
pub fn second(rfc3339: &str) -> String {
    match rfc3339.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.get(..8).unwrap_or(time)),
        None => rfc3339.to_owned(),
    }
}

/// How long the job was watched, in nanoseconds.
pub fn length(report: &Report) -> u64 {
    report.timeline.end - report.timeline.start
}

/// `12 cc < 11 sh < 10 make`
pub fn lineage(process: &process::Process) -> String {
    let mut text = format!("{} {}", process.pid, process.comm);
    for ancestor in &process.ancestry {
        text += &format!(" < {} {}", ancestor.pid, ancestor.comm);
    }
    visible(&text)
}

/// `2 violations, nothing lost`
pub fn summary(verdict: &Verdict) -> String {
    let violations = match verdict.distinct_violations() {
        0 => "no violations".to_owned(),
        count => counted(count, "violation"),
    };
    let lost = match verdict.lost_total() {
        0 => "nothing lost".to_owned(),
        count => format!("{} lost", counted(count, "record")),
    };
    format!("{violations}, {lost}")
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`, a path
pub fn place(peer: &Peer) -> String {
    match peer.port {
        Some(port) if peer.family == "ipv6" => format!("[{}]:{port}", peer.address),
        Some(port) => format!("{}:{port}", peer.address),
        None => peer.address.clone(),
    }
}

/// What was seen again and is in no record: `file 13,998`
pub fn repeats(verdict: &Verdict) -> String {
    let repeated = verdict.repeated.iter().filter(|(_, count)| **count > 0);
    let parts = repeated.map(|(class, count)| format!("{} {}", class.name(), number(*count)));
    parts.collect::<Vec<_>>().join(", ")
}

/// What the verdict means, for who has never seen one.
pub fn meaning(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "Everything that the job did was inside its policy.",
        Outcome::Fail => "The job did, or tried, what its policy does not allow.",
        Outcome::Indeterminate => {
            "Nothing is known to be outside the policy, but not everything is known."
        }
    }
}

/// The command with its arguments, quoted where a shell would need it.
pub fn command(argv: &[String]) -> String {
    let quoted = argv.iter().map(|argument| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        match !argument.is_empty() && argument.chars().all(plain) {
            true => argument.clone(),
            false => format!("'{}'", visible(argument).replace('\'', "'\\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// `exit 0`, `killed by signal 9`
pub fn ending(verdict: &Verdict) -> String {
    use effectgate_core::input::Exit;
    match verdict.command.exit {
        Some(Exit::Code(code)) => format!("exit {code}"),
        Some(Exit::Signal(signal)) => format!("killed by signal {signal}"),
        None => "exit not known".to_owned(),
    }
}

/// Whether a reason only counts the violations, which are listed beside it.
pub fn counts_violations(reason: &str) -> bool {
    let (count, rest) = reason.split_once(' ').unwrap_or_default();
    count.parse::<u64>().is_ok()
        && ["violation of class ", "violations of class ", "further violation"]
            .iter()
            .any(|form| rest.starts_with(form))
}

/// Violations with one rule: what to change in one place.
pub struct Group<'a> {
    pub rule: &'a effectgate_core::judge::Rule,
    pub violations: Vec<&'a Violation>,
}

/// By rule and line, in the order of their first appearance.
pub fn groups(verdict: &Verdict) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for violation in &verdict.violations {
        match groups.iter_mut().find(|group| *group.rule == violation.rule) {
            Some(group) => group.violations.push(violation),
            None => groups.push(Group { rule: &violation.rule, violations: vec![violation] }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(n), text);
        }
        for (nanos, text) in [
            (0, "0 ms"),
            (999, "<1 ms"),
            (1_500_000, "1 ms"),
            (31_149_000_000, "31.1 s"),
            (245_000_000_000, "4 min 5 s"),
            (7_800_000_000_000, "2 h 10 min"),
        ] {
            assert_eq!(duration(nanos), text);
        }
        assert_eq!(counted(1, "violation"), "1 violation");
        assert_eq!(second("2026-11-30T19:50:11.000000001Z"), "2026-11-30 19:50:11 UTC");
    }

    #[test]
    fn a_command_can_be_read_again() {
        let argv = ["sh", "-c", "echo 'a'\n", ""].map(str::to_owned);
        assert_eq!(command(&argv), r"sh -c 'echo '\''a'\''\n' ''");
    }
}
