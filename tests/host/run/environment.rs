//! What the command holds: environment, user, descriptors, its temporary
//! directory.

use std::fs;
use std::os::unix::process::CommandExt;

use effectgate_tests::{Gate, Scene, gate, record};
use serde_json::json;

const FOREIGN: &str = "EFFECTGATE_TEST_FOREIGN";

#[test]
fn cut_down_to_what_is_listed() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene)
        .env(FOREIGN, "1")
        .env("RUN_ID", "7")
        .env("LC_ALL", "C")
        .trigger(["print-env-names"]);
    outcome.assert_pass();
    let printed = outcome.stdout();
    let names: Vec<_> = printed.lines().collect();
    assert!(!names.contains(&FOREIGN), "{names:?}");
    for name in ["PATH", "RUN_ID", "LC_ALL", "TMPDIR", "ENVELOPE_HASH"] {
        assert!(names.contains(&name), "{name} is not there: {names:?}");
    }
}

#[test]
fn kept_whole_and_judged() {
    let scene = Scene::new();
    let value = "the-value-that-nobody-may-record";
    let outcome = Gate::new(&scene)
        .env(FOREIGN, value)
        .option(["--keep-env"])
        .trigger(["print-env", FOREIGN]);
    outcome.assert_fail();
    assert!(outcome.stdout().starts_with(value), "it was passed on{}", outcome.story());
    let violations = outcome.violations();
    assert!(violations.iter().all(|violation| violation["class"] == "env"), "{}", outcome.story());
    assert!(violations[0]["object"].to_string().contains(FOREIGN), "{}", outcome.story());
    for entry in fs::read_dir(&outcome.evidence).expect("evidence").flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&bytes).contains(value),
            "{} holds the value",
            entry.path().display()
        );
    }
}

#[test]
fn kept_whole_and_listed() {
    let scene = Scene::new();
    scene.allow(|envelope| envelope["allowed_env"] = json!([FOREIGN]));
    Gate::new(&scene)
        .env(FOREIGN, "1")
        .env("HOME", "/")
        .env("LC_ALL", "C")
        .option(["--keep-env"])
        .trigger(["true"])
        .assert_pass();
}

/// Made inside the job: recorded, and a violation only when it looks like a
/// secret that nobody listed.
#[test]
fn made_inside() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene).trigger(["env-exec", "CARGO_TARGET"]);
    outcome.assert_pass();
    let recorded = outcome.events.iter().any(|event| event.to_string().contains("CARGO_TARGET"));
    assert!(recorded, "not recorded{}", outcome.story());

    for name in ["AWS_SECRET_ACCESS", "GITHUB_TOKEN", "DB_PASSWORD", "PRIVATE_THING"] {
        let scene = Scene::new();
        Gate::new(&scene).trigger(["env-exec", name]).assert_fail();
        let scene = Scene::new();
        scene.allow(|envelope| envelope["allowed_env"] = json!([name]));
        Gate::new(&scene).trigger(["env-exec", name]).assert_pass();
    }
}

/// The job learns the digest of its envelope, and nothing else about it.
#[test]
fn envelope_hash() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene).trigger(["print-env", "ENVELOPE_HASH"]);
    outcome.assert_pass();
    let digest = record::text(&outcome.verdict()["policy"]["sha256"]).to_owned();
    assert_eq!(digest.len(), 64);
    assert!(outcome.stdout().starts_with(&digest), "{}", outcome.story());
}

#[test]
fn temporary_directory() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene).trigger(["print-env", "TMPDIR"]);
    outcome.assert_pass();
    let printed = outcome.stdout();
    let directory = printed.split("verdict:").next().expect("a path").trim();
    assert!(directory.starts_with('/'), "{}", outcome.story());
    assert!(!std::path::Path::new(directory).exists(), "{directory} is still there");
}

/// A user who is in every password database.
fn nobody() -> (u32, u32) {
    let table = fs::read_to_string("/etc/passwd").expect("a password database");
    let line = table.lines().find(|line| line.starts_with("nobody:"));
    let mut fields = line.expect("there is a user `nobody`").split(':').skip(2);
    let mut number = || fields.next().and_then(|field| field.parse().ok()).expect("a number");
    (number(), number())
}

/// Started through sudo, the command runs as who called sudo, without root's
/// groups and capabilities.
#[test]
fn user_behind_sudo() {
    let scene = Scene::new();
    let (uid, gid) = nobody();
    scene.give_root_to(uid, gid);
    let trigger = scene.copy_of(&gate::trigger());
    let outcome = Gate::new(&scene)
        .env("SUDO_UID", uid.to_string())
        .env("SUDO_GID", gid.to_string())
        .env("SUDO_USER", "nobody")
        .run([trigger.to_str().expect("UTF-8"), "print-uid"]);
    outcome.assert_pass();
    let printed = outcome.stdout();
    assert!(printed.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}")), "{printed}");
    assert!(printed.contains(&format!("Gid:\t{gid}\t{gid}\t{gid}\t{gid}")), "{printed}");
    assert!(printed.contains("CapEff:\t0000000000000000"), "{printed}");
    let groups = printed.lines().find(|line| line.starts_with("Groups:")).expect("groups");
    assert!(!groups.split_whitespace().any(|group| group == "0"), "{groups}");
}

/// The temporary directory belongs to that user.
#[test]
fn user_behind_sudo_can_use_its_temporary_directory() {
    let scene = Scene::new();
    let (uid, gid) = nobody();
    scene.give_root_to(uid, gid);
    let trigger = scene.copy_of(&gate::trigger());
    Gate::new(&scene)
        .env("SUDO_UID", uid.to_string())
        .env("SUDO_GID", gid.to_string())
        .run([trigger.to_str().expect("UTF-8"), "tmpdir-create", "new"])
        .assert_pass();
}

/// Standard streams are handed on, whatever else was open is not.
#[test]
fn descriptors() {
    let scene = Scene::new();
    let outcome = Gate::new(&scene)
        .with(|command| {
            // SAFETY: dup2 may be called between fork and exec.
            unsafe {
                command.pre_exec(|| {
                    if libc::dup2(0, 7) == 7 {
                        Ok(())
                    } else {
                        Err(std::io::Error::last_os_error())
                    }
                });
            }
        })
        .trigger(["print-descriptors"]);
    outcome.assert_pass();
    let printed = outcome.stdout();
    let open = printed.split("verdict:").next().expect("numbers").trim();
    assert_eq!(open, "0 1 2", "{}", outcome.story());
}
