//! Real work under an envelope, with no false violation; where the kernel can
//! deny, with no false denial either.

mod overlay;
mod package;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use effectgate_tests::tools::{cargo, have, in_vm};
use effectgate_tests::{Gate, Scene};
use serde_json::json;

/// Runs a command unwatched, for preparation.
fn prepare(directory: &Path, words: &[&str]) {
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// `run`, which denies what it can.
fn gate(scene: &Scene) -> Gate {
    match effectgate_tests::gate::backend().as_str() {
        "lsm" => Gate::new(scene).option(["--mode", "enforce"]),
        _ => Gate::new(scene),
    }
}

/// Files of the C program. Each takes an emulated machine seconds.
fn units() -> usize {
    if in_vm() { 4 } else { 30 }
}

/// A C program of many files, each with a header, and a Makefile that builds a
/// library, a program and runs it.
fn write_c_project(root: &Path) {
    let mut main = String::from("#include <stdio.h>\n");
    let mut calls = String::new();
    for unit in 0..units() {
        let header = format!("#pragma once\nint unit_{unit}(int value);\n");
        fs::write(root.join(format!("unit_{unit}.h")), header).expect("write");
        let source = format!(
            "#include <stdlib.h>\n#include <string.h>\n#include \"unit_{unit}.h\"\n\
             int unit_{unit}(int value) {{\n\
             \tchar *copy = strdup(\"unit {unit}\");\n\
             \tint sum = value + (int)strlen(copy);\n\
             \tfree(copy);\n\treturn sum;\n}}\n"
        );
        fs::write(root.join(format!("unit_{unit}.c")), source).expect("write");
        writeln!(main, "#include \"unit_{unit}.h\"").expect("a string");
        writeln!(calls, "\tsum = unit_{unit}(sum);").expect("a string");
    }
    write!(main, "int main(void) {{\n\tint sum = 0;\n{calls}\tprintf(\"%d\\n\", sum);\n}}\n")
        .expect("a string");
    fs::write(root.join("main.c"), main).expect("write");
    let makefile = "\
UNITS := $(filter-out main.o,$(patsubst %.c,%.o,$(wildcard *.c)))
CFLAGS := -O1 -Wall -MMD
check: program
\t./program > result
\tmv result checked
program: main.o libunits.a
\t$(CC) -o $@ $^
libunits.a: $(UNITS)
\trm -f $@
\t$(AR) rcs $@ $^
clean:
\trm -rf *.o *.d program libunits.a checked
";
    fs::write(root.join("Makefile"), makefile).expect("write");
}

#[test]
fn real_c_build() {
    if !have(&["make", "gcc", "ar", "sh"]) {
        return;
    }
    let scene = Scene::new();
    write_c_project(&scene.root());
    gate(&scene).run(["make", "-j2", "CC=gcc"]).assert_pass();
    assert_checked(&scene.root().join("checked"));
    gate(&scene).run(["make", "clean"]).assert_pass();
}

/// The program was built, ran, and counted right.
fn assert_checked(checked: &Path) {
    let checked = fs::read_to_string(checked).expect("the program ran");
    let want: usize = (0..units()).map(|unit| format!("unit {unit}").len()).sum();
    assert_eq!(checked.trim(), want.to_string());
}

/// The same build with one rule more, of the kind that nobody sees in a green
/// build.
#[test]
fn real_c_build_that_reaches_out() {
    if !have(&["make", "gcc", "ar", "sh"]) {
        return;
    }
    let scene = Scene::new();
    write_c_project(&scene.root());
    let stray = scene.outside().join("stray");
    let makefile = scene.root().join("Makefile");
    let text = fs::read_to_string(&makefile).expect("read");
    let more = format!("\tmv result checked\n\techo cached > {}\n", stray.display());
    fs::write(&makefile, text.replace("\tmv result checked\n", &more)).expect("write");
    let outcome = Gate::new(&scene).run(["make", "-j2", "CC=gcc"]);
    outcome.assert_fail();
    let stray = stray.to_str().expect("UTF-8");
    for violation in outcome.violations() {
        assert_eq!(effectgate_tests::record::path(violation), stray, "{}", outcome.story());
    }
}

/// Over git's own protocol: a plain path would make hard links to files outside
/// the root, which no envelope allows.
#[test]
fn real_git_clone() {
    if !have(&["git"]) {
        return;
    }
    let scene = Scene::new();
    let work = scene.outside().join("work");
    fs::create_dir(&work).expect("mkdir");
    prepare(&work, &["git", "init", "--quiet", "."]);
    for number in 0..200 {
        let directory = work.join(format!("directory-{}", number % 10));
        fs::create_dir_all(&directory).expect("mkdir");
        let text = format!("file {number}\n").repeat(100);
        fs::write(directory.join(format!("file-{number}")), text).expect("write");
    }
    prepare(&work, &["git", "add", "."]);
    let name = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
    let mut words = vec!["git"];
    words.extend(name);
    words.extend(["commit", "--quiet", "-m", "All of it"]);
    prepare(&work, &words);
    prepare(&scene.outside(), &["git", "clone", "--quiet", "--bare", "work", "bare.git"]);

    let url = format!("file://{}", scene.outside().join("bare.git").display());
    let outcome = gate(&scene).run(["git", "clone", "--quiet", &url, "clone"]);
    outcome.assert_pass();
    let file = scene.root().join("clone/directory-7/file-17");
    assert!(file.is_file(), "the clone is not there");

    let outcome = gate(&scene)
        .with(|command| {
            command.current_dir(scene.root().join("clone"));
        })
        .run(["git", "status", "--short"]);
    outcome.assert_pass();
}

/// Cargo's own home lies in the root: by default it is outside of it, and cargo
/// writes its locks there.
#[test]
fn real_rust_build() {
    let Some(cargo) = cargo() else { return };
    if !have(&["cc"]) {
        return;
    }
    let scene = Scene::new();
    let root = scene.root();
    fs::create_dir_all(root.join("src")).expect("mkdir");
    let manifest =
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    fs::write(root.join("Cargo.toml"), manifest).expect("write");
    let main = "fn main() {\n    println!(\"built and run\");\n}\n\n#[test]\nfn holds() {\n    assert_eq!(1 + 1, 2);\n}\n";
    fs::write(root.join("src/main.rs"), main).expect("write");
    scene.allow(|envelope| envelope["allowed_env"] = json!(["CARGO_HOME"]));

    let tools = cargo.parent().expect("a directory").to_owned();
    let mut path = OsString::from(&tools);
    path.push(":/usr/local/bin:/usr/bin:/bin");
    let gate = || gate(&scene).env("PATH", &path).env("CARGO_HOME", root.join("cargo-home"));
    let cargo = cargo.to_str().expect("UTF-8");
    gate().run([cargo, "test", "--offline", "--quiet"]).assert_pass();
    let outcome = gate().run([cargo, "run", "--offline", "--quiet"]);
    outcome.assert_pass();
    assert!(outcome.stdout().starts_with("built and run\n"), "{}", outcome.story());
}

/// The programs under test exist; so the tests above test them.
#[test]
fn real_programs_are_there() {
    assert!(effectgate_tests::gate::binary().is_file());
    assert!(effectgate_tests::gate::trigger().is_file());
}
