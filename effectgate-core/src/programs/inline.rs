//! Interpreters whose program stands in their arguments.

use super::{basename, is_package_manager, stem};

/// How one interpreter reads its options.
struct Interpreter {
    names: &'static [&'static str],
    /// What an exception calls it.
    form: &'static str,
    /// Letters that a program follows.
    code: &'static [u8],
    /// Letters that take the rest of their cluster, or the next argument.
    value: &'static [u8],
    /// Letters that take the rest of their cluster only.
    rest: &'static [u8],
    /// Letters behind which the options end: what runs is named.
    last: &'static [u8],
    long_code: &'static [&'static str],
    /// Long options that take the next argument.
    long_value: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 6] = [
    Interpreter {
        names: &["python", "pypy"],
        form: "python -c",
        code: b"c",
        value: b"WXQ",
        rest: b"",
        last: b"m",
        long_code: &[],
        long_value: &["--check-hash-based-pycs"],
    },
    Interpreter {
        names: &["node", "nodejs", "bun"],
        form: "node -e",
        code: b"ep",
        value: b"rC",
        rest: b"",
        last: b"",
        long_code: &["--eval", "--print"],
        long_value: &[
            "--require",
            "--import",
            "--conditions",
            "--loader",
            "--experimental-loader",
            "--input-type",
            "--title",
            "--env-file",
            "--icu-data-dir",
            "--openssl-config",
            "--stack-trace-limit",
            "--disable-warning",
            "--experimental-default-type",
        ],
    },
    Interpreter {
        names: &["perl"],
        form: "perl -e",
        code: b"eE",
        value: b"I",
        rest: b"imMFxDV",
        last: b"",
        long_code: &[],
        long_value: &[],
    },
    Interpreter {
        names: &["ruby"],
        form: "ruby -e",
        code: b"e",
        value: b"IrCEK",
        rest: b"iFxTW0",
        last: b"",
        long_code: &[],
        long_value: &["--encoding", "--external-encoding", "--internal-encoding"],
    },
    Interpreter {
        names: &["php", "php-cli", "php-cgi"],
        form: "php -r",
        code: b"rBRE",
        value: b"cdztS",
        rest: b"",
        last: b"fF",
        long_code: &["--run", "--process-begin", "--process-code", "--process-end"],
        long_value: &["--php-ini", "--define", "--zend-extension", "--docroot", "--server"],
    },
    Interpreter {
        names: &["lua", "luajit"],
        form: "lua -e",
        code: b"e",
        value: b"l",
        rest: b"jOb",
        last: b"",
        long_code: &[],
        long_value: &[],
    },
];

/// The form in which an interpreter was given its program by argument, in the
/// words of an exception (`python -c`). `binary` is a path or a basename;
/// `argv` begins with the program's name.
pub fn inline_form(binary: &str, argv: &[impl AsRef<[u8]>]) -> Option<&'static str> {
    let interpreter = interpreter(binary)?;
    let mut arguments = argv.iter().skip(1).map(AsRef::as_ref);
    while let Some(argument) = arguments.next() {
        match interpreter.read(argument) {
            Reads::Code => return Some(interpreter.form),
            // A module in a URL is a program in an argument.
            Reads::Value if arguments.next().is_some_and(is_data) => return Some(interpreter.form),
            Reads::Value | Reads::Alone => {}
            Reads::End => return None,
        }
    }
    None
}

fn is_data(value: &[u8]) -> bool {
    value.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"data:"))
}

/// The module that Python runs as its program (`python -m pip`).
fn module(binary: &str, argv: &[impl AsRef<[u8]>]) -> Option<String> {
    let python = interpreter(binary).filter(|one| one.last.contains(&b'm'))?;
    let mut arguments = argv.iter().skip(1).map(AsRef::as_ref);
    while let Some(argument) = arguments.next() {
        match python.read(argument) {
            Reads::Value => {
                arguments.next();
            }
            Reads::Alone => {}
            Reads::Code => return None,
            Reads::End if argument.starts_with(b"-") && argument.len() > 1 => {
                let at = argument.iter().position(|letter| *letter == b'm')?;
                let rest = &argument[at + 1..];
                let name = if rest.is_empty() { arguments.next()? } else { rest };
                return Some(String::from_utf8_lossy(name).into_owned());
            }
            Reads::End => return None,
        }
    }
    None
}

/// The package manager that an interpreter runs: as a module (`python -m pip`),
/// or as a script (`python /usr/bin/pip`, `node …/npm-cli.js`).
pub(crate) fn managed(binary: &str, argv: &[impl AsRef<[u8]>]) -> Option<String> {
    const SCRIPTS: [&str; 7] =
        ["npm-cli.js", "npx-cli.js", "yarn.js", "pnpm.cjs", "pnpm.mjs", "composer.phar", "pip.pyz"];
    let is_manager = |name: &str| is_package_manager(name) || SCRIPTS.contains(&name);
    if let Some(module) = module(binary, argv) {
        let whole = module.split('.').next().unwrap_or_default();
        return is_manager(whole).then_some(module);
    }
    let script = basename(script(binary, argv)?);
    is_manager(&script).then_some(script)
}

