//! The shared libraries of a program, so that it runs in another root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The files that `program` needs to start: its libraries and its loader.
/// None for a static program.
pub fn of(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .context("cannot start `ldd`, which comes with the C library")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = String::from_utf8_lossy(&output.stderr);
    // What ldd says of static programs and of scripts, as failures.
    if text.contains("statically linked") || messages.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    if !output.status.success() {
        bail!("`ldd {}` failed: {}{}", program.display(), messages, text);
    }
    parse(&text).with_context(|| format!("{} would not start in the guest", program.display()))
}

fn parse(text: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for line in text.lines().map(str::trim) {
        let found = match line.split_once(" => ") {
            Some((name, "not found")) => bail!("ldd finds no {name} on this machine"),
            Some((_, rest)) => rest,
            None => line,
        };
        // `linux-vdso.so.1 (0x…)` comes from the kernel and has no file.
        if let Some(path) = found.split(" (0x").next().filter(|path| path.starts_with('/')) {
            files.push(PathBuf::from(path));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_files_the_vdso_is_not() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f5e)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f5f)\n";
        let expected: Vec<PathBuf> = vec![
            "/lib/x86_64-linux-gnu/libgcc_s.so.1".into(),
            "/lib64/ld-linux-x86-64.so.2".into(),
        ];
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = parse("\tlibz.so.1 => not found\n").unwrap_err();
        assert!(error.to_string().contains("libz.so.1"), "{error}");
    }
}
