//! Files whose device and inode number are another file's as well: on an overlay
//! over several file systems, and in subvolumes of btrfs. `stat` says numbers
//! there that tell them apart, and that no hook meets.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use effectgate_tests::manifest::Manifest;
use effectgate_tests::tools::have;
use effectgate_tests::{Gate, Scene, gate, record};

/// Two files that the kernel side knows by one device and number.
struct Twins {
    scene: Scene,
    /// Unmounted in the end.
    mounts: Vec<PathBuf>,
    /// A directory of their own for each.
    one: PathBuf,
    other: PathBuf,
}

impl Drop for Twins {
    fn drop(&mut self) {
        for place in self.mounts.iter().rev() {
            let _ = Command::new("umount").arg("-l").arg(place).status();
        }
    }
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {words:?}");
}

impl Twins {
    fn new() -> Twins {
        let scene = Scene::new();
        let (one, other) = (scene.path().join("one"), scene.path().join("other"));
        Twins { scene, mounts: Vec::new(), one, other }
    }

    fn mount(&mut self, kind: &str, options: &str, device: &str, name: &str) -> PathBuf {
        let place = self.scene.path().join(name);
        fs::create_dir_all(&place).expect("mkdir");
        let at = place.to_str().expect("UTF-8");
        run("mount", &["-t", kind, "-o", options, device, at]);
        self.mounts.push(place.clone());
        place
    }

    /// The files are of two layers, which are file systems of their own.
    fn on_an_overlay(write: impl Fn(&Path)) -> Twins {
        let mut twins = Twins::new();
        let layers = ["first", "second", "upper"].map(|name| {
            let place = twins.mount("tmpfs", "mode=755", "none", name);
            for below in ["layer/directory", "work"] {
                fs::create_dir_all(place.join(below)).expect("mkdir");
            }
            place.display().to_string()
        });
        let [first, second, upper] = &layers;
        let number = |layer: &str, name: &str| {
            let file = Path::new(layer).join("layer").join(name);
            write(&file);
            file.metadata().expect("stat").ino()
        };
        // Each counts its files from the beginning.
        assert_eq!(number(first, "one"), number(second, "other"));
        let options = format!(
            "xino=off,lowerdir={first}/layer:{second}/layer,upperdir={upper}/layer,workdir={upper}/work"
        );
        let place = twins.mount("overlay", &options, "overlay", "merged");
        (twins.one, twins.other) = (place.join("one"), place.join("other"));
        twins
    }

    /// The files are of two subvolumes, which count for themselves; `None` where
    /// that cannot be had.
    fn on_btrfs(write: impl Fn(&Path)) -> Option<Twins> {
        let known = fs::read_to_string("/proc/filesystems").expect("it is there");
        if !known.contains("btrfs") || !have(&["/sbin/mkfs.btrfs", "/bin/btrfs"]) {
            println!("not tested: no btrfs here");
            return None;
        }
        let mut twins = Twins::new();
        let image = twins.scene.path().join("image");
        File::create(&image).and_then(|file| file.set_len(200 << 20)).expect("write");
        let image = image.to_str().expect("UTF-8");
        run("/sbin/mkfs.btrfs", &["-q", image]);
        let place = twins.mount("btrfs", "loop", image, "disk");
        let number = |name: &str| {
            let volume = place.join("volumes").join(name);
            fs::create_dir_all(place.join("volumes")).expect("mkdir");
            run("/bin/btrfs", &["-q", "subvolume", "create", volume.to_str().expect("UTF-8")]);
            let file = volume.join(name);
            write(&file);
            (file.metadata().expect("stat").ino(), file)
        };
        let ((one, first), (other, second)) = (number("one"), number("other"));
        assert_eq!(one, other);
        (twins.one, twins.other) = (first, second);
        Some(twins)
    }

    fn both(write: impl Fn(&Path)) -> Vec<Twins> {
        let overlay = Twins::on_an_overlay(&write);
        [Some(overlay), Twins::on_btrfs(&write)].into_iter().flatten().collect()
    }
}

