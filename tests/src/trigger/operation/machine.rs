//! The machine: what belongs to no job, and what would blind the observer.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;

use crate::sys::{Args, NULL, Word, call, open, open_call};

pub(super) fn cause(effect: &str, args: &Args) -> Option<io::Result<()>> {
    Some(match effect {
        "bpf-map" => bpf(0, &[2 | 4 << 32, 8 | 1 << 32]).map(drop),
        "bpf-next-program" => bpf(11, &[0]).map(drop),
        "bpf-next-link" => bpf(31, &[0]).map(drop),
        "bpf-detach-links" => detach_links(),
        "bpf-clear-maps" => clear_maps(),
        "userfaultfd" => open_call!(libc::SYS_userfaultfd, libc::O_CLOEXEC).map(drop),
        "inotify" => args.c(0).and_then(|path| {
            let watch: OwnedFd = open_call!(libc::SYS_inotify_init1, 0)?;
            call!(libc::SYS_inotify_add_watch, watch.as_raw_fd(), path.as_ptr(), 2).map(drop)
        }),
        "fanotify" => args.c(0).and_then(|path| fanotify(path, 0, 0x20)),
        // Class for permission: who listens can hold others up for ever.
        "fanotify-permission" => args.c(0).and_then(|path| fanotify(path, 4, 0x1_0000)),
        "set-user" => args.number(0).and_then(|uid| call!(libc::SYS_setuid, uid).map(drop)),
        "set-group" => args.number(0).and_then(|gid| call!(libc::SYS_setgid, gid).map(drop)),
        "set-groups" => call!(libc::SYS_setgroups, 0, NULL).map(drop),
        "name-thread" => call!(libc::SYS_prctl, libc::PR_SET_NAME, c"other".as_ptr()).map(drop),
        "become-subreaper" => call!(libc::SYS_prctl, libc::PR_SET_CHILD_SUBREAPER, 1).map(drop),
        "personality" => call!(libc::SYS_personality, 0x004_0000).map(drop),
        "write-zero" => args.os(0).and_then(|path| std::fs::write(path, "0")),
        "write-setting" => args.os(0).and_then(same),
        "key-add" => key_add().map(drop),
        "key-clear" => call!(libc::SYS_keyctl, 7, -4).map(drop),
        "key-revoke" => key_add().and_then(|key| call!(libc::SYS_keyctl, 3, key).map(drop)),
        "init-module" => {
            looked_at(call!(libc::SYS_init_module, c"no module".as_ptr(), 9, c"".as_ptr()))
        }
        "init-module-file" => args.c(0).and_then(|path| {
            let file = open(path, libc::O_RDONLY)?;
            looked_at(call!(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0))
        }),
        "unload-module" => {
            looked_at(call!(libc::SYS_delete_module, c"effectgate_none".as_ptr(), libc::O_NONBLOCK))
        }
        "load-kernel" => args.c(0).and_then(|path| {
            let file = open(path, libc::O_RDONLY)?;
            looked_at(call!(libc::SYS_kexec_file_load, file.as_raw_fd(), -1, 1, c"".as_ptr(), 4))
        }),
        "swap-on" => args.c(0).and_then(|p| looked_at(call!(libc::SYS_swapon, p.as_ptr(), 0))),
        "account" => args.c(0).and_then(|path| call!(libc::SYS_acct, path.as_ptr()).map(drop)),
        "account-off" => call!(libc::SYS_acct, NULL).map(drop),
        "quota" => args.c(0).and_then(|at| {
            looked_at(call!(libc::SYS_quotactl, 0x8000_0100_u32, at.as_ptr(), 0, NULL))
        }),
        "host-name" => same_host_name(),
        "adjust-clock" => adjust_clock(),
        "forbid-reboot-key" => {
            call!(libc::SYS_reboot, 0xfee1_dead_u32, 672_274_793, 0, NULL).map(drop)
        }
        "io-ports" => io_ports(),
        "shared-memory-other" => args.number(0).and_then(|id| {
            let address = call!(libc::SYS_shmat, id, NULL, 0)? as usize;
            // SAFETY: the kernel just mapped this segment, which has a first byte.
            unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(b'h') };
            Ok(())
        }),
        "semaphores" => call!(libc::SYS_semget, 0, 1, 0o1600).map(drop),
        "message-queue-old" => call!(libc::SYS_msgget, 0, 0o1600).map(drop),
        "system-v" => system_v(),
        "semaphores-other" => args.number(0).and_then(|id| {
            // `struct sembuf`: the first one, one more.
            call!(libc::SYS_semop, id, [0_u16, 1, 0].as_ptr(), 1).map(drop)
        }),
        "message-other" => args.number(0).and_then(|id| {
            // `struct msgbuf`: a type, and a text.
            call!(libc::SYS_msgsnd, id, [1_u64, 0x6d72_6168].as_ptr(), 4, 0).map(drop)
        }),
        "message-queue" => args.c(0).and_then(|name| {
            let (flags, none) = (libc::O_CREAT | libc::O_RDWR, NULL);
            open_call!(libc::SYS_mq_open, name.as_ptr(), flags, 0o600, none).map(drop)
        }),
        "message-queue-remove" => {
            args.c(0).and_then(|name| call!(libc::SYS_mq_unlink, name.as_ptr()).map(drop))
        }
        "message-queue-send" => args.c(0).and_then(|name| {
            let queue: OwnedFd =
                open_call!(libc::SYS_mq_open, name.as_ptr(), libc::O_RDWR, 0, NULL)?;
            let fd = queue.as_raw_fd();
            call!(libc::SYS_mq_timedsend, fd, c"harm".as_ptr(), 4, 0, NULL).map(drop)
        }),
        "landlock" => {
            let rules = 1_u64;
            open_call!(libc::SYS_landlock_create_ruleset, &raw const rules, 8, 0).map(drop)
        }
        "seccomp" => seccomp(),
        "secret-memory" => open_call!(libc::SYS_memfd_secret, 0).map(drop),
        "terminal-input" => args.c(0).and_then(|path| {
            let terminal = open(path, libc::O_RDONLY | libc::O_NOCTTY)?;
            call!(libc::SYS_ioctl, terminal.as_raw_fd(), libc::TIOCSTI, c"h".as_ptr()).map(drop)
        }),
        "terminal-settings" => args.c(0).and_then(|path| {
            let terminal = open(path, libc::O_RDONLY | libc::O_NOCTTY)?;
            let size = [1_u16, 1, 0, 0];
            call!(libc::SYS_ioctl, terminal.as_raw_fd(), libc::TIOCSWINSZ, size.as_ptr()).map(drop)
        }),
        "chroot-plain" => args.c(0).and_then(|p| call!(libc::SYS_chroot, p.as_ptr()).map(drop)),
        "proc-write" => {
            args.text(0).and_then(|pid| super::other::write_proc(pid, args.text(1)?, args.text(2)?))
        }
        _ => return None,
    })
}

