//! Programs that do nothing but run another. A kernel record shows both; a
//! trace of tool calls shows only what was asked for.

use super::{basename, stem};

/// How one of them reads its arguments, up to the program that it runs.
struct Wrapper {
    name: &'static str,
    /// Letters that take the rest of their cluster, or the next argument.
    value: &'static [u8],
    /// Long options that take the next argument.
    long_value: &'static [&'static str],
    /// Words of its own before the program.
    operands: usize,
}

const fn wrapper(name: &'static str, value: &'static [u8], operands: usize) -> Wrapper {
    Wrapper { name, value, long_value: &[], operands }
}

const fn long(wrapper: Wrapper, long_value: &'static [&'static str]) -> Wrapper {
    Wrapper { long_value, ..wrapper }
}

/// From their manual pages (coreutils, util-linux, findutils, sudo, strace).
const WRAPPERS: [Wrapper; 31] = [
    long(wrapper("env", b"uCSa", 0), &["--unset", "--chdir", "--split-string", "--argv0"]),
    long(wrapper("timeout", b"ks", 1), &["--kill-after", "--signal"]),
    long(wrapper("nice", b"n", 0), &["--adjustment"]),
    wrapper("nohup", b"", 0),
    long(
        wrapper("xargs", b"adEILnPs", 0),
        &["--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-chars"],
    ),
    long(
        wrapper("sudo", b"CDghpRrtTUu", 0),
        &["--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--close-from"],
    ),
    wrapper("doas", b"aCu", 0),
    wrapper("setsid", b"", 0),
    long(wrapper("stdbuf", b"ioe", 0), &["--input", "--output", "--error"]),
    long(wrapper("time", b"fo", 0), &["--format", "--output"]),
    long(wrapper("ionice", b"cnpPu", 0), &["--class", "--classdata"]),
    wrapper("chrt", b"TPD", 1),
    wrapper("taskset", b"", 1),
    long(wrapper("unshare", b"SGRw", 0), &["--root", "--wd", "--setuid", "--setgid"]),
    wrapper("chroot", b"", 1),
    long(wrapper("runuser", b"ugGws", 0), &["--user", "--group", "--shell"]),
    long(wrapper("watch", b"nq", 0), &["--interval"]),
    wrapper("strace", b"abeEIoOpPsSuUX", 0),
    wrapper("ltrace", b"aAeDFlnopsuwx", 0),
    long(wrapper("flock", b"wE", 1), &["--timeout", "--wait", "--conflict-exit-code"]),
    wrapper("setarch", b"", 0),
    wrapper("linux64", b"", 0),
    wrapper("linux32", b"", 0),
    wrapper("fakeroot", b"lsibf", 0),
    wrapper("catchsegv", b"", 0),
    wrapper("unbuffer", b"", 0),
    wrapper("tini", b"pe", 0),
    wrapper("dumb-init", b"r", 0),
    wrapper("gosu", b"", 1),
    wrapper("su-exec", b"", 1),
    wrapper("chpst", b"ubemdoPpfcrt/nl", 0),
];

/// `find … -exec PROGRAM … ;`
const FIND: &str = "find";
const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Whether a program runs those that its arguments name (`env`, `timeout`).
pub(crate) fn is_wrapper(program: &str) -> bool {
    let name = basename(program.as_bytes());
    name == FIND || known(&name).is_some()
}

/// The programs that a wrapper runs, each with its arguments. `argv` begins
/// with the wrapper's own name.
pub(crate) fn wrapped<'a>(argv: &[&'a str]) -> Vec<Vec<&'a str>> {
    let Some((own, arguments)) = argv.split_first() else { return Vec::new() };
    let name = basename(own.as_bytes());
    if name == FIND {
        return found(arguments);
    }
    known(&name)
        .map(|wrapper| wrapper.runs(arguments))
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect()
}

/// The words of a text that is run, as a shell or `env -S` would cut it; what
/// only a shell understands stays in them.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    let quote = |c: char| matches!(c, '"' | '\'');
    text.split(|c: char| c.is_whitespace())
        .map(move |word| word.trim_matches(quote))
        .filter(|word| !word.is_empty())
}

fn known(basename: &str) -> Option<&'static Wrapper> {
    let stem = stem(basename);
    WRAPPERS.iter().find(|wrapper| wrapper.name == basename || wrapper.name == stem)
}

