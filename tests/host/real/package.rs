//! A package of the distribution's kind, unpacked and configured by its own
//! manager in a root of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use effectgate_tests::Scene;
use effectgate_tests::tools::have;

use super::{gate, prepare};

const CONTROL: &str = "Package: demo\nVersion: 1\nArchitecture: all\n\
                       Maintainer: Test <test@example.invalid>\nDescription: For a test\n";
const POSTINST: &str = "#!/bin/sh\nset -e\necho configured > \"$DPKG_ROOT/etc/demo/state\"\n";

#[test]
fn real_package_installation() {
    if !have(&["/usr/bin/dpkg", "/usr/bin/dpkg-deb", "/usr/bin/tar"]) {
        return;
    }
    let scene = Scene::new();
    write_package(&scene.outside().join("demo"));
    let build = ["dpkg-deb", "-Zgzip", "--root-owner-group", "--build", "demo", "demo.deb"];
    prepare(&scene.outside(), &build);
    let root = scene.root();
    for name in ["info", "updates"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(name)).expect("mkdir");
    }
    for name in ["status", "available"] {
        fs::write(root.join("var/lib/dpkg").join(name), "").expect("write");
    }
    let into = format!("--root={}", root.display());
    // It keeps its own outside of that root.
    let log = format!("--log={}/dpkg.log", root.display());
    let deb = scene.outside().join("demo.deb");
    let deb = deb.to_str().expect("UTF-8");
    let forced = ["--force-script-chrootless", "--force-bad-path", "--force-not-root"];
    let dpkg = [&["/usr/bin/dpkg", &into, &log], &forced[..]].concat();
    gate(&scene).run([&dpkg[..], &["--install", deb]].concat()).assert_pass();
    let state = fs::read_to_string(root.join("etc/demo/state")).expect("it was configured");
    assert_eq!(state, "configured\n");
    gate(&scene).run([&dpkg[..], &["--purge", "demo"]].concat()).assert_pass();
    assert!(!root.join("usr/share/demo").exists(), "it was not removed");
}

/// Files, links and a script.
fn write_package(at: &Path) {
    for name in ["DEBIAN", "etc/demo", "usr/share/demo/data"] {
        fs::create_dir_all(at.join(name)).expect("mkdir");
    }
    fs::write(at.join("DEBIAN/control"), CONTROL).expect("write");
    let script = at.join("DEBIAN/postinst");
    fs::write(&script, POSTINST).expect("write");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("chmod");
    for number in 0..40 {
        let file = at.join(format!("usr/share/demo/data/file-{number}"));
        fs::write(file, format!("{number}\n").repeat(1000)).expect("write");
    }
    std::os::unix::fs::symlink("data/file-0", at.join("usr/share/demo/first")).expect("symlink");
    let hard = at.join("usr/share/demo/hard");
    fs::hard_link(at.join("usr/share/demo/data/file-1"), hard).expect("link");
}
