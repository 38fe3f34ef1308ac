//! Commands that are suggested, to be copied into a shell.

use std::path::Path;

use super::visible;

/// A word of a command line, as a POSIX shell takes it for one: names come from
/// files that somebody else may have written. What would steer a terminal is shown
/// and not kept.
#[must_use]
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", visible(word).replace('\'', "'\\''"))
}

/// The same of a path. One that begins with a dash is no option.
#[must_use]
pub fn shell_path(path: &Path) -> String {
    let path = path.to_string_lossy();
    if path.starts_with('-') { shell(&format!("./{path}")) } else { shell(&path) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_shell_takes_it_for_one_word(word in "[ -~]{0,12}|[$`'\"\\\\!*? ~#&;|()<>a-]{0,12}") {
            let script = format!("printf %s. {}", shell(&word));
            let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{word}."));
        }
    }

    #[test]
    fn a_path_is_no_option() {
        assert_eq!(shell_path(Path::new("-x y")), "'./-x y'");
        assert_eq!(shell_path(Path::new("a/b")), "a/b");
    }
}
