//! The observer's own trouble: no rights, no kernel support, no room.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use effectgate_tests::{Gate, Outcome, Scene, cgroup, gate};

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

fn done(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn assert_refused_about(outcome: &Outcome, words: &[&str]) {
    outcome.assert_refused();
    let said = outcome.stderr.to_lowercase();
    assert!(
        words.iter().any(|word| said.contains(word)),
        "the message says nothing of {words:?}{}",
        outcome.story()
    );
}

#[test]
fn without_rights() {
    let scene = Scene::new();
    let binary = scene.copy_of(&gate::binary());
    let trigger = scene.copy_of(&gate::trigger());
    let outcome = Gate::of(&binary, &scene)
        .with(|command| {
            command.uid(65534).gid(65534);
        })
        .run([trigger.to_str().expect("UTF-8"), "true"]);
    assert_refused_about(&outcome, &["root", "permission", "privilege", "capabilit"]);
}

#[test]
fn backend_that_is_not_to_be_had() {
    if !gate::on_tracepoints() {
        println!("not tested: the other backend may be there");
        return;
    }
    let lsm = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    if lsm.split(',').any(|name| name.trim() == "bpf") {
        println!("not tested: this kernel has BPF LSM");
        return;
    }
    let scene = Scene::new();
    let output = std::process::Command::new(gate::binary())
        .arg("run")
        .arg("--envelope")
        .arg(scene.envelope())
        .args(["--backend", "lsm", "--", "/bin/true"])
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(122), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).to_lowercase().contains("lsm"), "{output:?}");
}

#[test]
fn coverage_that_is_not_to_be_had() {
    if !gate::on_tracepoints() {
        println!("not tested: this backend covers every class by object");
        return;
    }
    let outcome = Gate::new(&Scene::new()).option(["--min-coverage", "object"]).trigger(["true"]);
    assert_refused_about(&outcome, &["coverage"]);
}

/// In a mount namespace of its own, `hide` changes what the binary finds.
fn in_own_mounts(
    scene: &Scene,
    hide: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> Outcome {
    Gate::new(scene)
        .with(|command| {
            // SAFETY: only system calls on strings that were made before the fork.
            unsafe {
                command.pre_exec(move || {
                    done(libc::unshare(libc::CLONE_NEWNS))?;
                    let private = libc::MS_REC | libc::MS_PRIVATE;
                    let (none, root) = (std::ptr::null(), c"/".as_ptr());
                    done(libc::mount(none, root, none, private, std::ptr::null()))?;
                    hide()
                });
            }
        })
        .trigger(["true"])
}

#[test]
fn without_cgroup_v2() {
    let mount = c(&cgroup::mount());
    let outcome = in_own_mounts(&Scene::new(), move || {
        // SAFETY: the string lives across the call.
        done(unsafe { libc::umount2(mount.as_ptr(), libc::MNT_DETACH) })
    });
    assert_refused_about(&outcome, &["cgroup"]);
}

#[test]
fn without_btf() {
    let outcome = in_own_mounts(&Scene::new(), || {
        let (kind, target) = (c"tmpfs".as_ptr(), c"/sys/kernel/btf".as_ptr());
        // SAFETY: the strings are static.
        done(unsafe { libc::mount(kind, target, kind, 0, std::ptr::null()) })
    });
    assert_refused_about(&outcome, &["btf"]);
}

/// A tiny file system, unmounted at the end.
struct Tiny(PathBuf);

impl Tiny {
    fn new(path: PathBuf, options: &std::ffi::CStr) -> Tiny {
        std::fs::create_dir(&path).expect("mkdir");
        let kind = c"tmpfs".as_ptr();
        let target = c(&path);
        // SAFETY: all strings live across the call.
        let result =
            unsafe { libc::mount(kind, target.as_ptr(), kind, 0, options.as_ptr().cast()) };
        done(result).expect("mounting needs root");
        Tiny(path)
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let path = c(&self.0);
        // SAFETY: the string lives across the call.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

/// The evidence does not fit: that is the observer's failure, and no verdict.
#[test]
fn full_disk_under_the_evidence() {
    let scene = Scene::new();
    let tiny = Tiny::new(scene.path().join("tiny"), c"size=16k");
    let trigger = gate::trigger();
    let script = format!("{0} print-cgroup; echo; exec {0} fork 500", trigger.display());
    let outcome = Gate::new(&scene)
        .without_replay()
        .evidence(&tiny.0.join("evidence"))
        .run(["/bin/sh", "-c", &script]);
    outcome.assert_code(125);
    let said = outcome.stderr.to_lowercase();
    assert!(said.contains("space") && said.contains("tiny"), "no clear message{}", outcome.story());
    let printed = outcome.stdout();
    let path = printed.lines().next().expect("the command ran").trim_start_matches('/');
    assert!(!cgroup::mount().join(path).exists(), "{path} is still there");
}

#[test]
fn evidence_that_is_there_already() {
    let scene = Scene::new();
    let place = scene.new_evidence();
    Gate::new(&scene).evidence(&place).trigger(["true"]).assert_pass();
    let before = std::fs::read(place.join("events.jsonl")).expect("a log");
    let outcome = Gate::new(&scene).evidence(&place).without_replay().trigger(["true"]);
    outcome.assert_refused();
    let after = std::fs::read(place.join("events.jsonl")).expect("a log");
    assert_eq!(before, after, "evidence was overwritten");
}

#[test]
fn evidence_that_cannot_be_made() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene)
        .without_replay()
        .evidence(Path::new("/proc/no/evidence"))
        .trigger(["true"]);
    assert!([122, 125].contains(&outcome.code()), "{}", outcome.story());
    assert!(outcome.stderr.contains("/proc/no/evidence"), "{}", outcome.story());
}
