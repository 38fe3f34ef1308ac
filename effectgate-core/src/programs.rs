//! What a program is by its name and its arguments: a shell, an interpreter
//! used as one, a package manager. Files are another question.

mod inline;
mod pipe;

pub use inline::inline_form;
pub(crate) use inline::{is_interpreter, module};
pub use pipe::pipes_into_shell;

/// Where programs are looked for that a policy lists by name, beside the
/// directories that its profiles add.
pub const SEARCH_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Names of shells.
pub const SHELLS: [&str; 21] = [
    "ash",
    "bash",
    "busybox",
    "cmd",
    "csh",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "lksh",
    "mksh",
    "nu",
    "posh",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "tcsh",
    "toybox",
    "yash",
    "zsh",
];

const PACKAGE_MANAGERS: [&str; 40] = [
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
    "cpanm",
    "dnf",
    "dpkg",
    "easy_install",
    "flatpak",
    "gem",
    "mamba",
    "microdnf",
    "micromamba",
    "npm",
    "npx",
    "opam",
    "pacman",
    "pdm",
    "pip",
    "pipenv",
    "pipx",
    "pnpm",
    "pnpx",
    "poetry",
    "rpm",
    "snap",
    "uv",
    "yarn",
    "yum",
    "zypper",
];

/// The shell that a program of this name is.
pub fn shell_name(program: &str) -> Option<&'static str> {
    let plain = plain(program);
    SHELLS.iter().copied().find(|shell| *shell == plain)
}

/// Whether a program of this name installs what others wrote.
pub fn is_package_manager(program: &str) -> bool {
    PACKAGE_MANAGERS.contains(&plain(program).as_str())
}

/// Whether an exception may name this: a shell, or an interpreter's form.
pub(crate) fn is_exceptional(what: &str) -> bool {
    SHELLS.contains(&what) || inline::is_form(what)
}

/// A program's name as these lists have it: without directories, `.exe` and
/// the version at its end (`/usr/bin/python3.11` is `python`).
pub(crate) fn plain(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let short = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if short.is_empty() { name.to_owned() } else { short.to_owned() }
}

/// The last part of a path, as text.
pub(crate) fn basename(path: &[u8]) -> String {
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(last).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells() {
        for (name, shell) in [
            ("bash", "bash"),
            ("sh", "sh"),
            ("ksh93", "ksh"),
            ("zsh-5.9", "zsh"),
            ("bash5.2", "bash"),
            ("busybox", "busybox"),
            ("cmd.exe", "cmd"),
            ("pwsh", "pwsh"),
        ] {
            assert_eq!(shell_name(name), Some(shell), "{name}");
        }
        for name in ["bashful", "", "5", "git", "ssh", "csharp", "sha256sum", "make"] {
            assert_eq!(shell_name(name), None, "{name}");
        }
    }

    #[test]
    fn package_managers() {
        for name in ["npm", "pip", "pip3", "pip3.11", "apt-get", "cargo", "uv"] {
            assert!(is_package_manager(name), "{name}");
        }
        for name in ["go", "rustc", "python3", "pipeline", "git", "dpkg-query", ""] {
            assert!(!is_package_manager(name), "{name}");
        }
    }

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
    fn what_exceptions_may_name() {
        for what in ["bash", "sh", "python -c", "node --eval", "perl -E"] {
            assert!(is_exceptional(what), "{what}");
        }
        for what in ["", "git", "python", "python3 -c", "bash -c", "npm", "Bash", "python -x"] {
            assert!(!is_exceptional(what), "{what}");
        }
    }

    #[test]
    fn lists_are_sorted_plain_names() {
        assert!(SHELLS.is_sorted() && PACKAGE_MANAGERS.is_sorted());
        assert!(SHELLS.iter().chain(&PACKAGE_MANAGERS).all(|name| plain(name) == *name));
    }

    #[test]
    fn names_are_found_by_their_last_part() {
        assert_eq!(basename(b"/usr/bin/git"), "git");
        assert_eq!(basename(b"git"), "git");
        assert_eq!(basename(b""), "");
    }
}
