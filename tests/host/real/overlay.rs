//! A build with its tests in a root such as containers have: a mount namespace
//! of its own, programs on an overlay, and a new root directory.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use effectgate_tests::tools::have;
use effectgate_tests::{Gate, Outcome, Scene, gate};

use super::{assert_checked, gate as guarded, write_c_project};

/// What containers do to the layer below: a file of it changes, is renamed, is
/// linked to, and is removed.
const LAYERS: &str = "
layers:
\tchmod 750 /usr/bin/ar
\techo more >> /usr/share/lower/file
\tmv /usr/share/lower/other /usr/share/lower/moved
\tln /usr/share/lower/file /usr/share/lower/linked
\trm -r /usr/share/lower
\tmkdir /usr/share/lower
";

#[test]
fn real_overlay_suite() {
    if !have(&["/usr/bin/make", "/usr/bin/gcc", "/usr/bin/ar"]) {
        return;
    }
    let scene = Scene::new();
    let root = scene.root();
    for name in ["dev", "tmp", "usr"] {
        fs::create_dir(root.join(name)).expect("mkdir");
    }
    for name in ["bin", "lib", "lib64", "sbin"] {
        symlink(format!("usr/{name}"), root.join(name)).expect("symlink");
    }
    for name in ["upper", "work", "lower/share/lower", "lower/src/project", "lower/bin"] {
        fs::create_dir_all(scene.path().join(name)).expect("mkdir");
    }
    let lower = scene.path().join("lower");
    for name in ["file", "other"] {
        fs::write(lower.join("share/lower").join(name), "x").expect("write");
    }
    fs::copy(gate::trigger(), lower.join("bin/trigger")).expect("copy");
    let project = lower.join("src/project");
    write_c_project(&project);
    let makefile = fs::read_to_string(project.join("Makefile")).expect("read");
    fs::write(project.join("Makefile"), makefile + LAYERS).expect("write");

    let run = |words: [&str; 2]| {
        let into = root.to_str().expect("UTF-8");
        let chroot = ["sequence", "chroot", into, ",", "chdir", "/usr/src/project", ","];
        let make = ["exec", "/usr/bin/make", "CC=gcc"];
        in_container(guarded(&scene), scene.path())
            .start_trigger([&chroot[..], &make, &words].concat())
            .end()
    };
    assert_nothing_false(&run(["-j2", "check"]));
    // What it wrote lies in the upper layer.
    assert_checked(&scene.path().join("upper/src/project/checked"));
    assert_nothing_false(&run(["-s", "layers"]));
}

/// What is known by arguments only cannot be placed in another root directory.
fn assert_nothing_false(outcome: &Outcome) {
    if gate::on_tracepoints() {
        assert!(outcome.violations().is_empty(), "{}", outcome.story());
    } else {
        outcome.assert_pass();
    }
}

/// Before it is watched: a mount namespace, an overlay over this machine's
/// programs, and its devices.
fn in_container(gate: Gate, base: &Path) -> Gate {
    let c = |text: String| CString::new(text).expect("no NUL");
    let base = base.display();
    let options =
        c(format!("lowerdir={base}/lower:/usr,upperdir={base}/upper,workdir={base}/work"));
    let (usr, dev) = (c(format!("{base}/root/usr")), c(format!("{base}/root/dev")));
    gate.with(|command| {
        // SAFETY: only system calls on strings that were made before the fork.
        unsafe {
            command.pre_exec(move || {
                let (none, slash) = (std::ptr::null(), c"/".as_ptr());
                let done = |result: i32| {
                    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
                };
                done(libc::unshare(libc::CLONE_NEWNS))?;
                let private = libc::MS_REC | libc::MS_PRIVATE;
                done(libc::mount(none, slash, none, private, none.cast()))?;
                let overlay = c"overlay".as_ptr();
                done(libc::mount(overlay, usr.as_ptr(), overlay, 0, options.as_ptr().cast()))?;
                let bind = libc::MS_BIND;
                done(libc::mount(c"/dev".as_ptr(), dev.as_ptr(), none, bind, none.cast()))
            });
        }
    })
}
