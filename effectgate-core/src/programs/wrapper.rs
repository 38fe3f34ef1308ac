//! Programs that do nothing but run another. A kernel record shows both; a
//! trace of tool calls shows only what was asked for.

use super::{basename, inline, is_package_manager, shell_name, stem};

const WRAPPERS: [&str; 18] = [
    "env", "timeout", "nice", "nohup", "xargs", "sudo", "doas", "setsid", "stdbuf", "time",
    "ionice", "chrt", "taskset", "unshare", "chroot", "runuser", "watch", "strace",
];

/// Whether a program does nothing but run another (`env`, `timeout`).
pub(crate) fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&stem(&basename(program.as_bytes())))
}

/// The program that a wrapper runs, by its index in `argv`, which begins with
/// the wrapper's own name.
pub(crate) fn wrapped(argv: &[&str]) -> Option<usize> {
    if !argv.first().is_some_and(|own| is_wrapper(own)) {
        return None;
    }
    let passed = |word: &str| {
        word.starts_with('-')
            || word.contains('=')
            || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut words = argv.iter().enumerate().skip(1).filter(|(_, word)| !passed(word));
    // Options with values hide which word is the program: the first that could be.
    let first = words.clone().next().map(|(at, _)| at);
    let special = words.find(|(_, word)| {
        let name = basename(word.as_bytes());
        shell_name(&name).is_some() || inline::is_interpreter(&name) || is_package_manager(&name)
    });
    special.map(|(at, _)| at).or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_behind_a_wrapper() {
        for (line, at) in [
            ("env -i A=b bash -c x", Some(3)),
            ("/usr/bin/timeout -s KILL 5 npm i", Some(4)),
            ("nice make", Some(1)),
            ("nice", None),
            ("git bash", None),
            ("", None),
        ] {
            let argv: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(wrapped(&argv), at, "{line}");
        }
    }
}