/// Only the file that was handed over is the job's.
#[test]
fn a_stream_is_told_from_its_twin() {
    for twins in Twins::both(|file| fs::write(file, "x").expect("write")) {
        let opened = |path: &Path| {
            let out = OpenOptions::new().append(true).open(&twins.one).expect("open");
            let words = ["open-write", path.to_str().expect("UTF-8")];
            // The other streams are the test's own.
            let gate = Gate::new(&twins.scene).with(|command| {
                command.stdin(out);
            });
            gate.trigger(words)
        };
        let outcome = opened(&twins.one);
        outcome.assert_pass();
        let rules = outcome.events.iter().filter(|event| record::kind(event) == "file/open_write");
        let rules: Vec<_> = rules.map(|event| record::text(&event["rule"]["name"])).collect();
        assert_eq!(rules, ["stream"], "{}", outcome.story());
        let outcome = opened(&twins.other);
        outcome.assert_fail();
        assert_eq!(record::kind(outcome.violations()[0]), "file/open_write");
        assert_eq!(outcome.verdict()["disagreements"], 0, "{}", outcome.story());
    }
}

/// There `stat` says another device of a file than of its directory.
#[test]
fn a_name_outside_is_found_on_an_overlay() {
    let twins = Twins::on_an_overlay(|file| fs::write(file, "x").expect("write"));
    let place = twins.one.parent().expect("the overlay");
    let [root, outside] = ["root", "outside"].map(|name| place.join(name));
    for directory in [&root, &outside] {
        fs::create_dir(directory).expect("mkdir");
    }
    fs::write(outside.join("file"), "x").expect("write");
    let name = root.join("name");
    fs::hard_link(outside.join("file"), &name).expect("link");
    twins.scene.allow(|envelope| envelope["allowed_roots"] = serde_json::json!([root]));
    let words = ["open-write", name.to_str().expect("UTF-8")];
    let outcome = Gate::new(&twins.scene).trigger(words);
    outcome.assert_fail();
    assert_eq!(record::text(&outcome.violations()[0]["rule"]["name"]), "hard-link");
    assert_eq!(outcome.verdict()["disagreements"], 0, "{}", outcome.story());
}

/// Where programs are looked for: in a mount namespace of the run's own, the one
/// program lies there.
const PROGRAMS: &str = "/usr/local/sbin";

#[test]
fn a_program_is_told_from_its_twin() {
    fs::create_dir_all(PROGRAMS).expect("mkdir");
    let copy = |file: &Path| fs::copy(gate::trigger(), file).map(drop).expect("copy");
    for twins in Twins::both(copy) {
        let root = twins.scene.root();
        fs::create_dir(root.join("tools")).expect("mkdir");
        copy(&root.join("tools/trigger"));
        let policy = Manifest::new().set("binaries", serde_json::json!(["one"]));
        twins.scene.write_manifest(&policy.text());
        let listed = twins.one.parent().expect("a directory");
        let exec = |program: &Path| {
            let words = ["tools/trigger", "exec", program.to_str().expect("UTF-8"), "true"];
            bound(Gate::manifest(&twins.scene), listed).run(words)
        };
        exec(&Path::new(PROGRAMS).join("one")).assert_pass();
        let outcome = exec(&twins.other);
        outcome.assert_fail();
        // Where it is seen, it is also opened to be run.
        let mut seen = outcome.violations().into_iter();
        let seen = seen.find(|event| record::kind(event) == "exec/exec");
        let seen = seen.unwrap_or_else(|| panic!("it was not run{}", outcome.story()));
        assert_eq!(record::text(&seen["rule"]["name"]), "binaries");
        assert_eq!(outcome.verdict()["disagreements"], 0, "{}", outcome.story());
    }
}

/// Before it is watched: a mount namespace, and a directory in the place of
/// [`PROGRAMS`].
fn bound(gate: Gate, directory: &Path) -> Gate {
    let c = |text: &str| CString::new(text).expect("no NUL");
    let (from, to) = (c(directory.to_str().expect("UTF-8")), c(PROGRAMS));
    gate.with(|command| {
        // SAFETY: only system calls on strings that were made before the fork.
        unsafe {
            command.pre_exec(move || {
                let none = std::ptr::null();
                let done = |result: i32| {
                    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
                };
                done(libc::unshare(libc::CLONE_NEWNS))?;
                let private = libc::MS_REC | libc::MS_PRIVATE;
                done(libc::mount(none, c"/".as_ptr(), none, private, none.cast()))?;
                done(libc::mount(from.as_ptr(), to.as_ptr(), none, libc::MS_BIND, none.cast()))
            });
        }
    })
}
