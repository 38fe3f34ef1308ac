//! Round trips: real work is recorded, a policy is drafted from the record, a
//! person fills in what only people know, and the same work passes under it.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use effectgate_tests::tools::{cargo, have};
use effectgate_tests::{Gate, Scene, gate};

/// Keys and values.
type Keys = Vec<(&'static str, OsString)>;

/// Real work: how its files are laid out, and what does it.
struct Work {
    write: fn(&Path),
    command: Vec<OsString>,
    /// What its environment needs.
    env: Box<dyn Fn(&Scene) -> Keys>,
    /// What is there afterwards.
    made: &'static str,
}

#[test]
fn a_c_build() {
    if !have(&["make", "gcc", "ar", "sh"]) {
        return;
    }
    let work = Work {
        write: write_c_project,
        command: words(&["make", "-j2", "CC=gcc"]),
        env: Box::new(|_| vec![]),
        made: "out/result",
    };
    work.round_trips();
}

#[test]
fn a_rust_test_suite() {
    let Some(cargo) = cargo() else { return };
    if !have(&["cc"]) {
        return;
    }
    let mut path = OsString::from(cargo.parent().expect("a directory"));
    path.push(":/usr/bin:/bin");
    let work = Work {
        write: write_rust_project,
        command: [vec![cargo.into_os_string()], words(&["test", "--offline", "--quiet"])].concat(),
        // The toolchain lies in the home of whoever runs the tests.
        env: Box::new(move |scene| {
            let home = std::env::var_os("HOME").expect("HOME is set");
            let cargo_home = scene.root().join("cargo-home").into_os_string();
            vec![("PATH", path.clone()), ("HOME", home), ("CARGO_HOME", cargo_home)]
        }),
        made: "target/debug",
    };
    work.round_trips();
}

#[test]
fn a_package_installation() {
    if !have(&["npm", "node", "tar"]) {
        return;
    }
    let work = Work {
        write: write_npm_package,
        command: words(&[
            "npm",
            "install",
            "--offline",
            "--no-audit",
            "--no-fund",
            "./it-1.0.0.tgz",
        ]),
        env: Box::new(|scene| {
            let cache = scene.root().join("cache").into_os_string();
            let home = scene.outside().into_os_string();
            vec![("PATH", "/usr/bin:/bin".into()), ("HOME", home), ("npm_config_cache", cache)]
        }),
        made: "node_modules/it/index.js",
    };
    work.round_trips();
}

/// A write that no manifest can allow is said, and the draft does not pass for
/// a whole one.
#[test]
fn what_cannot_be_drafted_is_said() {
    let scene = recorded_scene(|_| {});
    let stray = scene.outside().join("stray");
    let outcome = Gate::new(&scene).trigger(["create", stray.to_str().expect("UTF-8")]);
    let log = outcome.evidence.join("events.jsonl");
    let output = effectgate(
        &scene,
        &["draft", "--from", &text(&log), "--owner", "team", "--agent-id", "it"],
    );
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = format!("# not drafted: {}: ", text(&scene.outside()));
    assert!(said.contains(&line), "{said}");

    let output = effectgate(&scene, &["draft", "--from", &text(&log), "--envelope"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn what_is_no_log_gives_no_draft() {
    let scene = recorded_scene(|_| {});
    let outcome = Gate::new(&scene).trigger(["create", "made"]);
    let whole = fs::read(outcome.evidence.join("events.jsonl")).expect("a log");
    let cut = scene.outside().join("cut.jsonl");
    for bytes in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], b"", b"{}\n", &[0xff; 64]] {
        fs::write(&cut, bytes).expect("write");
        let output = effectgate(&scene, &["draft", "--from", &text(&cut)]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        assert!(!output.stderr.is_empty(), "{output:?}");
    }
}

impl Work {
    /// Under an envelope first, which asks about little, and then under a
    /// manifest, which asks about everything.
    fn round_trips(&self) {
        self.under_a_draft(&["--envelope", "--agent-id", "it-v1"], Scene::envelope, |scene| {
            self.gate(scene)
        });
        self.under_a_draft(&["--agent-id", "it", "--owner", "team-it"], Scene::manifest, |scene| {
            self.env(scene, Gate::manifest(scene))
        });
    }

    fn under_a_draft(
        &self,
        options: &[&str],
        place: fn(&Scene) -> std::path::PathBuf,
        gate: impl Fn(&Scene) -> Gate,
    ) {
        let scene = recorded_scene(self.write);
        // Whatever it does is recorded, and most of it is a violation.
        let recorded = self.gate(&scene).option(["--keep-env"]).run(&self.command);
        assert!(scene.root().join(self.made).exists(), "{}", recorded.story());
        let log = text(&recorded.evidence.join("events.jsonl"));
        let output = effectgate(&scene, &[&["draft", "--from", &log], options].concat());
        let draft = String::from_utf8(output.stdout).expect("UTF-8");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{draft}\n{said}");

        // As it was, with what people fill in.
        clear(&scene.root());
        (self.write)(&scene.root());
        let file = place(&scene);
        fs::write(&file, filled(&draft)).expect("write");
        for words in [&["check"][..], &["pin"]] {
            let output = effectgate(&scene, &[words, &[&text(&file)]].concat());
            assert_eq!(output.status.code(), Some(0), "{draft}\n{output:?}");
        }
        let again = gate(&scene).run(&self.command);
        assert_eq!(again.verdict()["verdict"], "pass", "{draft}\n{}", again.story());
        again.assert_pass();
        assert!(scene.root().join(self.made).exists(), "{}", again.story());
    }

    fn gate(&self, scene: &Scene) -> Gate {
        self.env(scene, Gate::new(scene))
    }

    fn env(&self, scene: &Scene, gate: Gate) -> Gate {
        (self.env)(scene).into_iter().fold(gate, |gate, (name, value)| gate.env(name, value))
    }
}

/// A scene whose envelope allows nothing, with this in its root.
fn recorded_scene(write: fn(&Path)) -> Scene {
    let scene = Scene::new();
    scene.allow(|envelope| envelope["allowed_roots"] = serde_json::json!([]));
    clear(&scene.root());
    write(&scene.root());
    scene
}

/// Empties a directory that stays itself.
fn clear(root: &Path) {
    for entry in fs::read_dir(root).expect("read") {
        let path = entry.expect("read").path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).expect("remove");
        } else {
            fs::remove_file(path).expect("remove");
        }
    }
}

/// What two people would write.
fn filled(draft: &str) -> String {
    draft
        .replace("reviewers: []", "reviewers: [\"Kim Lee\", \"Ana Sousa\"]")
        .replace("reason: \"\"", "reason: \"its hooks are scripts\"")
        .replace("expires: \"\"", "expires: \"2999-12-31\"")
}

fn effectgate(scene: &Scene, words: &[&str]) -> Output {
    let mut command = Command::new(gate::binary());
    command.args(words).current_dir(scene.root());
    command.output().expect("the binary under test can be started")
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A library of several files, a program, and directories that the build makes.
fn write_c_project(root: &Path) {
    let source = root.join("src");
    fs::create_dir(&source).expect("mkdir");
    let mut main =
        String::from("#include <stdio.h>\n#include \"all.h\"\nint main(void) {\n\tint sum = 0;\n");
    let mut header = String::new();
    for unit in 0..8 {
        header.push_str(&format!("int unit_{unit}(int value);\n"));
        main.push_str(&format!("\tsum = unit_{unit}(sum);\n"));
        let text = format!(
            "#include \"all.h\"\nint unit_{unit}(int value) {{ return value + {unit}; }}\n"
        );
        fs::write(source.join(format!("unit_{unit}.c")), text).expect("write");
    }
    main.push_str("\tprintf(\"%d\\n\", sum);\n\treturn 0;\n}\n");
    fs::write(source.join("all.h"), header).expect("write");
    fs::write(source.join("main.c"), main).expect("write");
    let makefile = "\
OBJECTS := $(patsubst src/%.c,out/obj/%.o,$(wildcard src/unit_*.c))
out/result: out/program
\t./out/program > $@.part
\tmv $@.part $@
out/program: out/obj/main.o out/libunits.a
\t$(CC) -o $@ $^
out/libunits.a: $(OBJECTS)
\trm -f $@
\tar rcs $@ $^
out/obj/%.o: src/%.c
\tmkdir -p out/obj
\t$(CC) -O1 -Wall -MMD -c -o $@ $<
";
    fs::write(root.join("Makefile"), makefile).expect("write");
}

/// A library with tests of both kinds.
fn write_rust_project(root: &Path) {
    for directory in ["src", "tests"] {
        fs::create_dir(root.join(directory)).expect("mkdir");
    }
    let package =
        "[package]\nname = \"it\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    fs::write(root.join("Cargo.toml"), package).expect("write");
    let library = "pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n";
    fs::write(root.join("src/lib.rs"), library).expect("write");
    let test = "#[test]\nfn adds() {\n    let file = std::env::temp_dir().join(\"sum\");\n    \
                std::fs::write(&file, it::add(2, 2).to_string()).unwrap();\n    \
                assert_eq!(std::fs::read_to_string(file).unwrap(), \"4\");\n}\n";
    fs::write(root.join("tests/adds.rs"), test).expect("write");
}

/// A package in a file, and a project that it is installed into.
fn write_npm_package(root: &Path) {
    let package = root.join("package");
    fs::create_dir(&package).expect("mkdir");
    let settings = "{\"name\": \"it\", \"version\": \"1.0.0\", \"main\": \"index.js\"}\n";
    fs::write(package.join("package.json"), settings).expect("write");
    fs::write(package.join("index.js"), "module.exports = 1;\n").expect("write");
    let made = Command::new("tar")
        .args(["czf", "it-1.0.0.tgz", "package"])
        .current_dir(root)
        .status()
        .expect("tar can be started");
    assert!(made.success());
    fs::remove_dir_all(&package).expect("remove");
    fs::write(root.join("package.json"), "{\"name\": \"own\", \"version\": \"1.0.0\"}\n")
        .expect("write");
}
