//! `trigger EFFECT ARG...` causes one effect and ends: 0 when it happened, the
//! error number when it did not, with a line on standard error. Nothing else is
//! printed, unless printing is the effect.

mod chance;
mod file;
mod measure;
mod net;
mod operation;
mod own;
mod place;
mod process;
mod reach;
mod ring;
mod storm;
mod sys;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;

use sys::Args;

fn main() {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.is_empty() {
        eprintln!("usage: trigger EFFECT ARG...");
        std::process::exit(libc::EINVAL);
    }
    let effect = args.remove(0);
    let shown: Vec<_> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Err(error) = cause(&effect.to_string_lossy(), &Args::new(args)) {
        eprintln!("trigger: {} {}: {error}", effect.to_string_lossy(), shown.join(" "));
        std::process::exit(error.raw_os_error().unwrap_or(libc::EINVAL));
    }
}

/// Causes the effect of this name.
pub(crate) fn cause(effect: &str, args: &Args) -> io::Result<()> {
    match effect {
        "true" => Ok(()),
        "sequence" => process::sequence(args),
        "chance" => chance::effects(args),

        "open-read" => file::open(args.c(0)?, libc::O_RDONLY),
        "open-write" => file::open(args.c(0)?, libc::O_WRONLY),
        "open-rdwr" => file::open(args.c(0)?, libc::O_RDWR),
        "open-append" => file::open(args.c(0)?, libc::O_WRONLY | libc::O_APPEND),
        "open-truncate" => file::open(args.c(0)?, libc::O_WRONLY | libc::O_TRUNC),
        "open-read-truncate" => file::open(args.c(0)?, libc::O_RDONLY | libc::O_TRUNC),
        "open-legacy" => file::open_legacy(args.c(0)?, libc::O_WRONLY),
        "openat2" => file::openat2(args.c(0)?, libc::O_WRONLY),
        "openat2-read-truncate" => file::openat2(args.c(0)?, libc::O_RDONLY | libc::O_TRUNC),
        "open-path-reopen" => file::reopen_path(args.c(0)?),
        "open-relative" => file::open_relative(args.c(0)?, args.c(1)?),
        "thread-open" => file::open_in_thread(args.c(0)?),
        "dup-open" => file::open_fixed_descriptor(args.c(0)?),
        "create" => file::create(args.c(0)?),
        "creat" => file::creat(args.c(0)?),
        "tmpfile" => file::tmpfile(args.c(0)?, args.c(1)?),
        "memfd-reopen" => file::memfd_reopen(),
        "mkdir" => file::mkdir(args.c(0)?),
        "mkdirat" => file::mkdirat(args.c(0)?, args.c(1)?),
        "rmdir" => file::rmdir(args.c(0)?),
        "unlink" => file::unlink(args.c(0)?),
        "unlinkat" => file::unlinkat(args.c(0)?, args.c(1)?, 0),
        "unlinkat-directory" => file::unlinkat(args.c(0)?, args.c(1)?, libc::AT_REMOVEDIR),
        "rename" => file::rename(args.c(0)?, args.c(1)?),
        "renameat" => file::renameat(args.c(0)?, args.c(1)?, args.c(2)?),
        "rename-noreplace" => file::renameat2(args.c(0)?, args.c(1)?, libc::RENAME_NOREPLACE),
        "rename-exchange" => file::renameat2(args.c(0)?, args.c(1)?, libc::RENAME_EXCHANGE),
        "link" => file::link(args.c(0)?, args.c(1)?),
        "linkat" => file::linkat(args.c(0)?, args.c(1)?, args.c(2)?),
        "link-follow" => file::link_follow(args.c(0)?, args.c(1)?),
        "symlink" => file::symlink(args.c(0)?, args.c(1)?),
        "symlinkat" => file::symlinkat(args.c(0)?, args.c(1)?, args.c(2)?),
        "truncate" => file::truncate(args.c(0)?),
        "ftruncate" => file::ftruncate(args.c(0)?),
        "chmod" => file::chmod(args.c(0)?),
        "fchmod" => file::fchmod(args.c(0)?),
        "fchmodat" => file::fchmodat(args.c(0)?, args.c(1)?),
        "fchmodat2" => file::fchmodat2(args.c(0)?),
        "chmod-descriptor" => file::chmod_descriptor(args.c(0)?),
        "chown" => file::chown(args.c(0)?),
        "fchown" => file::fchown(args.c(0)?),
        "lchown" => file::lchown(args.c(0)?),
        "fchownat" => file::fchownat(args.c(0)?, args.c(1)?),
        "mknod-fifo" => file::mknod(args.c(0)?, libc::S_IFIFO),
        "mknod-file" => file::mknod(args.c(0)?, libc::S_IFREG),
        "mknod-character" => file::mknod_device(args.c(0)?, libc::S_IFCHR, args.text(1)?),
        "mknod-block" => file::mknod_device(args.c(0)?, libc::S_IFBLK, args.text(1)?),
        "mknodat-fifo" => file::mknodat(args.c(0)?, args.c(1)?, libc::S_IFIFO),
        "deep-create" => file::deep_create(args.c(0)?, args.c(1)?, args.number(2)?),
        "deep-flood" => file::deep_flood(args),
        "tmpdir-create" => file::tmpdir_create(args.text(0)?),
        "tmpdir-mount" => place::tmpdir_mount(args.c(0)?),

        "chdir" => place::chdir(args.c(0)?),
        "chroot" => place::chroot(args.c(0)?),
        "own-mounts" => place::own_mounts(),
        "unmount" => place::unmount(args.c(0)?),
        "bind-mount" => place::bind_mount(args.c(0)?, args.c(1)?),

        "io-uring-open" => ring::open(args.c(0)?, 0),
        "io-uring-open-by-worker" => ring::open(args.c(0)?, ring::BY_WORKER),
        "io-uring-unlink" => ring::unlink(args.c(0)?),
        "io-uring-mkdir" => ring::mkdir(args.c(0)?),
        "io-uring-rename" => ring::rename(args.c(0)?, args.c(1)?),
        "io-uring-connect" => ring::connect(args.address(0)?, 0),
        "io-uring-connect-by-worker" => ring::connect(args.address(0)?, ring::BY_WORKER),

        "connect" => net::connect(args.address(0)?),
        "connect-udp" => net::connect_udp(args.address(0)?),
        "bind-path" => net::bind_path(args.os(0)?),
        "bind" => net::bind(args.address(0)?),
        "sendto" => net::sendto(args.address(0)?),
        "sendmsg" => net::sendmsg(args.address(0)?),
        "sendmmsg" => net::sendmmsg(&args.addresses(0)?),
        "tcp-fastopen" => net::tcp_fastopen(args.address(0)?),
        "socket" => net::open(args.number(0)?, args.number(1)?, args.number(2)?),
        "listen" => net::listen(args.address(0)?),
        "own-connect" => net::own_connect(args.address(0)?, args.text(1)?),
        "source-route" => net::routed(args.address(0)?),
        "source-route-message" => net::routed_message(args.address(0)?),
        "own-unix" => own::unix(args.os(0)?),
        "own-answers" => own::answers(args.address(0)?, args.text(1)?),
        "own-closed" => own::closed(args.address(0)?),
        "shared-port" => own::shared_port(args.address(0)?),
        "self-connect" => net::self_connect(args.text(0)?),

        "exec" => process::exec(args, 0),
        "exec-without-env" => process::exec_without_env(args),
        "execveat" => process::execveat(args.c(0)?),
        "exec-from-thread" => process::exec_from_thread(args),
        "env-exec" => process::env_exec(args.text(0)?),
        "fork" => process::fork(args.number(0)?),
        "fork-then" => process::fork_then(args),
        "daemon" => process::daemon(),
        "stubborn" => process::stubborn(args.c(0)?),
        "thread-after-line" => process::thread_after_line(args),
        "after-line" => process::after_line(args),
        "ready-then" => process::ready_then(args),
        "join-cgroup" => process::join_cgroup(args.text(0)?),
        "clone-into-cgroup" => process::clone_into_cgroup(args.c(0)?),
        "compat-getpid" => process::compat_getpid(),
        "exit" => std::process::exit(args.number(0)?),
        "allow-core" => process::allow_core(),
        "kill-self" => process::kill_self(args.number(0)?),
        "close-output" => process::close_output(),

        "bpf" => reach::bpf(),
        "perf-event" => reach::perf_event(),
        "mount" => reach::mount(args.c(0)?),
        "remount" => reach::remount(args.c(0)?),
        "mount-setattr" => reach::mount_setattr(args.c(0)?),
        "make-file-system" => reach::make_file_system(),
        "move-mount" => reach::move_mount(args.c(0)?, args.c(1)?),
        "umount" => reach::umount(),
        "pivot-to" => reach::pivot_to(args.c(0)?),
        "pivot-root" => reach::pivot_root(args.c(0)?),
        "load-module-file" => reach::load_module_file(args.c(0)?),
        "load-module" => reach::load_module(),
        "trace" => reach::trace(args.number(0)?),
        "trace-me" => reach::trace_me(),
        "read-memory" => reach::read_memory(args.number(0)?),
        "take-descriptor" => reach::take_descriptor(args.number(0)?),
        "signal" => reach::signal(args.number(0)?, args.number(1)?),
        "pidfd-signal" => reach::pidfd_signal(args.number(0)?, args.number(1)?),
        "queue-signal" => reach::queue_signal(args.number(0)?, args.number(1)?),
        "own-signals" => reach::own_signals(args.number(0)?),
        "signal-children" => reach::signal_children(),
        "set-host-name" => reach::set_host_name(),
        "set-own-host-name" => reach::set_own_host_name(),
        "stop-accounting" => reach::stop_accounting(),
        "reboot-keys" => reach::reboot_keys(),
        "set-clock" => reach::set_clock(),
        "kernel-log" => reach::kernel_log(args.number(0)?),
        "set-quota" => reach::set_quota(args.c(0)?),
        "request-key" => reach::request_key(),
        "add-key" => reach::add_key(),
        "user-namespace" => reach::user_namespace(),
        "shared-memory" => reach::shared_memory(),
        "set-ids" => reach::set_ids(),
        "detach-links" => reach::detach_links(args.number(0)?),
        "as-another-first" => reach::as_another_first(args),
        "each-denied" => reach::each_denied(args),

        "fan" => storm::fan(args),
        "grow" => storm::grow(args),
        "hold-many" => storm::hold(args),
        "rename-storm" => storm::renames(args),
        "mount-storm" => storm::mounts(args),
        "attempts" => storm::attempts(args),
        "preempted-programs" => storm::programs(args),
        "measure" => measure::measure(args),
        "flood" => measure::flood(args),

        "print" => process::print(args.os(0)?.as_bytes()),
        "print-both" => process::print_both(args.os(0)?.as_bytes(), args.os(1)?.as_bytes()),
        "print-env" => process::print_env(args.text(0)?),
        "print-env-names" => process::print_env_names(),
        "print-cgroup" => process::print_cgroup(),
        "print-uid" => process::print_uid(),
        "print-descriptors" => process::print_descriptors(),
        "copy-input" => process::copy_input(),
        _ => operation::cause(effect, args),
    }
}