fn found<'a>(arguments: &[&'a str]) -> Vec<Vec<&'a str>> {
    let parts = arguments.split(|word| FIND_RUNS.contains(word)).skip(1);
    let program = |part: &[&'a str]| -> Vec<&'a str> {
        part.iter().copied().take_while(|word| !matches!(*word, ";" | "+" | "\\;")).collect()
    };
    parts.map(program).filter(|program| !program.is_empty()).collect()
}

impl Wrapper {
    fn runs<'a>(&self, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut at = 0;
        let mut operands = self.operands;
        let mut options = true;
        while let Some(word) = arguments.get(at) {
            at += 1;
            if options && *word == "--" {
                options = false;
            } else if options && word.starts_with('-') {
                let next = self.takes_next(word);
                if let Some(text) = self.text(word, arguments.get(at).copied()) {
                    let behind = arguments.iter().skip(at + usize::from(next)).copied();
                    return split(text).chain(behind).collect();
                }
                at += usize::from(next);
            } else if operands > 0 && !is_assignment(word) {
                operands -= 1;
            } else if !is_assignment(word) {
                return arguments[at - 1..].to_vec();
            }
        }
        Vec::new()
    }

    /// The text that `env` cuts into words: `-STEXT`, `--split-string=TEXT`, or
    /// the next argument.
    fn text<'a>(&self, option: &'a str, next: Option<&'a str>) -> Option<&'a str> {
        if self.name != "env" {
            return None;
        }
        if let Some(long) = option.strip_prefix("--split-string") {
            return long.strip_prefix('=').or(next);
        }
        let cluster = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        let at = cluster.bytes().position(|letter| self.value.contains(&letter))?;
        let rest = cluster[at..].strip_prefix('S')?;
        if rest.is_empty() { next } else { Some(rest) }
    }

    fn takes_next(&self, option: &str) -> bool {
        if option.starts_with("--") {
            return self.long_value.contains(&option);
        }
        let letters = &option.as_bytes()[1..];
        let value = letters.iter().position(|letter| self.value.contains(letter));
        value.is_some_and(|at| at + 1 == letters.len())
    }
}

/// `NAME=value`, before the program.
pub(crate) fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_behind_a_wrapper() {
        for (line, want) in [
            ("env -i A=b bash -c x", "bash -c x"),
            ("env -u HOME -C / python3 x", "python3 x"),
            ("env -S bash x", "bash x"),
            ("env -vSbash x", "bash x"),
            ("env --split-string=bash x", "bash x"),
            ("env --split-string bash x", "bash x"),
            ("env - git grep pip", "git grep pip"),
            ("env -- git", "git"),
            ("env ./a=b/x", "./a=b/x"),
            ("/usr/bin/timeout -s KILL 5 npm i", "npm i"),
            ("timeout --signal=KILL --kill-after 3 5 npm i", "npm i"),
            ("nice make", "make"),
            ("nice -n 5 make", "make"),
            ("nice -5 make", "make"),
            ("xargs -0 -n1 -I {} sh -c x", "sh -c x"),
            ("sudo -Eu root A=b sh", "sh"),
            ("stdbuf -oL -e L make", "make"),
            ("taskset -c 0,1 make", "make"),
            ("chroot --userspec=a:b /x sh", "sh"),
            ("flock -n /x sh -c y", "sh -c y"),
            ("find . -name python -exec zsh -c x ;", "zsh -c x"),
            ("nice", ""),
            ("env", ""),
            ("timeout 5", ""),
            ("find . -name -x", ""),
            ("git bash", ""),
            ("", ""),
        ] {
            let argv: Vec<&str> = line.split_whitespace().collect();
            let runs = wrapped(&argv).first().map(|words| words.join(" ")).unwrap_or_default();
            assert_eq!(runs, want, "{line}");
        }
        assert_eq!(wrapped(&["env", "-S", "zsh -c 'x'", "y"]), [["zsh", "-c", "x", "y"]]);
        let two = ["find", "-exec", "a", ";", "-ok", "b", "{}", "+", "-print"];
        assert_eq!(wrapped(&two), [vec!["a"], vec!["b", "{}"]]);
    }
}