/// What the kernel answers to nonsense once it has looked at it is as good as a
/// success: nobody was in the way.
fn looked_at(result: io::Result<i64>) -> io::Result<()> {
    const ANSWERS: [i32; 6] = [
        libc::ENOEXEC,
        libc::EINVAL,
        libc::ENOENT,
        libc::EBADMSG,
        libc::EKEYREJECTED,
        libc::ENOTBLK,
    ];
    match result {
        Err(error) if error.raw_os_error().is_some_and(|number| ANSWERS.contains(&number)) => {
            Ok(())
        }
        other => other.map(drop),
    }
}

/// `union bpf_attr`: its first words. Enough for what is asked here.
fn bpf(command: i32, words: &[u64]) -> io::Result<i64> {
    let mut attributes = [0_u64; 18];
    attributes[..words.len()].copy_from_slice(words);
    call!(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(&attributes))
}

/// Every link that there is: `BPF_LINK_GET_NEXT_ID`, `BPF_LINK_GET_FD_BY_ID`,
/// `BPF_LINK_DETACH`. Fails when there are some, and none could be.
fn detach_links() -> io::Result<()> {
    let mut found = Ok(());
    for id in ids(31)? {
        let link = bpf(30, &[id])?;
        let detached = bpf(34, &[link as u64]);
        call!(libc::SYS_close, link)?;
        match detached {
            Ok(_) => return Ok(()),
            Err(error) => found = Err(error),
        }
    }
    found
}

