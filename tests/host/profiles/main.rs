//! Each profile, with the real tool that it is for: its work passes under a
//! manifest that extends the profile alone, and a read of anything else fails.

mod proof;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use effectgate_tests::tools::{cargo, have, in_vm};

use proof::{Needs, Proof};

#[test]
fn profile_base_linux() {
    let needs = Needs { binaries: &["ls", "cat"], ..Needs::default() };
    let proof = Proof::new(&["base-linux"], &needs);
    proof.passes(["ls", "-l", "."]);
    proof.fails([vec!["cat".to_owned()], proof.elsewhere()].concat());
}

/// A clone runs git's own programs and, for the other side, a shell.
#[test]
fn profile_git() {
    if !have(&["/usr/bin/git"]) {
        return;
    }
    let proof =
        Proof::new(&["git"], &Needs { binaries: &["git"], shell: true, ..Needs::default() });
    let work: [&[&str]; 6] = [
        &["init", "--quiet", "."],
        &["add", "."],
        &["commit", "--quiet", "-m", "One"],
        &["status"],
        &["log", "--stat"],
        &["gc", "--quiet"],
    ];
    proof.write("source/file", "text\n");
    for words in work {
        let words = [&["git", "-C", "source"], words].concat();
        if in_vm() {
            prepare(&proof, &words);
        } else {
            proof.passes(words);
        }
    }
    proof.passes(["git", "clone", "--quiet", "source", "clone"]);
    let words = ["git", "-C", "source", "hash-object", "--no-filters"].map(str::to_owned);
    proof.fails([words.to_vec(), proof.elsewhere()].concat());
}

/// Unwatched.
fn prepare(proof: &Proof, words: &[&str]) {
    let status = Command::new(words[0])
        .args(&words[1..])
        .current_dir(proof.scene.root())
        .env("HOME", proof.scene.path().join("home"))
        .status()
        .unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(status.success(), "{words:?}: {status}");
}

#[test]
fn profile_c() {
    if !have(&["/usr/bin/make", "/usr/bin/gcc", "/usr/bin/ar"]) {
        return;
    }
    let needs = Needs {
        binaries: &["make", "gcc", "cc1", "collect2", "as", "ld", "ar"],
        exec: Some("."),
        shell: true,
        ..Needs::default()
    };
    let proof = Proof::new(&["c"], &needs);
    proof.write("unit.c", "int unit(int value) { return value + 1; }\n");
    proof.write(
        "main.c",
        "#include <stdio.h>\nint unit(int);\nint main(void) { printf(\"%d\\n\", unit(1)); }\n",
    );
    proof.write(
        "Makefile",
        "check: program\n\t./program > result && test -s result\n\
         program: main.o libunit.a\n\t$(CC) -o $@ $^\n\
         libunit.a: unit.o\n\tar rcs $@ $^\n",
    );
    proof.passes(["make", "CC=gcc"]);
    write_c_reader(&proof);
    proof.fails(["gcc", "-E", "reader.c", "-o", "reader"]);
}

#[test]
fn profile_python() {
    if !have(&["/usr/bin/python3"]) {
        return;
    }
    let proof = Proof::new(&["python"], &Needs { binaries: &["python3"], ..Needs::default() });
    proof.write(
        "test_it.py",
        "import asyncio, ctypes, datetime, decimal, hashlib, json, sqlite3, ssl, subprocess\n\
         import sys, tempfile, threading, unittest, urllib.request, zoneinfo\n\
         class Test(unittest.TestCase):\n    def test_it(self):\n        \
         self.assertEqual(datetime.datetime.now(datetime.timezone.utc).utcoffset().seconds, 0)\n",
    );
    proof.write("reader.py", PYTHON_READER);
    proof.passes(["/usr/bin/python3", "-m", "unittest", "-q"]);
    if !in_vm() {
        proof.passes(["/usr/bin/python3", "-m", "venv", "--without-pip", "env"]);
        proof.passes(["env/bin/python3", "-m", "unittest", "-q"]);
    }
    let words = ["/usr/bin/python3", "reader.py"].map(str::to_owned);
    proof.fails([words.to_vec(), proof.elsewhere()].concat());
}

#[test]
fn profile_node() {
    if !have(&["/usr/bin/node"]) {
        return;
    }
    let proof = Proof::new(&["node"], &Needs { binaries: &["node"], ..Needs::default() });
    proof.write(
        "it.test.js",
        "const test = require('node:test');\n\
         for (const name of ['crypto', 'fs', 'http', 'os', 'url', 'zlib']) require(name);\n\
         test('it', () => require('node:assert').equal(require('os').cpus().length > 0, true));\n",
    );
    proof.write("reader.js", NODE_READER);
    proof.passes(["node", "--test"]);
    proof.fails([vec!["node".to_owned(), "reader.js".to_owned()], proof.elsewhere()].concat());
}

/// What Go builds to run at once it puts into GOTMPDIR, where it may run.
#[test]
fn profile_go() {
    if !have(&["/usr/bin/go"]) {
        return;
    }
    let needs = Needs {
        binaries: &["go", "asm", "buildid", "compile", "link", "vet"],
        env: &["GOCACHE", "GOPATH", "GOTMPDIR"],
        exec: Some("built"),
        ..Needs::default()
    };
    let proof = Proof::new(&["go"], &needs);
    let built = proof.scene.root().join("built");
    let proof = proof
        .env("GOCACHE", built.join("cache"))
        .env("GOPATH", built.join("path"))
        .env("GOTMPDIR", &built);
    proof.write("go.mod", "module example.invalid/it\n\ngo 1.19\n");
    proof.write(
        "it.go",
        "package main\n\nimport \"os\"\n\nfunc main() {\n\tfor _, path := range os.Args[1:] {\n\
         \t\tif _, err := os.ReadFile(path); err != nil {\n\t\t\tpanic(err)\n\t\t}\n\t}\n}\n",
    );
    if in_vm() {
        proof.passes(["go", "build", "-o", "built/it", "."]);
        return;
    }
    proof.write(
        "it_test.go",
        "package main\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n",
    );
    proof.passes(["go", "test", "./..."]);
    proof.passes(["go", "run", "."]);
    proof.fails(
        [vec!["go".to_owned(), "run".to_owned(), ".".to_owned()], proof.elsewhere()].concat(),
    );
}

