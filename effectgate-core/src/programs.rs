//! Programs that run whatever they are told: shells, interpreters used as
//! shells, package managers.

/// Programs whose work is to run other programs.
const SHELLS: [&str; 17] = [
    "ash",
    "bash",
    "busybox",
    "cmd",
    "csh",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "powershell",
    "pwsh",
    "sh",
    "tcsh",
    "xonsh",
    "zsh",
];

/// Programs that fetch code and run what comes with it.
const PACKAGE_MANAGERS: [&str; 35] = [
    "apk",
    "apt",
    "apt-get",
    "aptitude",
    "brew",
    "bun",
    "bundle",
    "bundler",
    "bunx",
    "cargo",
    "composer",
    "conda",
    "corepack",
    "cpan",
    "dnf",
    "dpkg",
    "easy_install",
    "emerge",
    "gem",
    "mamba",
    "microdnf",
    "npm",
    "npx",
    "pacman",
    "pip",
    "pipx",
    "pnpm",
    "pnpx",
    "poetry",
    "rpm",
    "uv",
    "uvx",
    "yarn",
    "yum",
    "zypper",
];

/// Interpreters, and the options by which they run their argument as code.
const FORMS: [(&str, &[&str]); 9] = [
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("deno", &["eval"]),
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
];

/// A program's name as these lists have it: without directories, `.exe` and
/// the version at its end (`/usr/bin/python3.11` is `python`).
pub(crate) fn plain(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let short = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if short.is_empty() { name.to_owned() } else { short.to_owned() }
}

pub(crate) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&plain(program).as_str())
}

pub(crate) fn is_package_manager(program: &str) -> bool {
    PACKAGE_MANAGERS.contains(&plain(program).as_str())
}

/// The form in which an interpreter is used as a shell, as exceptions name it
/// (`python -c`); `None` when these arguments are no such form.
pub(crate) fn form<S: AsRef<str>>(argv: &[S]) -> Option<String> {
    let (program, arguments) = argv.split_first()?;
    let program = plain(program.as_ref());
    let (_, options) = FORMS.iter().find(|(name, _)| *name == program)?;
    // Options come first; behind the first word that is none, everything
    // belongs to the script.
    for argument in arguments {
        let argument = argument.as_ref();
        let found = options.iter().find(|option| is_option(argument, option));
        if let Some(option) = found {
            return Some(format!("{program} {option}"));
        }
        if !argument.starts_with('-') || argument == "--" {
            return None;
        }
    }
    None
}

/// Whether an argument is this option: alone, with its value (`--eval=…`,
/// `-c…`), or at the end of short ones written together (`-Ic`).
fn is_option(argument: &str, option: &str) -> bool {
    if argument == option {
        return true;
    }
    if option.starts_with("--") {
        return argument.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
    }
    let Some(letter) = option.strip_prefix('-') else { return false };
    !argument.starts_with("--")
        && argument.strip_prefix('-').is_some_and(|letters| letters.contains(letter))
}

/// Whether an exception may name this: a shell, or an interpreter's form.
pub(crate) fn is_exceptional(what: &str) -> bool {
    SHELLS.contains(&what)
        || what.split_once(' ').is_some_and(|(program, option)| {
            FORMS.iter().any(|(name, options)| *name == program && options.contains(&option))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_directories_and_versions() {
        for (text, want) in [
            ("/usr/bin/python3.11", "python"),
            ("bash-5.2", "bash"),
            ("PowerShell.exe", "powershell"),
            ("7z", "7z"),
            ("7", "7"),
            ("pip3", "pip"),
            ("apt-get", "apt-get"),
        ] {
            assert_eq!(plain(text), want);
        }
    }

    #[test]
    fn forms() {
        for (argv, want) in [
            (&["python3", "-c", "1"][..], Some("python -c")),
            (&["/usr/bin/python3.11", "-I", "-c", "1"], Some("python -c")),
            (&["python", "-Ic", "1"], Some("python -c")),
            (&["python", "build.py", "-c"], None),
            (&["python", "-m", "pytest", "-c", "x"], None),
            (&["node", "--eval=1"], Some("node --eval")),
            (&["node", "-p", "1"], Some("node -p")),
            (&["node", "server.js", "-e"], None),
            (&["perl", "-ne", "1"], Some("perl -e")),
            (&["deno", "eval", "1"], Some("deno eval")),
            (&["git", "-c", "a=b"], None),
            (&[], None),
        ] {
            assert_eq!(form(argv).as_deref(), want, "{argv:?}");
        }
    }

    #[test]
    fn what_exceptions_may_name() {
        for what in ["bash", "sh", "python -c", "node --eval", "perl -E"] {
            assert!(is_exceptional(what), "{what}");
        }
        for what in ["", "git", "python", "python3 -c", "bash -c", "npm", "Bash"] {
            assert!(!is_exceptional(what), "{what}");
        }
    }

    #[test]
    fn lists_are_sorted_plain_names() {
        assert!(SHELLS.is_sorted() && PACKAGE_MANAGERS.is_sorted());
        assert!(SHELLS.iter().chain(&PACKAGE_MANAGERS).all(|name| plain(name) == *name));
    }
}
