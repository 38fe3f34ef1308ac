//! What a line of a trace says that runs: the program itself, and those that it
//! runs in turn. Traces write arguments down in more than one way.

use super::{basename, is_interpreter, is_same, is_wrapper, shell_name, split, wrapped};

/// Programs that run one another, as far as they are followed.
const DEEPEST: usize = 8;

/// Programs with their arguments; each begins with the program's name.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told<'a> {
    /// First the one that was asked for, then those that it runs.
    pub programs: Vec<Vec<&'a str>>,
    /// What the arguments say it is, where that is another one.
    pub disguised: Option<Vec<&'a str>>,
    /// More run one another than are followed.
    pub too_deep: bool,
}

impl<'a> Told<'a> {
    /// Of a program that has a name of its own.
    pub fn of(binary: &'a str, argv: &'a [impl AsRef<str>]) -> Self {
        Told { disguised: disguised(binary, argv), ..Told::from(whole(binary, argv)) }
    }

    /// Of what a tool was handed: a command, or words of another kind.
    pub fn handed(argv: &'a [impl AsRef<str>]) -> Self {
        let words = argv.iter().map(AsRef::as_ref);
        // The whole command line may stand in the first word.
        let first = argv.first().map(AsRef::as_ref).unwrap_or_default();
        let command: Vec<&str> = split(first).chain(words.skip(1)).collect();
        let is_command = matches!(command.as_slice(), [program, second, ..]
            if second.starts_with('-')
                || is_wrapper(program)
                || shell_name(&basename(program.as_bytes())).is_some() && is_script(second));
        if is_command { Told::from(command) } else { Told::default() }
    }

    fn from(argv: Vec<&'a str>) -> Self {
        let mut told = Told { programs: vec![argv], ..Told::default() };
        let mut from = 0;
        for _ in 0..DEEPEST {
            let inner: Vec<_> =
                told.programs[from..].iter().flat_map(|program| wrapped(program)).collect();
            if inner.is_empty() {
                return told;
            }
            from = told.programs.len();
            told.programs.extend(inner);
        }
        told.too_deep = true;
        told
    }
}

/// The arguments with the program's own name before them: traces have it or not.
fn whole<'a>(program: &'a str, argv: &'a [impl AsRef<str>]) -> Vec<&'a str> {
    // By another of its names, too: `python` for the file `python3`.
    let alike = |first: &str| is_interpreter(first) && is_interpreter(program);
    let names_it = |first: &str| is_same(first, program) || alike(first);
    let own = argv.first().is_some_and(|first| names_it(first.as_ref()));
    let rest = argv.iter().skip(usize::from(own)).map(AsRef::as_ref);
    std::iter::once(program).chain(rest).collect()
}

/// A shell or an interpreter under the name of another program: a harness that
/// writes down what it was asked for has it there.
fn disguised<'a>(binary: &str, argv: &'a [impl AsRef<str>]) -> Option<Vec<&'a str>> {
    let first = argv.first()?.as_ref();
    let second = argv.get(1)?.as_ref();
    let name = basename(first.as_bytes());
    let shell = shell_name(&name).is_some() && is_command_option(second);
    let other = !is_same(first, binary);
    (other && (shell || is_interpreter(&name))).then(|| argv.iter().map(AsRef::as_ref).collect())
}

/// `-c`, `-lc`: a shell's program follows.
fn is_command_option(argument: &str) -> bool {
    let letters = argument.strip_prefix('-').unwrap_or_default();
    letters.contains('c') && letters.bytes().all(|letter| letter.is_ascii_alphabetic())
}

/// What a word behind a shell's name must look like to be its script, and no
/// word of a question.
fn is_script(word: &str) -> bool {
    word.contains('/') || word.ends_with(".sh")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(told: &Told) -> String {
        told.programs
            .iter()
            .chain(&told.disguised)
            .map(|program| program[0])
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn programs_of_a_line() {
        for (binary, line, want) in [
            ("git", "git status", "git"),
            ("git", "status", "git"),
            ("python3", "python -c x", "python3"),
            ("env", "env A=b nice make", "env nice make"),
            ("git", "bash -lc x", "git bash"),
            ("python3", "bash -c x", "python3 bash"),
            ("which", "bash -a", "which"),
        ] {
            let argv: Vec<&str> = line.split(' ').collect();
            assert_eq!(names(&Told::of(binary, &argv)), want, "{binary}: {line}");
        }
        let deep = ["env"; 20];
        assert!(Told::of("env", &deep).too_deep);
    }

    #[test]
    fn commands_that_tools_are_handed() {
        for (argv, want) in [
            (&["bash", "-lc", "x"][..], "bash"),
            (&["zsh -lc 'x'"], "zsh"),
            (&["sh", "tools/x"], "sh"),
            (&["/bin/sh x.sh"], "/bin/sh"),
            (&["env", "node", "-e", "x"], "env node"),
            (&["python", "docs"], ""),
            (&["sh", "is", "a", "shell"], ""),
            (&["README.md"], ""),
            (&[""], ""),
            (&[], ""),
        ] {
            assert_eq!(names(&Told::handed(argv)), want, "{argv:?}");
        }
    }
}
