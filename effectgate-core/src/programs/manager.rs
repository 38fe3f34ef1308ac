//! Package managers that are run by their interpreter: as a module of Python's,
//! or by the file that they are installed as.

use super::{inline, is_package_manager};

/// Directories that hold packages, each in one of the package's name.
const PACKAGES: [&[u8]; 4] = [b"node_modules", b"nodejs", b"site-packages", b"dist-packages"];

/// Files that package managers are installed as, beside those of their names.
const SCRIPTS: [&[u8]; 7] = [
    b"npm-cli.js",
    b"npx-cli.js",
    b"yarn.js",
    b"pnpm.cjs",
    b"pnpm.mjs",
    b"composer.phar",
    b"pip.pyz",
];

/// Modules of Python that run another one, which their arguments name.
const RUNNERS: [&str; 6] = ["runpy", "cProfile", "profile", "pdb", "trace", "coverage"];

/// The package manager that an interpreter of this name runs with these
/// arguments, as it is named there. `argv` begins with the program's name.
pub(crate) fn run_by_interpreter(binary: &str, argv: &[impl AsRef<[u8]>]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let Some(module) = inline::module(binary, argv) else {
        return inline::script(binary, argv).filter(|script| is_part_of_manager(script)).map(text);
    };
    if is_manager(module.as_bytes()) {
        return Some(module);
    }
    if !RUNNERS.contains(&module.as_str()) {
        return None;
    }
    let names_next = |word: &[u8]| word == b"-m" || word == b"--module" || word == b"runpy";
    let mut pairs = argv.windows(2).map(|pair| (pair[0].as_ref(), pair[1].as_ref()));
    pairs.find(|(word, next)| names_next(word) && is_manager(next)).map(|(_, next)| text(next))
}

/// A module, or one inside it (`pip.__main__`).
fn is_manager(module: &[u8]) -> bool {
    let first = module.split(|byte| *byte == b'.').next().unwrap_or_default();
    std::str::from_utf8(first).is_ok_and(is_package_manager)
}

/// A file of an installed package manager (`node_modules/npm/bin/npm-cli.js`).
fn is_part_of_manager(script: &[u8]) -> bool {
    let parts: Vec<&[u8]> = script.split(|byte| *byte == b'/').collect();
    let installed = parts.windows(2).any(|pair| match pair {
        [above, package] => PACKAGES.contains(above) && is_manager(package),
        _ => false,
    });
    let last = parts.last().copied().unwrap_or_default();
    installed || SCRIPTS.contains(&last) || std::str::from_utf8(last).is_ok_and(is_package_manager)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_under_their_interpreters() {
        let runs = |line: &str| {
            let argv: Vec<&str> = line.split(' ').collect();
            run_by_interpreter(argv[0], &argv).is_some()
        };
        for line in [
            "python3 -m pip install x",
            "python3 -m pip.__main__ install x",
            "python3 -Im runpy pip install x",
            "python3 -m cProfile -m pip",
            "python3 /usr/lib/python3/dist-packages/pip install x",
            "python3 -B lib/site-packages/pip/__main__.py",
            "node /usr/lib/node_modules/npm/bin/npm-cli.js i",
            "node --no-warnings -- /usr/share/nodejs/npm/bin/npx-cli.js x",
            "node npm-cli.js i",
        ] {
            assert!(runs(line), "{line}");
        }
        for line in [
            "python3 -m unittest pip",
            "python3 tools/pip.py",
            "python3 tool.py /usr/lib/node_modules/npm",
            "python3 -m coverage run -m pytest -k snap",
            "node node_modules/webpack/bin/webpack.js",
            "node",
            "make npm-cli.js",
        ] {
            assert!(!runs(line), "{line}");
        }
    }
}
