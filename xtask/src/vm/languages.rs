//! This machine's Python, Node.js, Go and Rust for the guest, so that the
//! profiles can be tried there. They lie where they lie here, apart from Rust:
//! that is always a toolchain of rustup, in root's home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::guest::{add_libraries, merged, program};
use super::tree::Tree;
use crate::repo;
use crate::run::output;

/// The toolchain's place in the guest.
const RUST: &str = "/root/.rustup/toolchains/stable-x86_64-unknown-linux-gnu";

/// Adds them all.
pub fn add(root: &mut Tree) -> Result<()> {
    python(root).context("Python for the guest")?;
    node(root).context("Node.js for the guest")?;
    go(root).context("Go for the guest")?;
    rust(root).context("Rust for the guest")
}

/// The interpreter and its library, compiled as it is here: the guest's Python
/// would write what is missing beside it.
fn python(root: &mut Tree) -> Result<()> {
    const LEFT_OUT: [&str; 8] =
        ["test", "tests", "idlelib", "lib2to3", "tkinter", "ensurepip", "pydoc_data", "distutils"];
    let interpreter = Path::new("/usr/bin/python3").canonicalize()?;
    program(root, &interpreter.to_string_lossy(), &interpreter)?;
    let name = interpreter.file_name().context("/usr/bin/python3 has no name")?;
    root.link("/usr/bin/python3", name);
    let mut stdlib = Command::new("/usr/bin/python3");
    stdlib.args(["-I", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]);
    let stdlib = PathBuf::from(output(&mut stdlib)?.trim());
    root.host_directory(&stdlib, &stdlib, &|name| {
        !(LEFT_OUT.contains(&name) || name.starts_with("config-"))
    })?;
    // A link in the library leads there.
    let site = Path::new("/etc").join(name);
    if site.is_dir() {
        root.host_directory(&site, &site, &|_| true)?;
    }
    let modules = stdlib.join("lib-dynload");
    if modules.is_dir() {
        libraries_of(root, &modules)?;
    }
    Ok(())
}

/// Debian's loads some of its modules from files of their own.
fn node(root: &mut Tree) -> Result<()> {
    program(root, "/usr/bin/node", Path::new("/usr/bin/node"))?;
    for name in ["acorn", "acorn-walk", "cjs-module-lexer", "undici"] {
        let path = Path::new("/usr/share/nodejs").join(name);
        if path.is_dir() {
            root.host_directory(&path, &path, &|_| true)?;
        }
    }
    Ok(())
}

/// What builds and tests a program, and the library's source without its own
/// tests. Go follows the links from one to the other.
fn go(root: &mut Tree) -> Result<()> {
    const TOOLS: [&str; 7] = ["asm", "buildid", "cgo", "compile", "link", "test2json", "vet"];
    let go = Path::new("/usr/bin/go");
    let goroot = PathBuf::from(output(Command::new(go).args(["env", "GOROOT"]))?.trim());
    let goroot = goroot.canonicalize()?;
    let tools = goroot.join("pkg/tool/linux_amd64");
    for name in ["go", "gofmt"] {
        let path = goroot.join("bin").join(name);
        program(root, &path.to_string_lossy(), &path)?;
        root.link(Path::new("/usr/bin").join(name), path);
    }
    for tool in TOOLS.map(|name| tools.join(name)) {
        if tool.is_file() {
            program(root, &tool.to_string_lossy(), &tool)?;
        }
    }
    for name in ["VERSION", "go.env", "pkg/linux_amd64", "pkg/include", "src"] {
        let path = goroot.join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_symlink() {
            root.link(&path, fs::read_link(&path)?);
        }
        let real = path.canonicalize()?;
        if real.is_dir() {
            root.host_directory(&real, &real, &|name| {
                !(name == "testdata" || name == "cmd" || name.ends_with("_test.go"))
            })?;
        } else {
            root.host(&path, &real)?;
        }
    }
    Ok(())
}

/// Of the toolchain that builds this project: the compiler, cargo and the
/// library for this machine.
fn rust(root: &mut Tree) -> Result<()> {
    let cargo = PathBuf::from(repo::cargo().get_program());
    let rustc = cargo.with_file_name("rustc");
    let rustc = if rustc.is_file() { rustc } else { PathBuf::from("rustc") };
    let sysroot = PathBuf::from(output(Command::new(rustc).args(["--print", "sysroot"]))?.trim());
    if sysroot == Path::new("/usr") {
        bail!("the compiler is the distribution's, and the guest gets one of rustup; install one");
    }
    for name in ["cargo", "rustc"] {
        program(root, &format!("{RUST}/bin/{name}"), &sysroot.join("bin").join(name))?;
    }
    // Named in the linker's script for the mathematical library.
    let vectors = Path::new("/lib/x86_64-linux-gnu/libmvec.so.1");
    if vectors.is_file() {
        root.host(merged(vectors), vectors)?;
    }
    let is_wanted = |name: &str| {
        let other = name.contains("-unknown-") && name != "x86_64-unknown-linux-gnu";
        !(other || ["src", "etc", "debugger_visualizers"].contains(&name))
    };
    root.host_directory(&Path::new(RUST).join("lib"), &sysroot.join("lib"), &is_wanted)
}

/// Adds what the shared objects in a directory of this machine need.
fn libraries_of(root: &mut Tree, directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "so") {
            add_libraries(root, &path)?;
        }
    }
    Ok(())
}
