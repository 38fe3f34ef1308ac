//! Programs that do nothing but run another, which a trace may not show by itself.

use super::{basename, is_interpreter, is_package_manager, shell_name, stem};

const WRAPPERS: [&str; 18] = [
    "chroot", "chrt", "doas", "env", "ionice", "nice", "nohup", "runuser", "setsid", "stdbuf",
    "strace", "sudo", "taskset", "time", "timeout", "unshare", "watch", "xargs",
];

/// Whether a program of this name does nothing but run another.
pub(crate) fn is_wrapper(binary: &str) -> bool {
    WRAPPERS.contains(&stem(&basename(binary.as_bytes())))
}

/// The program that such a program runs, by its index in `argv`, which begins
/// with the wrapper's own name.
pub(crate) fn wrapped(binary: &str, argv: &[impl AsRef<str>]) -> Option<usize> {
    if !is_wrapper(binary) {
        return None;
    }
    let passed = |word: &str| {
        word.starts_with('-')
            || word.contains('=')
            || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let words = argv.iter().map(AsRef::as_ref).enumerate().skip(1);
    let mut words = words.filter(|(_, word)| !passed(word));
    // Options with values hide which word is the program: the first that is a
    // program to be asked about, or the first that could be one.
    let first = words.clone().next();
    let special = words.find(|(_, word)| {
        let name = basename(word.as_bytes());
        shell_name(&name).is_some() || is_interpreter(word) || is_package_manager(&name)
    });
    special.or(first).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_behind_a_program() {
        for (line, at) in [
            ("env -i A=b bash -c x", Some(3)),
            ("/usr/bin/timeout -s KILL 5 npm i", Some(4)),
            ("nice make", Some(1)),
            ("env", None),
            ("git bash", None),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(wrapped(words[0], &words), at, "{line}");
        }
    }
}
