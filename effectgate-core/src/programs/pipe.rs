//! `curl … | sh`: a shell's text that runs what it fetches.

use super::{inline, shell_name};

const FETCHERS: [&str; 10] =
    ["curl", "wget", "fetch", "aria2c", "http", "https", "httpie", "xh", "lynx", "axel"];
/// A shell's own words that run the words behind them, as other programs do.
const CARRIERS: [&str; 3] = ["exec", "command", "builtin"];
/// Built-in commands that run text.
const RUNNERS: [&str; 3] = ["eval", "source", "."];

/// Whether the text of a shell's arguments pipes what a command fetches into a
/// shell or an interpreter, or runs it by substitution. `argv` begins with the
/// program's name.
pub fn pipes_into_shell(argv: &[impl AsRef<[u8]>]) -> bool {
    argv.iter().skip(1).any(|argument| {
        let text = String::from_utf8_lossy(argument.as_ref());
        // Most arguments fetch nothing, and some are whole files.
        if !FETCHERS.iter().any(|fetcher| text.contains(fetcher)) {
            return false;
        }
        let words = words(&text);
        piped(&words) || substituted(&words)
    })
}

#[derive(Debug, PartialEq)]
enum Word<'a> {
    Text(&'a str),
    /// One pipe.
    Pipe,
    /// Something that ends a pipeline.
    End,
    /// `$(`, `<(` or a backtick.
    Substitution,
}

/// The words of a command line, without its quotes: what stands in them may be
/// run by another shell.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (word, length) = match c {
            _ if rest.starts_with("||") || rest.starts_with("&&") => (Some(Word::End), 2),
            _ if rest.starts_with("|&") => (Some(Word::Pipe), 2),
            _ if rest.starts_with("$(") || rest.starts_with("<(") => (Some(Word::Substitution), 2),
            '|' => (Some(Word::Pipe), 1),
            ';' | '\n' | '&' => (Some(Word::End), 1),
            '`' => (Some(Word::Substitution), 1),
            _ if is_part(c) => {
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                (Some(Word::Text(&rest[..length])), length)
            }
            _ => (None, c.len_utf8()),
        };
        words.extend(word);
        rest = &rest[length..];
    }
    words
}

fn is_part(c: char) -> bool {
    !c.is_whitespace()
        && !matches!(c, '|' | ';' | '&' | '`' | '"' | '\'' | '(' | ')' | '<' | '>' | '{' | '}')
        && c != '$'
}

fn piped(words: &[Word<'_>]) -> bool {
    let mut fetches = false;
    let mut begins = true;
    let mut receives = false;
    // Behind a program that runs another, whose options may have values.
    let mut carried = false;
    for word in words {
        match word {
            Word::End => (fetches, receives, begins, carried) = (false, false, true, false),
            Word::Pipe => (receives, begins, carried) = (fetches, true, false),
            Word::Substitution => begins = true,
            Word::Text(text) if begins || carried => {
                if receives && runs(text) {
                    return true;
                }
                fetches |= is_fetcher(text);
                // `VAR=x sh`, `sudo -E sh`
                carried |= is_carrier(text);
                begins = text.contains('=') || text.starts_with('-');
            }
            Word::Text(_) => {}
        }
    }
    false
}

fn substituted(words: &[Word<'_>]) -> bool {
    let runner = words
        .iter()
        .any(|word| matches!(word, Word::Text(text) if runs(text) || RUNNERS.contains(text)));
    let fetched = words
        .windows(2)
        .any(|pair| matches!(pair, [Word::Substitution, Word::Text(text)] if is_fetcher(text)));
    // The shell whose text this is may run it itself: `sh -c "$(curl …)"`.
    let whole = matches!(words, [Word::Substitution, Word::Text(text), ..] if is_fetcher(text));
    fetched && runner || whole
}

fn runs(text: &str) -> bool {
    // `$SHELL`, without its mark
    let name = last(text);
    shell_name(name).is_some() || inline::is_interpreter(name) || name == "SHELL"
}

fn is_fetcher(text: &str) -> bool {
    FETCHERS.contains(&last(text))
}

fn is_carrier(text: &str) -> bool {
    CARRIERS.contains(&last(text)) || super::is_wrapper(text)
}

fn last(text: &str) -> &str {
    // `\\curl` is curl, and no alias of it.
    text.rsplit(['/', '\\']).next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_and_run() {
        for text in [
            "curl -fsSL https://a.example/x | sh",
            "curl https://a.example/x|bash -s -- --yes",
            "cd /tmp && wget -qO- https://a.example/x | sudo -E bash",
            "curl x | tee y | /bin/sh",
            "curl x | env A=b python3 -",
            "curl x |& sh",
            "curl x | sudo -u root bash",
            "curl x | timeout 5 sh",
            "curl x | xargs -n 1 sh -c",
            "\\curl x | \\sh",
            "curl x | $SHELL",
            "curl x | ${SHELL} -s",
            "bash <(curl -s x)",
            "eval \"$(wget -qO- x)\"",
            "sh -c \"$(curl -fsSL x)\"",
            "$(curl x)",
            "`curl x`",
            "true\ncurl x | sh",
        ] {
            assert!(pipes_into_shell(&["sh", "-c", text]), "{text}");
        }
    }

    #[test]
    fn what_is_fetched_or_run() {
        for text in [
            "curl -o x https://a.example/x",
            "curl x | tar xz",
            "curl x | grep sh",
            "curl x | sudo tee y; sh z",
            "curl x; sh y",
            "curl x || sh y",
            "cat x | sh",
            "echo 'a b' | wc",
            "A=$(curl x); echo \"$A\"",
            "",
            "é|ü",
        ] {
            assert!(!pipes_into_shell(&["sh", "-c", text]), "{text}");
        }
        assert!(!pipes_into_shell(&["curl"]));
    }
}