/// The numbers of all that there are.
fn ids(next: i32) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    loop {
        let mut attributes = [0_u64; 18];
        attributes[0] = found.last().copied().unwrap_or(0);
        let size = size_of_val(&attributes);
        match call!(libc::SYS_bpf, next, attributes.as_mut_ptr(), size) {
            // `next_id` is the second word of four bytes.
            Ok(_) => found.push(attributes[0] >> 32),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(found),
            Err(error) => return Err(error),
        }
    }
}

/// Takes every key out of every hash map that there is.
fn clear_maps() -> io::Result<()> {
    for id in ids(12)? {
        let map = bpf(14, &[id])?;
        let mut key = [0_u8; 256];
        // `BPF_MAP_GET_NEXT_KEY`, `BPF_MAP_DELETE_ELEM`: no key asks for the first.
        while bpf(4, &[map as u64, 0, key.as_mut_ptr().word() as u64]).is_ok() {
            if bpf(3, &[map as u64, key.as_ptr().word() as u64]).is_err() {
                break;
            }
        }
        call!(libc::SYS_close, map)?;
    }
    Ok(())
}

fn fanotify(path: &CStr, class: i32, mask: u64) -> io::Result<()> {
    let group: OwnedFd = open_call!(libc::SYS_fanotify_init, class, libc::O_RDONLY)?;
    let (fd, cwd) = (group.as_raw_fd(), libc::AT_FDCWD);
    call!(libc::SYS_fanotify_mark, fd, 1, mask, cwd, path.as_ptr()).map(drop)
}

/// Writes what is there.
fn same(path: &std::ffi::OsStr) -> io::Result<()> {
    let text = std::fs::read(path).unwrap_or_default();
    std::fs::write(path, text)
}

fn key_add() -> io::Result<i64> {
    let (kind, name) = (c"user".as_ptr(), c"effectgate".as_ptr());
    call!(libc::SYS_add_key, kind, name, c"x".as_ptr(), 1, -3)
}

fn same_host_name() -> io::Result<()> {
    // `struct new_utsname`: six names of 65 bytes, the host's the second.
    let mut names = [0_u8; 6 * 65];
    call!(libc::SYS_uname, names.as_mut_ptr())?;
    let name = &names[65..];
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    call!(libc::SYS_sethostname, name.as_ptr(), len).map(drop)
}

fn adjust_clock() -> io::Result<()> {
    // `struct timex`: read it all, write the tick as it is.
    let mut timex = [0_u64; 26];
    call!(libc::SYS_adjtimex, timex.as_mut_ptr())?;
    timex[0] = 0x4000;
    call!(libc::SYS_adjtimex, timex.as_mut_ptr()).map(drop)
}

#[cfg(target_arch = "x86_64")]
fn io_ports() -> io::Result<()> {
    call!(libc::SYS_ioperm, 0x80, 1, 1).map(drop)
}

#[cfg(not(target_arch = "x86_64"))]
fn io_ports() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// Makes memory, semaphores and messages, uses them, and removes them.
fn system_v() -> io::Result<()> {
    let memory = call!(libc::SYS_shmget, 0, 4096, 0o600)?;
    call!(libc::SYS_shmat, memory, NULL, 0)?;
    call!(libc::SYS_shmctl, memory, libc::IPC_RMID, NULL)?;
    let semaphores = call!(libc::SYS_semget, 0, 1, 0o600)?;
    call!(libc::SYS_semop, semaphores, [0_u16, 1, 0].as_ptr(), 1)?;
    call!(libc::SYS_semctl, semaphores, 0, libc::IPC_RMID, NULL)?;
    let messages = call!(libc::SYS_msgget, 0, 0o600)?;
    call!(libc::SYS_msgsnd, messages, [1_u64, 0].as_ptr(), 4, 0)?;
    call!(libc::SYS_msgctl, messages, libc::IPC_RMID, NULL).map(drop)
}

/// A filter that allows everything.
fn seccomp() -> io::Result<()> {
    let allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0x7fff_0000 };
    let filter = libc::sock_fprog { len: 1, filter: (&raw const allow).cast_mut() };
    call!(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)?;
    call!(libc::SYS_seccomp, 1, 0, &raw const filter).map(drop)
}

/// One page that may be written and run.
pub(super) fn anonymous_exec() -> io::Result<()> {
    // SAFETY: a new mapping, placed by the kernel, into which nothing jumps.
    let address = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        libc::mmap(null_mut(), 4096, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}
