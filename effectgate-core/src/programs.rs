//! Programs that run whatever they are told: shells, interpreters used as
//! shells, package managers.

mod told;

pub(crate) use told::{
    inline_form, is_inline_form, is_interpreter, is_wrapper, managing_module, pipes_into_shell,
    wrapped,
};

/// Programs whose work is to run other programs.
const SHELLS: [&str; 22] = [
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
    "oksh",
    "pdksh",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "tcsh",
    "toybox",
    "xonsh",
    "yash",
    "zsh",
];

/// Programs that fetch code and run what comes with it.
const PACKAGE_MANAGERS: [&str; 58] = [
    "apk",
    "apt",
    "apt-get",
    "aptitude",
    "brew",
    "bun",
    "bundle",
    "bundler",
    "bunx",
    "cabal",
    "cargo",
    "choco",
    "composer",
    "conda",
    "corepack",
    "cpan",
    "cpanm",
    "dnf",
    "dpkg",
    "easy_install",
    "emerge",
    "flatpak",
    "gem",
    "guix",
    "hatch",
    "luarocks",
    "mamba",
    "microdnf",
    "micromamba",
    "nix",
    "nix-env",
    "nix-shell",
    "npm",
    "npx",
    "nuget",
    "opam",
    "pacman",
    "pdm",
    "pip",
    "pipenv",
    "pipx",
    "pnpm",
    "pnpx",
    "poetry",
    "port",
    "rpm",
    "rustup",
    "scoop",
    "snap",
    "stack",
    "uv",
    "uvx",
    "winget",
    "xbps-install",
    "yarn",
    "yarnpkg",
    "yum",
    "zypper",
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
    inline_form(program.as_ref(), arguments)
}

/// Whether an exception may name this: a shell, or an interpreter's form.
pub(crate) fn is_exceptional(what: &str) -> bool {
    SHELLS.contains(&what) || is_inline_form(what)
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