const RUST: Needs = Needs {
    binaries: &["cargo", "rustc", "cc", "gcc", "cc1", "collect2", "as", "ld", "ld.lld", "rust-lld"],
    env: &["CARGO_HOME", "RUSTUP_HOME"],
    exec: Some("target"),
    shell: false,
    dependencies: true,
};

/// The toolchain's own cargo, found by `PATH`.
#[test]
fn profile_rust() {
    let Some(cargo) = cargo().filter(|_| have(&["/usr/bin/cc"])) else { return };
    let tools = cargo.parent().expect("a directory").canonicalize().expect("it is there");
    let mut path = tools.into_os_string();
    path.push(":/usr/bin:/bin");
    prove_rust(path);
}

/// The same through rustup, which looks up the toolchain first.
#[test]
fn profile_rust_through_rustup() {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let cargo_home =
        std::env::var_os("CARGO_HOME").map_or_else(|| Path::new(&home).join(".cargo"), Into::into);
    let rustup = cargo_home.join("bin/rustup");
    if !have(&[rustup.to_str().expect("UTF-8"), "/usr/bin/cc"]) {
        return;
    }
    let mut path = cargo_home.join("bin").into_os_string();
    path.push(":/usr/bin:/bin");
    prove_rust(path);
}

/// The toolchains lie in the home of whoever runs the tests.
fn prove_rust(path: OsString) {
    let proof = Proof::new(&["rust"], &RUST);
    let cargo_home = proof.scene.root().join("cargo-home");
    let mut proof = proof
        .env("HOME", std::env::var_os("HOME").expect("HOME is set"))
        .env("PATH", path)
        .env("CARGO_HOME", cargo_home);
    if let Some(rustup_home) = std::env::var_os("RUSTUP_HOME") {
        proof = proof.env("RUSTUP_HOME", rustup_home);
    }
    proof.write(
        "Cargo.toml",
        "[package]\nname = \"it\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    );
    proof.write("src/main.rs", "fn main() {}\n\n#[test]\nfn holds() {}\n");
    let task = if in_vm() { "build" } else { "test" };
    proof.passes(["cargo", task, "--offline", "--quiet"]);
    write_rust_reader(&proof);
    proof.fails(["rustc", "--emit=metadata", "reader.rs"]);
}

fn write_rust_reader(proof: &Proof) {
    let include = |path: &String| format!("include_bytes!({path:?}).len();\n");
    let text: String = proof.elsewhere().iter().map(include).collect();
    proof.write("reader.rs", &format!("fn main() {{\n{text}}}\n"));
}

/// Every tool, with every profile together: what one lets be read, another
/// could make too much.
#[test]
fn profile_elsewhere() {
    let tools =
        ["cat", "git", "gcc", "python3", "node", "gofmt"].map(|name| format!("/usr/bin/{name}"));
    let Some(cargo) = cargo().filter(|_| have(&tools.each_ref().map(String::as_str))) else {
        return;
    };
    let needs = Needs {
        binaries: &["cat", "cc1", "gcc", "git", "gofmt", "node", "python3", "rustc"],
        shell: true,
        ..Needs::default()
    };
    let mut path = OsString::from("/usr/bin:/bin:");
    path.push(cargo.parent().expect("a directory"));
    let proof = Proof::new(PROFILES, &needs)
        .env("HOME", std::env::var_os("HOME").expect("HOME is set"))
        .env("PATH", path);
    write_c_reader(&proof);
    write_rust_reader(&proof);
    proof.write("reader.py", PYTHON_READER);
    proof.write("reader.js", NODE_READER);
    let rustc = cargo.with_file_name("rustc");
    // By its path: busybox' shell has a `cat` of its own.
    let script = format!(
        "/usr/bin/cat \"$@\"\n\
         git hash-object --no-filters \"$@\"\n\
         gcc -E reader.c -o reader.i\n\
         /usr/bin/python3 reader.py \"$@\"\n\
         node reader.js \"$@\"\n\
         gofmt -l \"$@\"\n\
         {} --emit=metadata reader.rs\n\
         true\n",
        rustc.canonicalize().expect("it is there").display()
    );
    proof.write("reader.sh", &script);
    let programs = ["cat", "git", "cc1", "python3", "node", "gofmt", "rustc"];
    let words = ["sh", "reader.sh"].map(str::to_owned);
    proof.fails_for(&programs, [words.to_vec(), proof.elsewhere()].concat());
}

const PROFILES: &[&str] = &["base-linux", "git", "c", "rust", "python", "node", "go"];

const PYTHON_READER: &str = "import sys\nfor path in sys.argv[1:]: open(path, 'rb').read()\n";
const NODE_READER: &str =
    "for (const path of process.argv.slice(2)) require('fs').readFileSync(path);\n";

fn write_c_reader(proof: &Proof) {
    let include = |path: &String| format!("#include \"{path}\"\n");
    proof.write("reader.c", &proof.elsewhere().iter().map(include).collect::<String>());
}
