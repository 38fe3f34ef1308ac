//! What leads out of the root without a name outside it: device nodes, core
//! files, and what was handed over.

use std::ffi::CString;
use std::process::Command;

use effectgate_tests::{Outcome, Scene, gate, record, watched};

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn unwatched(words: &[&str]) -> bool {
    let ended = Command::new(gate::trigger()).args(words).output();
    ended.expect("the trigger can be started").status.success()
}

fn assert_hit(outcome: &Outcome, kind: &str, path: &str) {
    outcome.assert_fail();
    let hit = |violation: &&serde_json::Value| {
        record::kind(violation) == kind && record::path(violation) == path
    };
    assert!(outcome.violations().iter().any(hit), "no {kind} of {path}{}", outcome.story());
}

/// Who may make devices in a directory may reach everything from there.
#[test]
fn device_made_below_the_root() {
    // The kernel's log, and the first loop device.
    for (effect, number) in [("mknod-character", "1:11"), ("mknod-block", "7:0")] {
        let scene = Scene::new();
        let node = scene.root().join("node");
        let outcome = watched::trigger(&scene, [effect, text(&node), number]);
        assert_hit(&outcome, "file/create", text(&node));
    }
}

#[test]
fn device_below_the_root_that_is_opened() {
    let scene = Scene::new();
    let node = scene.root().join("node");
    assert!(unwatched(&["mknod-character", text(&node), "1:11"]), "mknod needs root");
    if !unwatched(&["open-write", text(&node)]) {
        println!("not tested: devices cannot be opened on this file system");
        return;
    }
    let outcome = watched::trigger(&scene, ["open-write", text(&node)]);
    assert_hit(&outcome, "file/open_write", text(&node));
}

/// What the kernel shows of itself in a directory below the root is none of it.
#[test]
fn settings_of_the_kernel_below_the_root() {
    let scene = Scene::new();
    let place = scene.root().join("programs");
    std::fs::create_dir(&place).expect("mkdir");
    let path = CString::new(text(&place)).expect("no NUL");
    let kind = c"binfmt_misc".as_ptr();
    // SAFETY: the strings live across the call.
    let mounted = unsafe { libc::mount(kind, path.as_ptr(), kind, 0, std::ptr::null()) };
    if mounted != 0 {
        println!("not tested: this kernel has no such settings");
        return;
    }
    let status = place.join("status");
    let outcome = watched::trigger(&scene, ["open-write", text(&status)]);
    // SAFETY: the string lives across the call.
    unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    assert_hit(&outcome, "file/open_write", text(&status));
}

/// These lead nowhere: `/dev/null` by another name, a queue, a whiteout.
#[test]
fn nodes_that_lead_nowhere() {
    let scene = Scene::new();
    let (null, queue) = (scene.root().join("null"), scene.root().join("queue"));
    assert!(unwatched(&["mknod-character", text(&null), "1:3"]), "mknod needs root");
    if unwatched(&["open-write", text(&null)]) {
        watched::trigger(&scene, ["open-write", text(&null)]).assert_pass();
    }
    let words = ["sequence", "mknod-fifo", text(&queue), ",", "open-rdwr", text(&queue)];
    watched::trigger(&scene, words).assert_pass();
    let whiteout = scene.root().join("whiteout");
    watched::trigger(&scene, ["mknod-character", text(&whiteout), "0:0"]).assert_pass();
}

/// The kernel itself writes a core file, through no system call.
#[test]
fn core_file() {
    let scene = Scene::new();
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let pattern = pattern.trim_end();
    if pattern.is_empty() || pattern.starts_with(['|', '@']) || pattern.contains('/') {
        println!("not tested: core files do not go into the working directory: {pattern:?}");
        return;
    }
    let outside = scene.outside();
    let signal = libc::SIGSEGV.to_string();
    let dumps = ["sequence", "chdir", text(&outside), ",", "allow-core", ",", "kill-self", &signal];
    let before = std::fs::read_dir(&outside).expect("a directory").count();
    assert!(!unwatched(&dumps), "it dies");
    if std::fs::read_dir(&outside).expect("a directory").count() == before {
        println!("not tested: no core file was written");
        return;
    }
    let outcome = watched::trigger(&scene, dumps);
    if gate::on_tracepoints() {
        outcome.assert_indeterminate();
    } else {
        // The kernel opens the file in the name of the process.
        outcome.assert_fail();
    }
    let silent = ["sequence", "chdir", text(&outside), ",", "kill-self", "9"];
    let outcome = watched::trigger(&scene, silent);
    assert_eq!(outcome.verdict()["verdict"], "pass", "{}", outcome.story());
}
