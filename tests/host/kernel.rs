//! What the kernel side sees. Each case is one effect, tried once where the
//! envelope allows it and once where it does not:
//!
//! - inside: verdict `pass`, the effect recorded as within;
//! - outside: verdict `fail`, one violation with this object and this program,
//!   and none about anything else;
//! - both: the recorded log, replayed, gives the same verdict.
//!
//! In the words of a case, `{place}` is the directory that is allowed or the one
//! that is not; `{tcp4}`, `{tcp6}`, `{udp4}` and `{udp6}` are sockets outside the
//! job that the envelope lists or does not; `{trigger}` is the acting program.

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};

use effectgate_common::hooks::HOOKS;
use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::{Gate, Outcome, Scene, gate, record};
use serde_json::Value;

/// One effect.
struct Case {
    /// What of the kernel side it exercises: names in the hook table.
    hooks: &'static [&'static str],
    /// First kernel that has it.
    since: (u8, u8),
    /// Words for `trigger`.
    inside: &'static str,
    outside: &'static str,
    /// What is recorded of it.
    effect: Effect,
    /// How well the tracepoint backend sees it.
    tracepoint: Sight,
}

/// What the record of an effect says.
enum Effect {
    /// Action and path.
    File(&'static str, &'static str),
    /// Action and both paths.
    Two(&'static str, &'static str, &'static str),
    /// Action and endpoint.
    Net(&'static str, &'static str),
    /// An environment key of a process.
    Env(&'static str),
    /// A process left the job's cgroup.
    Escape,
    /// Nothing.
    None,
}

/// How well the tracepoint backend sees an effect.
#[derive(PartialEq)]
enum Sight {
    Sees,
    /// It sees the effect, and that it cannot see all that the job does.
    Incomplete,
    /// It sees only that it cannot see all that the job does.
    Blind,
}

const CASE: Case = Case {
    hooks: &[],
    since: (5, 7),
    inside: "",
    outside: "",
    effect: Effect::None,
    tracepoint: Sight::Sees,
};

/// Declares the cases and a test for each named side of each.
macro_rules! cases {
    ($($name:ident [$($side:ident)+] $both:literal { $($field:ident: $value:expr),+ $(,)? })+) => {
        const CASES: &[(&str, Case)] = &[$((
            stringify!($name),
            {
                let base = Case { inside: $both, outside: $both, ..CASE };
                Case { $($field: $value,)+ ..base }
            },
        )),+];
        $(mod $name {
            $(#[test]
            fn $side() {
                super::check::$side(super::case(stringify!($name)));
            })+
        })+
    };
}

use Effect::{Env, Escape, File, Net, Two};
use Sight::{Blind, Incomplete};

#[rustfmt::skip]
cases! {
    // Opened for writing.
    open_for_writing [inside outside] "open-write {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_for_reading_and_writing [inside outside] "open-rdwr {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_for_appending [inside outside] "open-append {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_and_truncate [inside outside] "open-truncate {place}/file" {
        hooks: &["file_open", "file_truncate", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_by_the_old_call [inside outside] "open-legacy {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    openat2 [inside outside] "openat2 {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_from_a_second_thread [inside outside] "thread-open {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_on_a_reused_descriptor [inside outside] "dup-open {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_in_a_child [inside outside] "fork-then open-write {place}/file" {
        hooks: &["task_fork", "file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_after_exec_from_a_thread [inside outside] "exec-from-thread {trigger} open-write {place}/file" {
        hooks: &["task_exec", "file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    reopen_of_a_path_descriptor [inside outside] "open-path-reopen {place}/file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }

    // By another name than the one that counts.
    open_relative_to_a_new_directory [inside outside] "open-relative {place} file" {
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_through_dots [inside outside] "" {
        inside: "open-write {outside}/../root/file", outside: "open-write {root}/../outside/file",
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    open_through_a_linked_directory [inside outside] "" {
        inside: "open-write {outside}/to-root/file", outside: "open-write {root}/to-outside/file",
        hooks: &["file_open", "syscall_exit"], effect: File("open_write", "{place}/file") }
    mkdir_through_a_linked_directory [inside outside] "" {
        inside: "mkdir {outside}/to-root/new", outside: "mkdir {root}/to-outside/new",
        hooks: &["inode_mkdir", "path_mkdir", "syscall_exit"], effect: File("mkdir", "{place}/new") }
    unlink_through_dots [inside outside] "" {
        inside: "unlink {outside}/../root/file", outside: "unlink {root}/../outside/file",
        hooks: &["inode_unlink", "path_unlink", "syscall_exit"], effect: File("unlink", "{place}/file") }

    // Made.
    create [inside outside] "create {place}/new" {
        hooks: &["inode_create", "path_mknod", "syscall_exit"], effect: File("create", "{place}/new") }
    creat [inside outside] "creat {place}/new" {
        hooks: &["inode_create", "path_mknod", "syscall_exit"], effect: File("create", "{place}/new") }
    file_without_a_name_that_gets_one [inside outside] "tmpfile {place} {place}/new" {
        hooks: &["file_open", "inode_link", "path_link", "syscall_exit"], effect: File("link", "") }
    mkdir [inside outside] "mkdir {place}/new" {
        hooks: &["inode_mkdir", "path_mkdir", "syscall_exit"], effect: File("mkdir", "{place}/new") }
    mkdirat [inside outside] "mkdirat {place} new" {
        hooks: &["inode_mkdir", "path_mkdir", "syscall_exit"], effect: File("mkdir", "{place}/new") }
    mknod_fifo [inside outside] "mknod-fifo {place}/new" {
        hooks: &["inode_mknod", "path_mknod", "syscall_exit"], effect: File("create", "{place}/new") }
    mknodat_fifo [inside outside] "mknodat-fifo {place} new" {
        hooks: &["inode_mknod", "path_mknod", "syscall_exit"], effect: File("create", "{place}/new") }
    mknod_file [inside outside] "mknod-file {place}/new" {
        hooks: &["inode_create", "path_mknod", "syscall_exit"], effect: File("create", "{place}/new") }
    symlink [inside outside] "symlink anything {place}/new" {
        hooks: &["inode_symlink", "path_symlink", "syscall_exit"], effect: File("symlink", "{place}/new") }
    symlinkat [inside outside] "symlinkat anything {place} new" {
        hooks: &["inode_symlink", "path_symlink", "syscall_exit"], effect: File("symlink", "{place}/new") }
    link [inside outside] "link {place}/file {place}/new" {
        hooks: &["inode_link", "path_link", "syscall_exit"], effect: Two("link", "{place}/file", "{place}/new") }
    linkat [inside outside] "linkat {place} file new" {
        hooks: &["inode_link", "path_link", "syscall_exit"], effect: Two("link", "{place}/file", "{place}/new") }
    link_from_outside [outside] "link {outside}/file {root}/new" {
        hooks: &["inode_link", "path_link", "syscall_exit"], effect: Two("link", "{outside}/file", "{root}/new") }
    link_to_outside [outside] "link {root}/file {outside}/new" {
        hooks: &["inode_link", "path_link", "syscall_exit"], effect: Two("link", "{root}/file", "{outside}/new") }

    // Moved.
    rename [inside outside] "rename {place}/file {place}/new" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{place}/file", "{place}/new") }
    rename_over_another [inside outside] "rename {place}/file {place}/other" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{place}/file", "{place}/other") }
    rename_a_directory [inside outside] "rename {place}/directory {place}/new" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{place}/directory", "{place}/new") }
    renameat [inside outside] "renameat {place} file new" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{place}/file", "{place}/new") }
    renameat2 [inside outside] "rename-noreplace {place}/file {place}/new" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{place}/file", "{place}/new") }
    exchange [inside outside] "rename-exchange {place}/file {place}/other" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{place}/file", "{place}/other") }
    rename_out [outside] "rename {root}/file {outside}/new" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{root}/file", "{outside}/new") }
    rename_in [outside] "rename {outside}/file {root}/new" {
        hooks: &["inode_rename", "path_rename", "syscall_exit"], effect: Two("rename", "{outside}/file", "{root}/new") }

    // Removed.
    unlink [inside outside] "unlink {place}/file" {
        hooks: &["inode_unlink", "path_unlink", "syscall_exit"], effect: File("unlink", "{place}/file") }
    unlinkat [inside outside] "unlinkat {place} file" {
        hooks: &["inode_unlink", "path_unlink", "syscall_exit"], effect: File("unlink", "{place}/file") }
    rmdir [inside outside] "rmdir {place}/directory" {
        hooks: &["inode_rmdir", "path_rmdir", "syscall_exit"], effect: File("rmdir", "{place}/directory") }
    unlinkat_a_directory [inside outside] "unlinkat-directory {place} directory" {
        hooks: &["inode_rmdir", "path_rmdir", "syscall_exit"], effect: File("rmdir", "{place}/directory") }

    // Changed.
    truncate [inside outside] "truncate {place}/file" {
        hooks: &["path_truncate", "syscall_exit"], effect: File("truncate", "{place}/file") }
    ftruncate [inside outside] "ftruncate {place}/file" {
        hooks: &["file_truncate", "syscall_exit"], effect: File("truncate", "{place}/file") }
    chmod [inside outside] "chmod {place}/file" {
        hooks: &["path_chmod", "syscall_exit"], effect: File("chmod", "{place}/file") }
    fchmod [inside outside] "fchmod {place}/file" {
        hooks: &["path_chmod", "syscall_exit"], effect: File("chmod", "{place}/file") }
    fchmodat [inside outside] "fchmodat {place} file" {
        hooks: &["path_chmod", "syscall_exit"], effect: File("chmod", "{place}/file") }
    fchmodat2 [inside outside] "fchmodat2 {place}/file" { since: (6, 6),
        hooks: &["path_chmod", "syscall_exit"], effect: File("chmod", "{place}/file") }
    chown [inside outside] "chown {place}/file" {
        hooks: &["path_chown", "syscall_exit"], effect: File("chown", "{place}/file") }
    fchown [inside outside] "fchown {place}/file" {
        hooks: &["path_chown", "syscall_exit"], effect: File("chown", "{place}/file") }
    lchown [inside outside] "lchown {place}/file" {
        hooks: &["path_chown", "syscall_exit"], effect: File("chown", "{place}/file") }
    fchownat [inside outside] "fchownat {place} file" {
        hooks: &["path_chown", "syscall_exit"], effect: File("chown", "{place}/file") }

    // Through an io_uring.
    io_uring_open [inside outside] "io-uring-open {place}/file" { tracepoint: Blind,
        hooks: &["file_open"], effect: File("open_write", "{place}/file") }
    io_uring_unlink [inside outside] "io-uring-unlink {place}/file" { tracepoint: Blind,
        hooks: &["inode_unlink", "path_unlink"], effect: File("unlink", "{place}/file") }
    io_uring_mkdir [inside outside] "io-uring-mkdir {place}/new" { tracepoint: Blind,
        hooks: &["inode_mkdir", "path_mkdir"], effect: File("mkdir", "{place}/new") }
    io_uring_rename [inside outside] "io-uring-rename {place}/file {place}/new" { tracepoint: Blind,
        hooks: &["inode_rename", "path_rename"], effect: Two("rename", "{place}/file", "{place}/new") }
    io_uring_connect [inside outside] "io-uring-connect {tcp4}" { tracepoint: Incomplete,
        hooks: &["connect4"], effect: Net("connect", "{tcp4}") }

    // Sockets.
    connect4 [inside outside] "connect {tcp4}" {
        hooks: &["connect4"], effect: Net("connect", "{tcp4}") }
    connect6 [inside outside] "connect {tcp6}" {
        hooks: &["connect6"], effect: Net("connect", "{tcp6}") }
    connect_udp4 [inside outside] "connect-udp {udp4}" {
        hooks: &["connect4"], effect: Net("connect", "{udp4}") }
    connect_udp6 [inside outside] "connect-udp {udp6}" {
        hooks: &["connect6"], effect: Net("connect", "{udp6}") }
    tcp_fast_open [inside outside] "tcp-fastopen {tcp4}" {
        hooks: &["connect4"], effect: Net("connect", "{tcp4}") }
    sendto4 [inside outside] "sendto {udp4}" {
        hooks: &["sendmsg4"], effect: Net("send", "{udp4}") }
    sendto6 [inside outside] "sendto {udp6}" {
        hooks: &["sendmsg6"], effect: Net("send", "{udp6}") }
    sendmsg4 [inside outside] "sendmsg {udp4}" {
        hooks: &["sendmsg4"], effect: Net("send", "{udp4}") }
    sendmsg6 [inside outside] "sendmsg {udp6}" {
        hooks: &["sendmsg6"], effect: Net("send", "{udp6}") }
    sendmmsg [inside outside] "sendmmsg {udp4} {udp4}" {
        hooks: &["sendmsg4"], effect: Net("send", "{udp4}") }
    sendmmsg_of_one_stray_message [outside] "sendmmsg {listed-udp4} {udp4}" {
        hooks: &["sendmsg4"], effect: Net("send", "{udp4}") }
    bind4 [inside] "bind 127.0.0.1:0" {
        hooks: &["bind4"], effect: Net("bind", "127.0.0.1:") }
    bind6 [inside] "bind [::1]:0" {
        hooks: &["bind6"], effect: Net("bind", "[::1]:") }
    listener_of_its_own4 [inside] "self-connect 4" {
        hooks: &["bind4", "connect4"], effect: Net("connect", "127.0.0.1:") }
    listener_of_its_own6 [inside] "self-connect 6" {
        hooks: &["bind6", "connect6"], effect: Net("connect", "[::1]:") }

    // Environment keys made inside the job.
    environment_key [inside outside] "" {
        inside: "env-exec RUN_ID", outside: "env-exec DEPLOY_TOKEN",
        hooks: &["task_exec"], effect: Env("{key}") }

    // Processes and their cgroup.
    leaves_its_cgroup [outside] "join-cgroup {cgroup}" {
        hooks: &["cgroup_move"], effect: Escape }
    child_in_another_cgroup [outside] "clone-into-cgroup {cgroup}" {
        hooks: &["task_fork"], effect: Escape }
    ends [inside] "exit 0" {
        hooks: &["task_exit"], effect: Effect::None }
}

/// Effects that no envelope has to list.
mod never_flagged {
    use super::*;

    fn passes(words: &[&str]) -> Outcome {
        let scene = Scene::new();
        let outcome = Gate::new(&scene).trigger(words);
        outcome.assert_pass();
        outcome
    }

    #[test]
    fn reading_anywhere() {
        let scene = Scene::new();
        let file = scene.outside().join("file");
        let file = file.to_str().expect("UTF-8");
        let outcome = Gate::new(&scene).trigger(["open-read", file]);
        outcome.assert_pass();
        let read = outcome
            .events
            .iter()
            .find(|event| record::kind(event) == "file/open_read" && record::path(event) == file)
            .unwrap_or_else(|| panic!("the read is not recorded{}", outcome.story()));
        assert_eq!(record::exe(read), gate::trigger().to_str().expect("UTF-8"));
    }

    #[test]
    fn devices_that_hold_nothing() {
        for device in ["/dev/null", "/dev/zero", "/dev/full"] {
            passes(&["open-write", device]);
        }
    }

    #[test]
    fn its_own_process_files() {
        passes(&["open-write", "/proc/self/comm"]);
    }

    #[test]
    fn memory_files() {
        passes(&["memfd-reopen"]);
    }

    #[test]
    fn its_temporary_directory() {
        let outcome = passes(&["tmpdir-create", "new"]);
        let made = outcome
            .events
            .iter()
            .find(|event| {
                record::kind(event) == "file/create" && record::path(event).ends_with("/new")
            })
            .unwrap_or_else(|| panic!("the file is not recorded{}", outcome.story()));
        let directory = Path::new(record::path(made)).parent().expect("absolute");
        assert!(!directory.exists(), "{} is still there", directory.display());
    }
}

/// Effects that are recorded and judged by nothing.
mod recorded {
    use super::*;

    fn trigger() -> String {
        gate::trigger().to_str().expect("UTF-8").to_owned()
    }

    fn count(outcome: &Outcome, kind: &str) -> usize {
        outcome.events.iter().filter(|event| record::kind(event) == kind).count()
    }

    #[test]
    fn fork_and_exit() {
        let scene = Scene::new();
        let outcome = Gate::new(&scene).trigger(["fork", "5"]);
        outcome.assert_pass();
        assert_eq!(count(&outcome, "exec/fork"), 5, "forks{}", outcome.story());
        assert!(count(&outcome, "exec/exit") >= 5, "exits{}", outcome.story());
    }

    #[test]
    fn exec_with_its_arguments() {
        let scene = Scene::new();
        let outcome = Gate::new(&scene).trigger(["exec", &trigger(), "true", "two words", ""]);
        outcome.assert_pass();
        let argv = serde_json::json!([trigger(), "true", "two words", ""]);
        let exec = outcome
            .events
            .iter()
            .find(|event| record::kind(event) == "exec/exec" && event["object"]["argv"] == argv)
            .unwrap_or_else(|| panic!("the second exec is not recorded{}", outcome.story()));
        assert_eq!(record::path(exec), trigger());
        assert_eq!(exec["within"], true);
    }

    #[test]
    fn exec_by_descriptor() {
        let scene = Scene::new();
        let outcome = Gate::new(&scene).trigger(["execveat", &trigger()]);
        outcome.assert_pass();
        let execs: Vec<_> =
            outcome.events.iter().filter(|event| record::kind(event) == "exec/exec").collect();
        assert_eq!(execs.len(), 2, "execs{}", outcome.story());
        assert!(execs.iter().all(|exec| record::path(exec) == trigger()), "{}", outcome.story());
    }

    #[test]
    fn script_with_its_interpreter() {
        let scene = Scene::new();
        let script = scene.root().join("script");
        std::fs::write(&script, format!("#!{} true\n", trigger())).expect("write");
        let script = scene.copy_of(&script);
        let outcome = Gate::new(&scene).trigger([Path::new("exec"), &script]);
        outcome.assert_pass();
        let script = script.to_str().expect("UTF-8");
        let exec = outcome
            .events
            .iter()
            .find(|event| {
                record::kind(event) == "exec/exec" && event["object"].to_string().contains(script)
            })
            .unwrap_or_else(|| panic!("the script is not recorded{}", outcome.story()));
        assert!(exec["object"].to_string().contains(&trigger()), "{}", outcome.story());
    }

    #[test]
    fn ancestry() {
        let scene = Scene::new();
        let file = scene.outside().join("file");
        let outcome =
            Gate::new(&scene).trigger(["fork-then", "open-write", file.to_str().expect("UTF-8")]);
        outcome.assert_fail();
        let violation = &outcome.violations()[0];
        assert!(
            violation["process"]["ancestry"].to_string().contains(&trigger()),
            "the parent is not named{}",
            outcome.story()
        );
    }

    #[test]
    fn process_is_pid_and_start() {
        let scene = Scene::new();
        let outcome = Gate::new(&scene).trigger(["fork", "1"]);
        outcome.assert_pass();
        for event in outcome.events.iter().filter(|event| record::kind(event) == "exec/exec") {
            assert!(event["process"]["pid"].as_u64().is_some(), "{event}");
            assert!(!event["process"]["start"].is_null(), "{event}");
        }
    }
}

/// A program with a 32-bit entry, whose arguments the tracepoint backend cannot
/// read.
#[test]
fn compatible_system_call() {
    let bare = std::process::Command::new(gate::trigger())
        .arg("compat-getpid")
        .status()
        .expect("the trigger can be started");
    if !bare.success() {
        println!("not tested: this kernel has no entry for 32-bit programs ({bare})");
        return;
    }
    let scene = Scene::new();
    let outcome = Gate::new(&scene).trigger(["compat-getpid"]);
    if gate::on_tracepoints() {
        outcome.assert_indeterminate();
    } else {
        outcome.assert_pass();
    }
}

/// Names are bytes. A backslash is doubled, what is not UTF-8 is `\xNN`.
#[test]
fn name_that_is_not_utf8() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    let scene = Scene::new();
    let mut name = scene.outside().into_os_string().into_vec();
    name.extend(b"/caf\xe9 \\ \xff\xc3\xa9");
    let outcome = Gate::new(&scene)
        .trigger([std::ffi::OsStr::new("create"), std::ffi::OsStr::from_bytes(&name)]);
    outcome.assert_fail();
    let want = record::escape(&name);
    assert!(
        outcome.violations().iter().any(|violation| record::path(violation) == want),
        "no violation about {want}{}",
        outcome.story()
    );
}

/// Deeper than the walk towards the root goes: what cannot be known is not
/// passed.
#[test]
fn deeper_than_the_walk() {
    let scene = Scene::new();
    let depth = effectgate_common::wire::WALK_MAX + 10;
    make_deep(&scene.root(), depth);
    let root = scene.root();
    let outcome = Gate::new(&scene).trigger([
        "deep-create",
        root.to_str().expect("UTF-8"),
        "d",
        &depth.to_string(),
    ]);
    assert!([120, 121].contains(&outcome.code()), "the unknown passed{}", outcome.story());
}

/// As deep as the walk still goes.
#[test]
fn as_deep_as_the_walk() {
    let scene = Scene::new();
    let depth = effectgate_common::wire::WALK_MAX / 2;
    make_deep(&scene.root(), depth);
    let root = scene.root();
    let outcome = Gate::new(&scene).trigger([
        "deep-create",
        root.to_str().expect("UTF-8"),
        "d",
        &depth.to_string(),
    ]);
    outcome.assert_pass();
}

fn make_deep(base: &Path, depth: usize) {
    let path: PathBuf = std::iter::repeat_n("d", depth).collect();
    std::fs::create_dir_all(base.join(path)).expect("mkdir");
}

/// What the tests of a case do.
mod check {
    use super::*;

    pub(super) fn inside(case: &Case) {
        if too_new(case) {
            return;
        }
        let stage = Stage::new(case.inside);
        let words = stage.fill(case.inside, Side::Inside);
        let outcome = Gate::new(&stage.scene).trigger(words.split_whitespace());
        if gate::on_tracepoints() && case.tracepoint != Sight::Sees {
            outcome.assert_indeterminate();
        } else {
            outcome.assert_pass();
        }
        if gate::on_tracepoints() && case.tracepoint == Blind {
            return;
        }
        let expected = stage.expected(&case.effect, Side::Inside);
        let found = outcome.events.iter().find(|event| expected.is(event));
        let event = found.unwrap_or_else(|| panic!("no record of {expected:?}{}", outcome.story()));
        assert_eq!(event["within"], true, "{event}{}", outcome.story());
    }

    pub(super) fn outside(case: &Case) {
        if too_new(case) {
            return;
        }
        let stage = Stage::new(case.outside);
        let words = stage.fill(case.outside, Side::Outside);
        let outcome = Gate::new(&stage.scene).trigger(words.split_whitespace());
        if gate::on_tracepoints() && case.tracepoint == Blind {
            outcome.assert_indeterminate();
            return;
        }
        outcome.assert_fail();
        let expected = stage.expected(&case.effect, Side::Outside);
        let found = outcome.violations().iter().find(|violation| expected.is(violation));
        let violation =
            found.unwrap_or_else(|| panic!("no violation about {expected:?}{}", outcome.story()));
        let trigger = gate::trigger();
        assert_eq!(record::exe(violation), trigger.to_str().expect("UTF-8"), "{}", outcome.story());
        assert_eq!(violation["within"], false, "{violation}");
        for violation in outcome.violations() {
            assert!(
                expected.is_about(violation, &stage),
                "a violation about something else: {violation}{}",
                outcome.story()
            );
        }
    }

    fn too_new(case: &Case) -> bool {
        let new = gate::kernel() < case.since;
        if new {
            println!("not tested: came with Linux {}.{}", case.since.0, case.since.1);
        }
        new
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Inside,
    Outside,
}

/// A scene with sockets outside the job, half of them listed.
struct Stage {
    scene: Scene,
    tcp: [TcpListener; 4],
    udp: [UdpSocket; 4],
    /// Beside the job's, for the cases that need one.
    cgroup: Option<Cgroup>,
}

const LOOPBACK: [&str; 4] = ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0", "[::1]:0"];

impl Stage {
    fn new(words: &str) -> Stage {
        let scene = Scene::new();
        let tcp = LOOPBACK.map(|address| TcpListener::bind(address).expect("loopback is up"));
        let udp = LOOPBACK.map(|address| UdpSocket::bind(address).expect("loopback is up"));
        let cgroup = words.contains("{cgroup}").then(Cgroup::new);
        let stage = Stage { scene, tcp, udp, cgroup };
        let listed =
            ["{tcp4}", "{tcp6}", "{udp4}", "{udp6}"].map(|word| stage.fill(word, Side::Inside));
        stage.scene.allow_hosts(&listed);
        stage
    }

    /// Puts paths and addresses in the place of words in braces.
    fn fill(&self, template: &str, side: Side) -> String {
        let text = |path: PathBuf| path.to_str().expect("test paths are UTF-8").to_owned();
        let index = usize::from(side == Side::Outside);
        let tcp = |index: usize| self.tcp[index].local_addr().expect("bound").to_string();
        let udp = |index: usize| self.udp[index].local_addr().expect("bound").to_string();
        let (root, outside) = (text(self.scene.root()), text(self.scene.outside()));
        let place = if side == Side::Inside { &root } else { &outside };
        let key = if side == Side::Inside { "RUN_ID" } else { "DEPLOY_TOKEN" };
        let cgroup =
            self.cgroup.as_ref().map(|cgroup| text(cgroup.path().to_owned())).unwrap_or_default();
        template
            .replace("{place}", place)
            .replace("{root}", &root)
            .replace("{outside}", &outside)
            .replace("{key}", key)
            .replace("{tcp4}", &tcp(index))
            .replace("{tcp6}", &tcp(2 + index))
            .replace("{udp4}", &udp(index))
            .replace("{udp6}", &udp(2 + index))
            .replace("{listed-udp4}", &udp(0))
            .replace("{cgroup}", &cgroup)
            .replace("{trigger}", &text(gate::trigger()))
    }

    fn expected(&self, effect: &Effect, side: Side) -> Expected {
        let fill = |template: &str| self.fill(template, side);
        match effect {
            File(action, path) => {
                Expected { kind: format!("file/{action}"), object: fill(path), other: None }
            }
            Two(action, path, other) => Expected {
                kind: format!("file/{action}"),
                object: fill(path),
                other: Some(fill(other)),
            },
            Net(action, endpoint) => {
                Expected { kind: format!("net/{action}"), object: fill(endpoint), other: None }
            }
            Env(key) => Expected { kind: "env/".to_owned(), object: fill(key), other: None },
            Escape => {
                Expected { kind: "guard/".to_owned(), object: "escape".to_owned(), other: None }
            }
            Effect::None => {
                Expected { kind: "exec/exit".to_owned(), object: String::new(), other: None }
            }
        }
    }
}

#[derive(Debug)]
struct Expected {
    /// Class and the beginning of the action.
    kind: String,
    object: String,
    other: Option<String>,
}

impl Expected {
    /// Whether this is the record of the effect.
    fn is(&self, event: &Value) -> bool {
        if !record::kind(event).starts_with(&self.kind) {
            return false;
        }
        let object = match record::text(&event["class"]) {
            "file" => self.object.is_empty() || record::path(event) == self.object,
            "net" => record::endpoint(event).starts_with(&self.object),
            _ => event.to_string().contains(&self.object),
        };
        object && self.other.as_ref().is_none_or(|other| record::other(event) == other)
    }

    /// Whether a violation belongs to the effect: one call may be several, such
    /// as a creation and the opening of what was created.
    fn is_about(&self, violation: &Value, stage: &Stage) -> bool {
        let outside = stage.scene.outside();
        match record::text(&violation["class"]) {
            "file" => {
                let below = |path: &str| Path::new(path).starts_with(&outside);
                let cgroup = stage.cgroup.as_ref().is_some_and(|cgroup| {
                    Path::new(record::path(violation)).starts_with(cgroup.path())
                });
                below(record::path(violation)) || below(record::other(violation)) || cgroup
            }
            _ => self.is(violation),
        }
    }
}

fn case(name: &str) -> &'static Case {
    &CASES.iter().find(|(own, _)| *own == name).expect("declared").1
}

/// Without anybody watching, every effect happens: a case cannot hold because
/// its effect failed.
#[test]
fn every_effect_happens_unwatched() {
    let mut failed = Vec::new();
    for (name, case) in CASES {
        for (template, side) in [(case.inside, Side::Inside), (case.outside, Side::Outside)] {
            if gate::kernel() < case.since {
                continue;
            }
            let stage = Stage::new(template);
            let words = stage.fill(template, side);
            let output = std::process::Command::new(gate::trigger())
                .args(words.split_whitespace())
                .output()
                .expect("the trigger can be started");
            if !output.status.success() || !output.stdout.is_empty() || !output.stderr.is_empty() {
                failed.push(format!("{name}: {words}: {output:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A hook without a case is a hook that nobody tried.
#[test]
fn every_hook_has_a_case() {
    let named = || CASES.iter().flat_map(|(_, case)| case.hooks);
    for hook in HOOKS {
        assert!(named().any(|name| *name == hook.program), "{} has no case", hook.program);
    }
    for name in named() {
        assert!(HOOKS.iter().any(|hook| hook.program == *name), "{name} is not a hook");
    }
}
