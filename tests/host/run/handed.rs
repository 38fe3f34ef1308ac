//! What the command is handed, and what it gives back: its standard streams,
//! its temporary directory.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use effectgate_tests::{Gate, Outcome, Scene, gate, record, wait};

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The names behind `/dev/stdin` and `/dev/stdout`, which not every machine has.
const INPUT: &str = "/proc/self/fd/0";
const OUTPUT: &str = "/proc/self/fd/1";

/// What was handed over for reading is not given for writing.
#[test]
fn input_reopened_for_writing() {
    let scene = Scene::new();
    let path = scene.outside().join("file");
    let input = File::open(&path).expect("open");
    let outcome = Gate::new(&scene)
        .with(|command| {
            command.stdin(Stdio::from(input));
        })
        .trigger(["open-write", INPUT]);
    outcome.assert_fail();
    assert_eq!(record::path(outcome.violations()[0]), text(&path), "{}", outcome.story());
}

fn with_output(gate: Gate, output: File) -> Gate {
    gate.with(|command| {
        // SAFETY: dup2 may be called between fork and exec; the file is open
        // until the closure is dropped.
        unsafe {
            command.pre_exec(move || match libc::dup2(output.as_raw_fd(), 1) {
                1 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
    })
}

#[test]
fn output_reopened_for_writing() {
    let scene = Scene::new();
    let output = File::create(scene.outside().join("output")).expect("create");
    with_output(Gate::new(&scene), output).trigger(["open-write", OUTPUT]).assert_pass();
}

/// That the verdict could not be printed is said; it is the exit code's anyway.
#[test]
fn output_that_is_full() {
    let full = || File::options().write(true).open("/dev/full").expect("there is /dev/full");
    let outcome = with_output(Gate::new(&Scene::new()), full()).trigger(["true"]);
    outcome.assert_pass();
    assert!(outcome.stderr.contains("standard output"), "no word about it{}", outcome.story());
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let gate = with_output(Gate::new(&scene), full());
    gate.trigger(["open-write", text(&file)]).assert_fail();
}

/// Metrics may be lost, a verdict may not.
#[test]
fn metrics_that_cannot_be_written() {
    let run = |words: &[&str], scene: &Scene| {
        let nowhere = scene.path().join("nowhere/metrics.prom");
        Gate::new(scene).option(["--metrics-file", text(&nowhere)]).trigger(words)
    };
    let scene = Scene::new();
    let outcome = run(&["true"], &scene);
    outcome.assert_pass();
    assert!(outcome.stdout().contains("verdict: pass"), "{}", outcome.story());
    assert!(outcome.stderr.contains("nowhere"), "no word about it{}", outcome.story());

    let scene = Scene::new();
    let file = scene.outside().join("file");
    let outcome = run(&["open-write", text(&file)], &scene);
    outcome.assert_fail();
    assert!(outcome.stdout().contains("verdict: fail"), "{}", outcome.story());
}

/// Detached at the end, should the product have failed to.
struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        for mount in mounts_below(&self.0) {
            let mount = std::ffi::CString::new(mount.as_os_str().as_bytes()).expect("no NUL");
            // SAFETY: the string lives across the call.
            unsafe { libc::umount2(mount.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

fn mounts_below(place: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
    let mounts = table.lines().filter_map(|line| line.split(' ').nth(4).map(PathBuf::from));
    mounts.filter(|mount| mount.starts_with(place)).collect()
}

/// A run in whose scene the temporary directories are; afterwards nothing is
/// left of them, and everything outside.
fn in_temporary_directory(command: impl FnOnce(Gate, &Scene) -> Outcome) {
    let scene = Scene::new();
    let place = scene.path().join("temporary");
    fs::create_dir(&place).expect("mkdir");
    let unmounted = Unmounted(place);
    let outcome = command(Gate::new(&scene).env("TMPDIR", &unmounted.0), &scene);
    // To mount something is outside every policy, and nothing else here is.
    let mounts = |event: &&serde_json::Value| event["object"]["reach"] == "mount";
    assert!(outcome.violations().iter().all(mounts), "{}", outcome.story());
    for name in ["file", "other", "directory", "to-root"] {
        let path = scene.outside().join(name);
        assert!(fs::symlink_metadata(&path).is_ok(), "{} is gone", path.display());
    }
    assert_eq!(mounts_below(&unmounted.0), Vec::<PathBuf>::new(), "{}", outcome.story());
    let left = fs::read_dir(&unmounted.0).expect("the directory").count();
    assert_eq!(left, 0, "something is left{}", outcome.story());
}

#[test]
fn mount_left_in_the_temporary_directory() {
    in_temporary_directory(|gate, scene| gate.trigger(["tmpdir-mount", text(&scene.outside())]));
}

#[test]
fn own_mount_left_in_the_temporary_directory() {
    in_temporary_directory(|gate, scene| {
        let script = format!(
            "mkdir \"$TMPDIR/m\" && exec {} sequence own-mounts , bind-mount {} \"$TMPDIR/m\"",
            text(&gate::trigger()),
            text(&scene.outside())
        );
        gate.run(["/bin/sh", "-c", &script])
    });
}

#[test]
fn whatever_else_is_left_in_the_temporary_directory() {
    in_temporary_directory(|gate, scene| {
        let script = format!(
            "cd \"$TMPDIR\" && mkdir -p a/b/c && : > a/b/file && ln -s {0} a/link && \
             ln -s {0}/file a/b/link && ln -s .. a/b/up && chmod 000 a/b/c a/b/file a/b a",
            text(&scene.outside())
        );
        gate.run(["/bin/sh", "-c", &script])
    });
}

/// Somewhere that a job could change it, nothing is written at all.
#[test]
fn results_below_a_root() {
    let scene = Scene::new();
    let (root, outside) = (scene.root(), scene.outside());
    let places = [
        root.join("results"),
        root.join("not/yet/there"),
        outside.join("to-root/results"),
        outside.join("../root/results"),
        outside.join("directory/../../root/results"),
    ];
    let files = || fs::read_dir(&root).expect("a directory").count();
    let before = files();
    for place in &places {
        let outcome = Gate::new(&scene).without_replay().evidence(place).trigger(["true"]);
        outcome.assert_refused();
        let metrics = ["--metrics-file", text(place)];
        let outcome = Gate::new(&scene).option(metrics).without_replay().trigger(["true"]);
        outcome.assert_refused();
        assert!(!outcome.has_verdict(), "{}", outcome.story());
        assert_eq!(files(), before, "something was written for {}", place.display());
    }
}

/// What moved itself out of the job's cgroup does not outlive the job.
#[test]
fn escaped_process_is_killed() {
    let scene = Scene::new();
    let word = scene.path().file_name().expect("a name").to_str().expect("UTF-8").to_owned();
    let top = effectgate_tests::cgroup::mount();
    let words = ["sequence", "join-cgroup", text(&top), ",", "daemon", &word];
    let outcome = Gate::new(&scene).trigger(words);
    outcome.assert_fail();
    let rule = |violation: &&serde_json::Value| violation["rule"]["name"] == "escaped";
    assert!(outcome.violations().iter().any(rule), "{}", outcome.story());
    assert_eq!(wait::processes_with(&word), Vec::<u32>::new(), "left{}", outcome.story());
}
