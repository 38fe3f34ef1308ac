//! What a program is told to run by its arguments.

use super::{is_package_manager, is_shell, plain};

/// The form (`python -c`) in which an interpreter is handed its program as an
/// argument. The first of `argv` may be the program's own name.
pub(crate) fn inline_form(program: &str, argv: &[impl AsRef<str>]) -> Option<String> {
    let interpreter = Interpreter::of(program)?;
    let mut arguments = own_arguments(program, argv);
    while let Some(argument) = arguments.next() {
        if let Some(word) = interpreter.commands.iter().find(|word| **word == argument) {
            return Some(format!("{} {word}", interpreter.name));
        }
        let Some(option) = argument.strip_prefix('-').filter(|option| !option.is_empty()) else {
            // The script, or its standard input: what follows is the script's.
            return None;
        };
        if let Some(long) = option.strip_prefix('-') {
            let name = long.split('=').next().unwrap_or_default();
            if interpreter.long.contains(&name) {
                return Some(format!("{} --{name}", interpreter.name));
            }
            if interpreter.long_values.contains(&name) && !long.contains('=') {
                arguments.next();
            }
            continue;
        }
        for (at, letter) in option.char_indices() {
            if interpreter.short.contains(letter) {
                return Some(format!("{} -{letter}", interpreter.name));
            }
            if interpreter.ends.contains(letter) {
                return None;
            }
            if interpreter.short_values.contains(letter) {
                if at + letter.len_utf8() == option.len() {
                    arguments.next();
                }
                break;
            }
        }
    }
    None
}

/// Whether this is such a form, as exceptions name it.
pub(crate) fn is_inline_form(what: &str) -> bool {
    let Some((program, option)) = what.split_once(' ') else { return false };
    let Some(interpreter) = INTERPRETERS.iter().find(|one| one.name == program) else {
        return false;
    };
    match option.strip_prefix('-') {
        None => interpreter.commands.contains(&option),
        Some(short) => match short.strip_prefix('-') {
            Some(long) => interpreter.long.contains(&long),
            None => short.chars().count() == 1 && interpreter.short.contains(short),
        },
    }
}

/// The package manager that an interpreter runs as a module (`python -m pip`).
pub(crate) fn managing_module<'a>(program: &str, argv: &'a [impl AsRef<str>]) -> Option<&'a str> {
    // Of the interpreters that run modules, this is the only option for it.
    if !Interpreter::of(program)?.ends.contains('m') {
        return None;
    }
    let mut arguments = own_arguments(program, argv);
    while let Some(argument) = arguments.next() {
        let module = match argument.strip_prefix("-m") {
            Some("") => arguments.next()?,
            Some(attached) => attached,
            None if argument.starts_with('-') => continue,
            None => return None,
        };
        let top = module.split('.').next().unwrap_or(module);
        return (top == "ensurepip" || is_package_manager(top)).then_some(module);
    }
    None
}

/// Whether a script hands what it fetches to a shell or an interpreter.
pub(crate) fn pipes_into_shell(script: &str) -> bool {
    const FETCHERS: [&str; 4] = ["curl", "wget", "aria2c", "lynx"];
    if !FETCHERS.iter().any(|fetcher| script.contains(fetcher)) {
        return false;
    }
    let runs = |word: &str| is_shell(word) || Interpreter::of(word).is_some();
    let fetches = |word: &str| FETCHERS.contains(&word.rsplit('/').next().unwrap_or(word));
    let (mut fetched, mut ran, mut piped) = (false, false, false);
    let mut last = "";
    for word in Words(script) {
        match word {
            // `a || b`: b gets nothing of a.
            "|" if last == "|" => (fetched, ran, piped) = (false, false, false),
            "|" => piped = fetched,
            ";" | "&" | "\n" => (fetched, ran, piped) = (false, false, false),
            // `bash <(curl …)`, `sh -c "$(curl …)"`
            _ if fetches(word) && ran => return true,
            _ if fetches(word) => fetched = true,
            _ if runs(word) && piped => return true,
            "eval" | "source" | "." => ran = true,
            _ => ran |= runs(word),
        }
        last = word;
    }
    false
}

/// Whether a program can be handed another one as an argument.
pub(crate) fn is_interpreter(program: &str) -> bool {
    Interpreter::of(program).is_some()
}

/// Whether a program does nothing but run another (`env`, `timeout`).
pub(crate) fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&plain(program).as_str())
}

/// The program that a program runs which does nothing else (`env`, `timeout`),
/// by its index in `argv`.
pub(crate) fn wrapped(program: &str, argv: &[impl AsRef<str>]) -> Option<usize> {
    let name = plain(program);
    if !WRAPPERS.contains(&name.as_str()) {
        return None;
    }
    let own = argv.first().is_some_and(|first| plain(first.as_ref()) == name);
    let passed = |word: &str| {
        word.starts_with('-')
            || word.contains('=')
            || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let rest = argv.iter().enumerate().skip(usize::from(own));
    let mut words = rest.filter(|(_, word)| !passed(word.as_ref()));
    // Options with values hide which word is the program: the first that could be.
    let first = words.clone().next().map(|(at, _)| at);
    let special = words.find(|(_, word)| {
        let word = word.as_ref();
        is_shell(word) || Interpreter::of(word).is_some() || is_package_manager(word)
    });
    special.map(|(at, _)| at).or(first)
}

const WRAPPERS: [&str; 18] = [
    "env", "timeout", "nice", "nohup", "xargs", "sudo", "doas", "setsid", "stdbuf", "time",
    "ionice", "chrt", "taskset", "unshare", "chroot", "runuser", "watch", "strace",
];

fn own_arguments<'a, A: AsRef<str>>(
    program: &str,
    argv: &'a [A],
) -> impl Iterator<Item = &'a str> + use<'a, A> {
    let named = argv.first().is_some_and(|first| plain(first.as_ref()) == plain(program));
    argv.iter().skip(usize::from(named)).map(AsRef::as_ref)
}

