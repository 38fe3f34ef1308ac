//! Interpreters whose program stands in their arguments.

use super::{basename, stem};

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
    /// Of those, the ones that take a module's name: more than a name is code.
    uses: &'static [u8],
    /// Letters behind which the options end: what runs is named.
    last: &'static [u8],
    long_code: &'static [&'static str],
    /// Long options that take the next argument.
    long_value: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 6] = [
    Interpreter {
        names: &["python", "pypy", "ipython"],
        form: "python -c",
        code: b"c",
        value: b"WXQ",
        rest: b"",
        uses: b"",
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
        uses: b"",
        last: b"",
        long_code: &["--eval", "--print"],
        // `node --help` of Node.js 20, and the documentation of 22 and 24.
        long_value: &[
            "--allow-fs-read",
            "--allow-fs-write",
            "--build-sea",
            "--build-snapshot-config",
            "--conditions",
            "--cpu-prof-dir",
            "--cpu-prof-interval",
            "--cpu-prof-name",
            "--debug-port",
            "--diagnostic-dir",
            "--disable-proto",
            "--disable-warning",
            "--dns-result-order",
            "--env-file",
            "--env-file-if-exists",
            "--experimental-config-file",
            "--experimental-default-type",
            "--experimental-loader",
            "--experimental-policy",
            "--experimental-sea-config",
            "--experimental-test-isolation",
            "--heap-prof-dir",
            "--heap-prof-interval",
            "--heap-prof-name",
            "--heapsnapshot-near-heap-limit",
            "--heapsnapshot-signal",
            "--icu-data-dir",
            "--import",
            "--input-type",
            "--inspect-port",
            "--inspect-publish-uid",
            "--loader",
            "--localstorage-file",
            "--max-http-header-size",
            "--max-old-space-size-percentage",
            "--network-family-autoselection-attempt-timeout",
            "--openssl-config",
            "--policy-integrity",
            "--redirect-warnings",
            "--report-dir",
            "--report-directory",
            "--report-filename",
            "--report-signal",
            "--require",
            "--secure-heap",
            "--secure-heap-min",
            "--snapshot-blob",
            "--stack-trace-limit",
            "--test-concurrency",
            "--test-coverage-branches",
            "--test-coverage-exclude",
            "--test-coverage-functions",
            "--test-coverage-include",
            "--test-coverage-lines",
            "--test-global-setup",
            "--test-isolation",
            "--test-name-pattern",
            "--test-reporter",
            "--test-reporter-destination",
            "--test-rerun-failures",
            "--test-shard",
            "--test-skip-pattern",
            "--test-timeout",
            "--title",
            "--tls-cipher-list",
            "--tls-keylog",
            "--trace-event-categories",
            "--trace-event-file-pattern",
            "--trace-require-module",
            "--unhandled-rejections",
            "--use-largepages",
            "--v8-pool-size",
            "--watch-kill-signal",
            "--watch-path",
        ],
    },
    Interpreter {
        names: &["perl"],
        form: "perl -e",
        code: b"eE",
        value: b"I",
        rest: b"imMFxDV:",
        uses: b"mM:",
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
        uses: b"",
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
        uses: b"",
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
        uses: b"",
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
            Reads::Value => {
                if arguments.next().is_some_and(is_text_of_program) {
                    return Some(interpreter.form);
                }
            }
            Reads::Alone if is_text_of_program(argument) => return Some(interpreter.form),
            Reads::Alone => {}
            Reads::End => {
                let given = module(binary, argv).is_some_and(|name| name == GIVEN_ITS_PROGRAM);
                return given.then_some(interpreter.form);
            }
        }
    }
    None
}

/// A module of Python that runs what its arguments say.
const GIVEN_ITS_PROGRAM: &str = "timeit";

/// Whether an option's value is a program itself (`--import data:text/javascript,…`).
fn is_text_of_program(value: &[u8]) -> bool {
    let begins =
        |part: &[u8]| part.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"data:"));
    value.split(|byte| *byte == b'=').any(begins)
}

/// The module that Python runs as its program (`python -m pip`).
pub(super) fn module(binary: &str, argv: &[impl AsRef<[u8]>]) -> Option<String> {
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

/// The file that an interpreter runs as its program, as it was named.
pub(super) fn script<'a>(binary: &str, argv: &'a [impl AsRef<[u8]>]) -> Option<&'a [u8]> {
    let interpreter = interpreter(binary)?;
    let mut arguments = argv.iter().skip(1).map(AsRef::as_ref);
    while let Some(argument) = arguments.next() {
        match interpreter.read(argument) {
            Reads::Value => {
                arguments.next();
            }
            Reads::Alone => {}
            Reads::Code => return None,
            Reads::End if argument == b"--" => return arguments.next(),
            Reads::End => return (!argument.starts_with(b"-")).then_some(argument),
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
            let rest = &argument[at + 1..];
            if self.rest.contains(letter) {
                let code = self.uses.contains(letter) && !names_a_module(rest);
                return if code || holds_options(rest) { Reads::Code } else { Reads::Alone };
            }
            if self.last.contains(letter) {
                return Reads::End;
            }
        }
        Reads::Alone
    }
}

/// Whether what follows `-M` is a name, with a list of words behind `=`: perl
/// reads anything else there as a part of a program.
fn names_a_module(rest: &[u8]) -> bool {
    let name = rest.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_:-'".contains(byte))
}

/// Whether options stand behind a blank in one argument, as perl reads them.
fn holds_options(rest: &[u8]) -> bool {
    rest.windows(2).any(|pair| pair[0].is_ascii_whitespace() && pair[1] == b'-')
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
            ("node --max-http-header-size 9 -e x", "node -e"),
            ("node --import data:text/javascript,x", "node -e"),
            ("node --import=data:text/javascript,x", "node -e"),
            ("perl -e x", "perl -e"),
            ("perl -lne x", "perl -e"),
            ("perl5.36.0 -MPOSIX -E x", "perl -e"),
            ("perl -i.bak -pe x", "perl -e"),
            ("perl -I lib -e x", "perl -e"),
            ("ruby -ne x", "ruby -e"),
            ("ruby -r json -e x", "ruby -e"),
            ("perl -Mstrict;print(1) x.pl", "perl -e"),
            ("perl -d:x;print(1) x.pl", "perl -e"),
            ("perl -de 1", "perl -e"),
            ("node --import data:text/javascript,x", "node -e"),
            ("node --import=data:text/javascript,x a.js", "node -e"),
            ("python3 -m timeit x", "python -c"),
            ("python3 -Imtimeit x", "python -c"),
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
    fn programs_in_files() {
        for line in [
            "python3 tool.py -c x",
            "python3 -m pytest -c x",
            "python3 -W -c",
            "python3 - -c",
            "python3 -- -c",
            "python3",
            "node server.js -e x",
            "node --enable-source-maps server.js -p 8080",
            "node --inspect server.js --eval",
            "perl -ie file",
            "perl tool.pl -e",
            "perl -MList::Util=first,sum tool.pl",
            "perl -d:Trace tool.pl",
            "node --import ./data.mjs tool.js",
            "python3 tool.py -m timeit",
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
        assert_eq!(inline_form("perl", &["perl", "-i -e", "x"]), Some("perl -e"));
    }
}