/// The file that an interpreter runs as its program.
fn script<'a>(binary: &str, argv: &'a [impl AsRef<[u8]>]) -> Option<&'a [u8]> {
    let interpreter = interpreter(binary)?;
    let mut arguments = argv.iter().skip(1).map(AsRef::as_ref);
    while let Some(argument) = arguments.next() {
        match interpreter.read(argument) {
            Reads::Code => return None,
            Reads::Value => {
                arguments.next();
            }
            Reads::Alone => {}
            Reads::End if argument == b"--" => return arguments.next(),
            Reads::End => return Some(argument).filter(|it| !it.starts_with(b"-")),
        }
    }
    None
}

/// Whether an exception can name this form.
pub(crate) fn is_form(text: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| interpreter.form == text)
}

/// Whether a program of this name can be given its program by argument.
pub(crate) fn is_interpreter(binary: &str) -> bool {
    interpreter(binary).is_some()
}

fn interpreter(binary: &str) -> Option<&'static Interpreter> {
    let name = basename(binary.as_bytes());
    let name = stem(&name);
    INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&name))
}

/// What an argument is to an interpreter.
enum Reads {
    /// A program follows.
    Code,
    /// The next argument belongs to it.
    Value,
    Alone,
    /// No option: what follows is the program's own.
    End,
}

impl Interpreter {
    fn read(&self, argument: &[u8]) -> Reads {
        if argument == b"-" || argument == b"--" || !argument.starts_with(b"-") {
            return Reads::End;
        }
        if argument.starts_with(b"--") {
            let name = argument.split(|byte| *byte == b'=').next().unwrap_or_default();
            let is = |names: &[&str]| names.iter().any(|long| long.as_bytes() == name);
            return match (is(self.long_code), name.len() == argument.len()) {
                (true, _) => Reads::Code,
                (false, false) if is(self.long_value) && is_data(&argument[name.len() + 1..]) => {
                    Reads::Code
                }
                (false, true) if is(self.long_value) => Reads::Value,
                (false, _) => Reads::Alone,
            };
        }
        for (at, letter) in argument.iter().enumerate().skip(1) {
            if self.code.contains(letter) {
                return Reads::Code;
            }
            if self.value.contains(letter) {
                return if at + 1 == argument.len() { Reads::Value } else { Reads::Alone };
            }
            if self.rest.contains(letter) {
                return Reads::Alone;
            }
            if self.last.contains(letter) {
                return Reads::End;
            }
        }
        Reads::Alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(line: &str) -> Option<&'static str> {
        let argv: Vec<&str> = line.split(' ').collect();
        inline_form(argv[0], &argv)
    }

    #[test]
    fn programs_in_arguments() {
        for (line, want) in [
            ("python -c x", "python -c"),
            ("/usr/bin/python3.11 -c x", "python -c"),
            ("python3 -Bc x", "python -c"),
            ("python3 -I -W error -c x", "python -c"),
            ("python3 -Xdev -cprint(1)", "python -c"),
            ("node -e x", "node -e"),
            ("node --eval x", "node -e"),
            ("node --eval=x", "node -e"),
            ("nodejs -pe x", "node -e"),
            ("node -r ./a.js --print x", "node -e"),
            ("node18 -p x", "node -e"),
            ("node --import data:text/javascript,x", "node -e"),
            ("node --import=data:text/javascript,x", "node -e"),
            ("perl -e x", "perl -e"),
            ("perl -lne x", "perl -e"),
            ("perl5.36.0 -MPOSIX -E x", "perl -e"),
            ("perl -i.bak -pe x", "perl -e"),
            ("perl -I lib -e x", "perl -e"),
            ("ruby -ne x", "ruby -e"),
            ("ruby -r json -e x", "ruby -e"),
            ("php -r x", "php -r"),
            ("php8.2 -d a=b -r x", "php -r"),
            ("lua5.4 -l m -e x", "lua -e"),
        ] {
            assert_eq!(form(line), Some(want), "{line}");
        }
    }

    #[test]
    fn modules() {
        let of = |line: &str| {
            let argv: Vec<&str> = line.split(' ').collect();
            module(argv[0], &argv)
        };
        for line in ["python3 -m pip install x", "python3 -Im pip", "python -W error -mpip"] {
            assert_eq!(of(line).as_deref(), Some("pip"), "{line}");
        }
        for line in ["python3 -c pip -m pip", "python3 x.py -m pip", "node -m pip", "python3 -- m"]
        {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn package_managers_by_another_name() {
        let of = |line: &str| {
            let argv: Vec<&str> = line.split(' ').collect();
            managed(argv[0], &argv)
        };
        for line in [
            "python3 -m pip.__main__",
            "python3 /usr/bin/pip3 install x",
            "python3 -I -- /usr/lib/python3/pip install x",
            "node -r a /usr/lib/node_modules/npm/bin/npm-cli.js i",
            "php composer.phar",
            "ruby /usr/bin/gem",
        ] {
            assert!(of(line).is_some(), "{line}");
        }
        for line in ["python3 x.py pip", "python3 -c pip", "node bundle.js", "python3", "cat pip"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn programs_in_files() {
        for line in [
            "python3 tool.py -c x",
            "python3 -m pytest -c x",
            "python3 -W -c",
            "python3 - -c",
            "python3 -- -c",
            "python3",
            "node server.js -e x",
            "node --inspect server.js --eval",
            "perl -ie file",
            "perl tool.pl -e",
            "ruby tool.rb -e x",
            "php -f tool.php -r",
            "php tool.php -r x",
            "gcc -c x.c",
            "grep -e x",
            "sh -c x",
        ] {
            assert_eq!(form(line), None, "{line}");
        }
        assert_eq!(inline_form("python3", &[] as &[&str]), None);
    }
}
