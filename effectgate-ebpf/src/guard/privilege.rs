//! Privileges that change the machine, where the system call says for what.

use effectgate_common::wire::reach;

use super::{Call, Reach, call, names_the_machine, nr, reached};
use crate::{
    hook::{Hook, hooks},
    kernel::{OFF_USERNS_LEVEL, peek},
    scope,
};

hooks! {
    "capable" "security_capable" capable fexit_capable given 4 => capable_of;
}

/// Privileges (`include/uapi/linux/capability.h`) that are good for nothing but
/// to change the whole machine: `CAP_NET_ADMIN` 12, `CAP_SYS_MODULE` 16,
/// `CAP_SYS_RAWIO` 17, `CAP_SYS_PACCT` 20, `CAP_SYS_BOOT` 22, `CAP_SYS_TIME` 25,
/// `CAP_SYS_TTY_CONFIG` 26, `CAP_AUDIT_CONTROL` 30, `CAP_MAC_ADMIN` 33. Owners, modes and devices are
/// seen where a file gets them; tracing, BPF and mounts have hooks of their own.
const NAMED: u64 =
    1 << 12 | 1 << 16 | 1 << 17 | 1 << 20 | 1 << 22 | 1 << 25 | 1 << 26 | 1 << 30 | 1 << 33;
/// Good for so much that the system call has to say for what.
const SYS_ADMIN: u32 = 21;
/// Where `ptrace_access_check` said no to who only looks, the kernel asks for this
/// from 7.x on, and then for `CAP_SYS_ADMIN` (`may_access_mm`, kernel/fork.c).
const PERFMON: u32 = 38;
/// `CAP_OPT_NOAUDIT` (`include/linux/security.h`): nothing fails if the answer
/// is no, such as how much may be shown.
const NOAUDIT: u32 = 2;

/// `capable(cred, ns, cap, opts)`
#[inline(always)]
fn capable_of<H: Hook>(ctx: &H) -> i32 {
    let capability: u32 = ctx.arg(2);
    let options: u32 = ctx.arg(3);
    let asked = (NAMED | 1 << SYS_ADMIN | 1 << PERFMON) >> (capability & 63) & 1 != 0;
    if !asked || options & NOAUDIT != 0 {
        return 0;
    }
    let Some(job) = scope::current_job() else { return 0 };
    let what = match capability {
        // A file system that is made may be of others' directories, in which it
        // makes its own: overlayfs does, long before it is mounted.
        SYS_ADMIN if call().number == nr::FSCONFIG => reach::MOUNT,
        // Over a user namespace of its own a job has every privilege.
        _ if peek::<u32>(ctx.arg(1), &OFF_USERNS_LEVEL) != 0 => 0,
        SYS_ADMIN | PERFMON => administered(),
        _ => reach::CAPABILITY,
    };
    match what {
        0 => 0,
        reach::CAPABILITY => reached(job, Reach::out(what, capability), H::DENIES),
        reach::MOUNT | reach::PTRACE => reached(job, Reach::out(what, 0), H::DENIES),
        _ => reached(job, Reach::out(what, call().number), H::DENIES),
    }
}

/// What of the machine or of others is changed by calls that ask for nothing but
/// `CAP_SYS_ADMIN` or `CAP_PERFMON`; 0 for nothing.
#[inline(always)]
fn administered() -> u32 {
    let Call { number, compat } = call();
    if number == nr::PROCESS_MADVISE {
        return reach::PTRACE;
    }
    if number == nr::MOUNT_SETATTR || number == nr::OPEN_TREE_ATTR {
        return reach::MOUNT;
    }
    let (name, swap) = if compat {
        (
            matches!(number, nr::compat::SETHOSTNAME | nr::compat::SETDOMAINNAME),
            matches!(number, nr::compat::SWAPON | nr::compat::SWAPOFF),
        )
    } else {
        (
            matches!(number, nr::SETHOSTNAME | nr::SETDOMAINNAME),
            matches!(number, nr::SWAPON | nr::SWAPOFF),
        )
    };
    // To take a page of memory away from everybody.
    let memory = number == if compat { nr::compat::MADVISE } else { nr::MADVISE };
    if swap || memory || name && names_the_machine() { reach::MACHINE } else { 0 }
}
