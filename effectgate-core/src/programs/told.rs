//! What a line of a trace says that runs: the program itself, and those that it
//! runs in turn. Traces write arguments down in more than one way.

use super::{
    basename, is_assignment, is_interpreter, is_same, is_wrapper, shell_name, split, wrapped,
};

/// Programs that run one another, as far as they are followed.
const DEEPEST: usize = 8;

/// Programs with their arguments; each begins with the program's name.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told<'a> {
    /// First the one that was asked for, then those that it runs.
    pub programs: Vec<Vec<&'a str>>,
    /// Programs of which only a text speaks: the arguments of another one, or
    /// the command line that a shell was given. Words of the shell's own are
    /// among them.
    pub said: Vec<Vec<&'a str>>,
    /// More run one another than are followed.
    pub too_deep: bool,
}

impl<'a> Told<'a> {
    /// Of a program that has a name of its own.
    pub fn of(binary: &'a str, argv: &'a [impl AsRef<str>]) -> Self {
        let mut told = Told::from(whole(binary, argv));
        told.said.extend(disguised(binary, argv));
        told
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
        let mut told = Told::chain(argv);
        let texts = told.programs.iter().filter_map(|program| shell_text(program));
        let commands = texts.flat_map(commands).map(Told::chain);
        told.said = commands.flat_map(|command| command.programs).collect();
        told
    }

    /// A program, and those that it runs.
    fn chain(argv: Vec<&'a str>) -> Self {
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
    // One that runs another has been followed already.
    let other = !is_same(first, binary) && !is_wrapper(binary);
    (other && (shell || is_interpreter(&name))).then(|| argv.iter().map(AsRef::as_ref).collect())
}

/// The command line that a shell was given as an argument.
fn shell_text<'a>(argv: &[&'a str]) -> Option<&'a str> {
    let (shell, arguments) = argv.split_first()?;
    shell_name(&basename(shell.as_bytes()))?;
    let option = arguments.iter().position(|word| is_command_option(word))?;
    arguments[option + 1..].iter().find(|word| !word.starts_with('-')).copied()
}

/// The commands of a command line, as far as they can be told without a shell:
/// what stands in quotes is not cut.
fn commands(text: &str) -> impl Iterator<Item = Vec<&str>> {
    const BEFORE: [&str; 12] = [
        "!", "if", "then", "else", "elif", "while", "until", "do", "time", "exec", "command",
        "builtin",
    ];
    let mut quote = None;
    let ends = move |c: char| {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        quote.is_none() && matches!(c, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}' | '`')
    };
    text.split(ends).filter_map(|command| {
        let own = |word: &&str| BEFORE.contains(word) || is_assignment(word);
        let words: Vec<&str> = split(command).skip_while(own).collect();
        (!words.is_empty() && !reads_its_input(&words)).then_some(words)
    })
}

/// `… | sh -s`: whether that may be is asked of what is piped into it.
fn reads_its_input(argv: &[&str]) -> bool {
    let is_shell = argv.first().is_some_and(|it| shell_name(&basename(it.as_bytes())).is_some());
    let mut arguments = argv.iter().skip(1);
    let options = arguments.clone().all(|word| word.starts_with('-') && !is_command_option(word));
    is_shell && (options || arguments.any(|word| *word == "-s"))
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
            .chain(&told.said)
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
            ("bash", "bash x.sh", "bash"),
        ] {
            let argv: Vec<&str> = line.split(' ').collect();
            assert_eq!(names(&Told::of(binary, &argv)), want, "{binary}: {line}");
        }
        for (text, want) in [
            ("pip install x", "bash pip"),
            ("cd a && A=b pip install x | tee y; exec node -e z", "bash cd pip tee node"),
            ("if make; then nice npm ci; fi", "bash make nice npm fi"),
            ("echo 'a; pip install'", "bash echo"),
            ("x=$(npm ci)", "bash npm"),
            ("", "bash"),
        ] {
            let argv = ["bash", "-e", "-lc", text];
            assert_eq!(names(&Told::of("bash", &argv)), want, "{text}");
        }
        let deep = ["env"; 20];
        assert!(Told::of("env", &deep).too_deep);
    }

    #[test]
    fn commands_that_tools_are_handed() {
        for (argv, want) in [
            (&["bash", "-lc", "x"][..], "bash x"),
            (&["zsh -lc 'x'"], "zsh x"),
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