struct Interpreter {
    name: &'static str,
    also: &'static [&'static str],
    /// Letters behind which the program stands.
    short: &'static str,
    /// Letters with a value that is something else.
    short_values: &'static str,
    /// Letters behind which a module stands: what follows is the module's.
    ends: &'static str,
    long: &'static [&'static str],
    long_values: &'static [&'static str],
    /// Words that are commands (`deno eval`).
    commands: &'static [&'static str],
}

const fn interpreter(
    name: &'static str,
    short: &'static str,
    short_values: &'static str,
) -> Interpreter {
    Interpreter {
        name,
        also: &[],
        short,
        short_values,
        ends: "",
        long: &[],
        long_values: &[],
        commands: &[],
    }
}

const INTERPRETERS: [Interpreter; 14] = [
    Interpreter { also: &["micropython"], ends: "m", ..interpreter("python", "c", "WXQ") },
    Interpreter { ends: "m", ..interpreter("pypy", "c", "WXQ") },
    Interpreter {
        also: &["nodejs"],
        long: &["eval", "print"],
        long_values: &["require", "import", "loader", "conditions", "env-file", "input-type"],
        ..interpreter("node", "ep", "rC")
    },
    Interpreter { long: &["eval", "print"], ..interpreter("bun", "ep", "r") },
    Interpreter { commands: &["eval", "repl"], ..interpreter("deno", "", "c") },
    interpreter("perl", "eE", "ICDFMmxi"),
    interpreter("ruby", "e", "ICEFKrxi"),
    Interpreter {
        long: &["run", "process-begin", "process-code", "process-end"],
        ..interpreter("php", "rBRE", "cdfFStz")
    },
    interpreter("lua", "e", "l"),
    Interpreter { also: &["r"], ..interpreter("rscript", "e", "") },
    Interpreter { long: &["eval", "print"], ..interpreter("julia", "eE", "LJpt") },
    interpreter("osascript", "e", "ls"),
    Interpreter { long: &["eval", "rpc-eval"], ..interpreter("elixir", "e", "rSp") },
    Interpreter { long: &["eval"], ..interpreter("scala", "e", "") },
];

impl Interpreter {
    fn of(program: &str) -> Option<&'static Interpreter> {
        let name = plain(program);
        INTERPRETERS.iter().find(|one| one.name == name || one.also.contains(&name.as_str()))
    }
}

/// Words of a script, and the signs between commands; loosely, for a script
/// that hides its words hides them from any reader.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let blank = |c: char| {
            matches!(c, ' ' | '\t' | '"' | '\'' | '(' | ')' | '`' | '$' | '<' | '>' | '{' | '}')
        };
        let sign = |c: char| matches!(c, '|' | ';' | '&' | '\n');
        let rest = self.0.trim_start_matches(blank);
        let end = match rest.chars().next()? {
            first if sign(first) => 1,
            _ => rest.find(|c| blank(c) || sign(c)).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        self.0 = after;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split(' ').collect()
    }

    #[test]
    fn inline_forms() {
        for (line, form) in [
            ("python -c x", Some("python -c")),
            ("python3.11 -Ic x", Some("python -c")),
            ("/usr/bin/python3 -W ignore -c x", Some("python -c")),
            ("python x.py -c y", None),
            ("python -m pytest -c y", None),
            ("python", None),
            ("node -e x", Some("node -e")),
            ("nodejs --eval=x", Some("node --eval")),
            ("node -pe x", Some("node -p")),
            ("node -r esm x.js -e", None),
            ("deno eval x", Some("deno eval")),
            ("perl -lane x", Some("perl -e")),
            ("perl -Ilib x.pl -e", None),
            ("ruby -e x", Some("ruby -e")),
            ("php8.2 -r x", Some("php -r")),
            ("awk {print}", None),
            ("git -c x=y log", None),
        ] {
            let all = words(line);
            assert_eq!(inline_form(all[0], &all).as_deref(), form, "{line}");
            assert_eq!(inline_form(all[0], &all[1..]).as_deref(), form, "{line}, bare");
        }
    }

    #[test]
    fn modules_and_wrapped_programs() {
        assert_eq!(managing_module("python3", &words("python3 -I -m pip install x")), Some("pip"));
        assert_eq!(managing_module("python3", &words("-m pytest")), None);
        assert_eq!(wrapped("env", &words("env -i A=b bash -c x")), Some(3));
        assert_eq!(wrapped("timeout", &words("-s KILL 5 npm i")), Some(3));
        assert_eq!(wrapped("nice", &words("nice make")), Some(1));
        assert_eq!(wrapped("git", &words("git bash")), None);
    }

    #[test]
    fn fetched_scripts() {
        for script in [
            "curl -fsSL https://x | sh",
            "wget -qO- x|sudo bash",
            "curl x | env A=b python3 -",
            "bash <(curl x)",
            "sh -c \"$(curl x)\"",
            "eval `wget x`",
            "cd y && curl x | tee z | bash",
        ] {
            assert!(pipes_into_shell(script), "{script}");
        }
        for script in [
            "curl x -o y",
            "curl x | jq .",
            "curl x || bash y",
            "sh y; curl x",
            "echo curl; sh y",
            "make | tee x",
            "",
        ] {
            assert!(!pipes_into_shell(script), "{script}");
        }
    }
}
