//! Running other programs, with errors that say what was run.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Prints the command, runs it, and fails when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| cannot_start(&shown))?;
    if !status.success() {
        bail!("`{shown}` failed ({status}); its own messages are above");
    }
    Ok(())
}

/// Runs the command and returns its standard output; its standard error goes
/// into the error when it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(&shown))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}):\n{}", output.status, messages.trim_end());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{shown}` printed something that is not UTF-8"))
}

/// Whether the command starts and succeeds; it prints nothing.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Where `program` is in `PATH`.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Debian keeps some tools where only root's PATH looks.
    let extra = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(extra)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Whether this process may do what root does.
pub fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0")
}

/// The command as someone would type it.
pub fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn cannot_start(shown: &str) -> String {
    format!("cannot start `{shown}`; is it installed? `cargo xtask setup` installs what is missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_pasted() {
        let mut command = Command::new("cargo");
        command.args(["test", "a b", "it's", ""]);
        assert_eq!(show(&command), r"cargo test 'a b' 'it'\''s' ''");
    }

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sh -c") && text.contains("why") && text.contains('3'), "{text}");
    }

    #[test]
    fn a_program_that_is_not_there_is_reported_with_the_way_out() {
        let error = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("cargo xtask setup"), "{error}");
    }
}
