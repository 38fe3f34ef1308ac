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
mod always;
mod case;
mod denied;
mod differential;
mod games;
mod given;
mod identity;
mod left;
mod linked;
mod listeners;
mod manifests;
mod names;
mod namespaces;
mod reached;
mod recorded;
mod skipped;
mod smoke;
mod sockets;
mod stage;
mod unix;
mod watcher;

use effectgate_common::hooks::HOOKS;
use effectgate_tests::gate;

use case::Effect::{Env, Escape, File, Net, Two};
use case::Sight::{Blind, Incomplete, Unseen};
use case::{CASE, Case, Effect};
use stage::{Side, Stage};

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
                super::case::$side(super::case(stringify!($name)));
            })+
        })+
    };
}

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
    empty_a_file_opened_for_reading [inside outside] "open-read-truncate {place}/file" {
        hooks: &["file_open", "file_truncate", "syscall_exit"], effect: File("open_write", "{place}/file") }
    empty_a_file_opened_for_reading_by_openat2 [inside outside] "openat2-read-truncate {place}/file" {
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
        hooks: &["file_open", "inode_link", "path_link", "syscall_exit"], effect: Two("link", "", "{place}/new") }
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
    socket_bound_to_a_path [inside outside] "bind-path {place}/new" {
        hooks: &["inode_mknod", "path_mknod", "syscall_exit"], effect: File("create", "{place}/new") }
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

    // Said of it.
    utimes [inside outside] "utimes {place}/file" {
        hooks: &["inode_setattr", "syscall_exit"], effect: File("utimes", "{place}/file") }
    futimens [inside outside] "futimens {place}/file" {
        hooks: &["inode_setattr", "syscall_exit"], effect: File("utimes", "{place}/file") }
    lutimes [inside outside] "lutimes {place}/file" {
        hooks: &["inode_setattr", "syscall_exit"], effect: File("utimes", "{place}/file") }
    setxattr [inside outside] "set-capability {place}/file" {
        hooks: &["inode_setxattr", "syscall_exit"], effect: File("setxattr", "{place}/file") }
    removexattr [inside outside] "remove-capability {place}/file" {
        hooks: &["inode_removexattr", "syscall_exit"], effect: File("setxattr", "{place}/file") }
    set_acl [inside outside] "set-acl {place}/file" {
        hooks: &["inode_set_acl", "syscall_exit"], effect: File("setxattr", "{place}/file") }
    remove_acl [inside outside] "remove-acl {place}/file" {
        hooks: &["inode_remove_acl", "syscall_exit"], effect: File("setxattr", "{place}/file") }
    ioctl_that_sets_flags [inside outside] "ioctl-setflags {place}/file" {
        hooks: &["file_ioctl", "syscall_exit"], effect: File("ioctl", "{place}/file") }
    ioctl_that_sets_more_flags [inside outside] "ioctl-fssetxattr {place}/file" {
        hooks: &["file_ioctl", "syscall_exit"], effect: File("ioctl", "{place}/file") }
    ioctl_by_the_entry_for_32_bits [inside outside] "compat-ioctl-setflags {place}/file" {
        since: (6, 8), tracepoint: Blind,
        hooks: &["file_ioctl_compat"], effect: File("ioctl", "{place}/file") }
    file_setattr [inside outside] "file-setattr {place}/file" { since: (6, 17),
        hooks: &["inode_file_setattr", "syscall_exit"], effect: File("ioctl", "{place}/file") }

    // Through a descriptor.
    write [outside] "sequence hold {place}/file 9 , write-fd 9" {
        hooks: &["file_permission", "syscall_content"], effect: File("write", "{place}/file") }
    write_by_an_io_uring [outside] "sequence hold {place}/file 9 , io-uring-write-fd 9" {
        tracepoint: Unseen,
        hooks: &["file_permission"], effect: File("write", "{place}/file") }
    fallocate [outside] "sequence hold {place}/file 9 , punch-fd 9" {
        hooks: &["file_permission", "syscall_content"], effect: File("write", "{place}/file") }
    copy_file_range [outside] "sequence hold {place}/file 9 , copy-file-range-fd 9 {root}/other" {
        hooks: &["file_permission", "syscall_content"], effect: File("write", "{place}/file") }
    mapped_to_be_written [outside] "sequence hold {place}/file 9 , mmap-store-fd 9" {
        hooks: &["mmap_file", "syscall_content"], effect: File("write", "{place}/file") }
    made_writable_when_mapped [outside] "sequence hold {place}/file 9 , mmap-store-later-fd 9" {
        hooks: &["file_mprotect", "syscall_content"], effect: File("write", "{place}/file") }

    // Through an io_uring.
    io_uring_open [inside outside] "io-uring-open {place}/file" { tracepoint: Blind,
        hooks: &["file_open"], effect: File("open_write", "{place}/file") }
    io_uring_open_by_a_worker [inside outside] "io-uring-open-by-worker {place}/file" { tracepoint: Blind,
        hooks: &["task_fork", "file_open"], effect: File("open_write", "{place}/file") }
    io_uring_unlink [inside outside] "io-uring-unlink {place}/file" { tracepoint: Blind,
        hooks: &["task_fork", "inode_unlink", "path_unlink"], effect: File("unlink", "{place}/file") }
    io_uring_mkdir [inside outside] "io-uring-mkdir {place}/new" { tracepoint: Blind,
        hooks: &["task_fork", "inode_mkdir", "path_mkdir"], effect: File("mkdir", "{place}/new") }
    io_uring_rename [inside outside] "io-uring-rename {place}/file {place}/new" { tracepoint: Blind,
        hooks: &["task_fork", "inode_rename", "path_rename"], effect: Two("rename", "{place}/file", "{place}/new") }
    io_uring_connect [inside outside] "io-uring-connect {tcp4}" { tracepoint: Incomplete,
        hooks: &["connect4"], effect: Net("connect", "{tcp4}") }
    io_uring_connect_by_a_worker [inside outside] "io-uring-connect-by-worker {tcp4}" { tracepoint: Incomplete,
        hooks: &["task_fork", "connect4"], effect: Net("connect", "{tcp4}") }

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
    bind4 [inside outside] "" {
        inside: "bind 127.0.0.1:0", outside: "bind 0.0.0.0:0",
        hooks: &["bind4"], effect: Net("bind", "{bind4}") }
    bind6 [inside outside] "" {
        inside: "bind [::1]:0", outside: "bind [::]:0",
        hooks: &["bind6"], effect: Net("bind", "{bind6}") }
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
        hooks: &["task_exit"], effect: Effect::Exit }
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
    let named = || {
        let cases = CASES.iter().flat_map(|(_, case)| case.hooks);
        let rooms = [
            sockets::HOOKS,
            reached::HOOKS,
            unix::HOOKS,
            denied::HOOKS,
            given::HOOKS,
            manifests::HOOKS,
            listeners::HOOKS,
            namespaces::HOOKS,
            skipped::HOOKS,
        ];
        cases.chain(rooms.into_iter().flatten())
    };
    for hook in HOOKS {
        assert!(named().any(|name| *name == hook.program), "{} has no case", hook.program);
    }
    for name in named() {
        assert!(HOOKS.iter().any(|hook| hook.program == *name), "{name} is not a hook");
    }
}
