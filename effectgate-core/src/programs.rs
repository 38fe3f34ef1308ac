//! What a program is by its name and its arguments: a shell, an interpreter
//! used as one, a package manager. Files are another question.

mod inline;
mod manager;
mod pipe;
mod told;
mod wrapper;

pub(crate) use inline::{inline_form, is_interpreter};
pub(crate) use manager::run_by_interpreter;
pub(crate) use pipe::pipes_into_shell;
pub(crate) use told::Told;
pub(crate) use wrapper::is_wrapper;
use wrapper::{is_assignment, split, wrapped};

/// Where programs are looked for that a policy lists by name, beside the
/// directories that its profiles add.
pub const SEARCH_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Names of shells.
pub const SHELLS: [&str; 28] = [
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
    "osh",
    "pdksh",
    "posh",
    "powershell",
    "pwsh",
    "rbash",
    "rc",
    "sash",
    "sh",
    "tcsh",
    "toybox",
    "xonsh",
    "yash",
    "ysh",
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
pub(crate) fn shell_name(basename: &str) -> Option<&'static str> {
    found(&SHELLS, basename)
}

/// Whether an exception may name this: a shell, or an interpreter's form.
pub(crate) fn is_exceptional(what: &str) -> bool {
    SHELLS.contains(&what) || inline::is_form(what)
}

/// Whether a program of this basename installs what others wrote; its version
/// does not count (`pip3`, `pip3.11`).
pub(crate) fn is_package_manager(basename: &str) -> bool {
    found(&PACKAGE_MANAGERS, basename).is_some()
}

fn found(names: &[&'static str], basename: &str) -> Option<&'static str> {
    names.iter().copied().find(|name| *name == basename || *name == stem(basename))
}

/// Whether two programs have the same name but for directory and version.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    stem(&basename(one.as_bytes())) == stem(&basename(other.as_bytes()))
}

/// A program's name without `.exe`, without its version (`python3.13t`), and
/// without what only says how it was built or packed (`bash-static`,
/// `perl5.36-x86_64-linux-gnu`, `sh.distrib`).
fn stem(basename: &str) -> &str {
    const ENDS: [&str; 9] =
        [".exe", "-static", ".static", "-dbg", "-debug", "-minimal", ".distrib", ".real", "-rc"];
    let mut name = basename.strip_prefix("static-").unwrap_or(basename);
    if let Some((front, _)) = name.split_once("-linux-") {
        name = front.rsplit_once('-').map_or(name, |(own, _)| own);
    }
    loop {
        let end = ENDS.iter().find_map(|end| name.strip_suffix(end));
        let shorter = without_version(end.unwrap_or(name));
        if shorter.is_empty() || shorter == name {
            return name;
        }
        name = shorter;
    }
}

fn without_version(name: &str) -> &str {
    // The letters are those by which builds of CPython differ.
    let plain = name.trim_end_matches(['d', 'm', 't', 'u']);
    let name = if plain.ends_with(|c: char| c.is_ascii_digit()) { plain } else { name };
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'))
}

/// Whether a program is the loader of programs, which runs any file that it
/// can read.
pub(crate) fn is_loader(basename: &str) -> bool {
    basename == "ld.so"
        || ["ld-linux", "ld-musl-", "ld.so.", "ld64.so"].iter().any(|of| basename.starts_with(of))
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
            ("bash-static", "bash"),
            ("static-sh", "sh"),
            ("zsh5-static", "zsh"),
            ("sh.distrib", "sh"),
            ("bash5.2-rc1", "bash"),
        ] {
            assert_eq!(shell_name(name), Some(shell), "{name}");
        }
        for name in
            ["bashful", "", "5", "git", "ssh", "csharp", "bash-completion", "sha256sum", "make"]
        {
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
    fn interpreters_under_names_of_their_builds() {
        for name in ["python3.13t", "python3-dbg", "perl5.36-x86_64-linux-gnu", "node-20"] {
            assert!(is_interpreter(name), "{name}");
        }
        for name in ["python3-config", "x86_64-linux-gnu-gcc", "nodemon", "perldoc"] {
            assert!(!is_interpreter(name), "{name}");
        }
    }

    #[test]
    fn loaders() {
        for name in ["ld.so", "ld-linux-x86-64.so.2", "ld-linux.so.2", "ld-musl-x86_64.so.1"] {
            assert!(is_loader(name), "{name}");
        }
        for name in ["ld", "ld.lld", "ld.bfd", "ld.gold"] {
            assert!(!is_loader(name), "{name}");
        }
    }

    #[test]
    fn names_are_found_by_their_last_part() {
        assert_eq!(basename(b"/usr/bin/git"), "git");
        assert_eq!(basename(b"git"), "git");
        assert_eq!(basename(b""), "");
    }
}
