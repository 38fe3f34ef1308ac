//! What a program is by its name and its arguments: a shell, an interpreter
//! used as one, a package manager. Files are another question.

mod inline;
mod pipe;
mod told;
mod wrapper;

pub use inline::inline_form;
pub(crate) use inline::{is_interpreter, managed};
pub use pipe::pipes_into_shell;
pub(crate) use told::Told;
pub(crate) use wrapper::is_wrapper;
use wrapper::{is_assignment, split, wrapped};

/// Where programs are looked for that a policy lists by name, beside the
/// directories that its profiles add.
pub const SEARCH_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Names of shells.
pub const SHELLS: [&str; 24] = [
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
    "oksh",
    "pdksh",
    "posh",
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

const PACKAGE_MANAGERS: [&str; 52] = [
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
    "emerge",
    "ensurepip",
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
    "rpm",
    "rustup",
    "snap",
    "uv",
    "uvx",
    "yarn",
    "yarnpkg",
    "yum",
    "zypper",
];

/// The shell that a program of this basename is; without its version
/// (`ksh93`, `zsh-5.9`) and `.exe`.
pub fn shell_name(basename: &str) -> Option<&'static str> {
    found(&SHELLS, basename)
}

/// Whether an exception may name this: a shell, or an interpreter's form.
pub(crate) fn is_exceptional(what: &str) -> bool {
    SHELLS.contains(&what) || inline::is_form(what)
}

/// Whether a program of this basename installs what others wrote; its version
/// does not count (`pip3`, `pip3.11`).
pub fn is_package_manager(basename: &str) -> bool {
    found(&PACKAGE_MANAGERS, basename).is_some()
}

fn found(names: &[&'static str], basename: &str) -> Option<&'static str> {
    names.iter().copied().find(|name| *name == basename || *name == stem(basename))
}

/// Whether two programs have the same name but for directory and version.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    stem(&basename(one.as_bytes())) == stem(&basename(other.as_bytes()))
}

/// A program's name without `.exe` and without its version.
fn stem(basename: &str) -> &str {
    let name = basename.strip_suffix(".exe").unwrap_or(basename);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if stem.is_empty() { name } else { stem }
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
    fn names_are_found_by_their_last_part() {
        assert_eq!(basename(b"/usr/bin/git"), "git");
        assert_eq!(basename(b"git"), "git");
        assert_eq!(basename(b""), "");
    }
}
