//! The machine and its settings: its programs and modules, clock, log, quotas,
//! names; and, only recorded, keys and identities.

use effectgate_common::wire::reach;

use super::{Call, Reach, by_job, call, nr, root_of};
use crate::{
    hook::{Hook, hooks},
    kernel::{
        OFF_CRED_GID, OFF_CRED_UID, OFF_FILE_PATH_DENTRY, OFF_FILE_PATH_MNT, OFF_NSPROXY_UTS,
        OFF_TASK_NSPROXY, OFF_UTS_NUMBER, Ptr, peek, peek_ptr,
    },
    object::Path,
    scope,
};

hooks! {
    "bpf" "security_bpf" bpf fexit_bpf given _ => bpf_used;
    "perf_event_open" "security_perf_event_open" perf_event_open fexit_perf_event_open given _ => perf_used;
    "kernel_read_file" "security_kernel_read_file" kernel_read_file fexit_kernel_read_file given 3 => file_loaded;
    "kernel_load_data" "security_kernel_load_data" kernel_load_data fexit_kernel_load_data given 2 => data_loaded;
    "settime" "security_settime64" settime fexit_settime given 2 => time_set;
    "syslog" "security_syslog" syslog fexit_syslog given 1 => log_used;
    "quotactl" "security_quotactl" quotactl fexit_quotactl given 4 => quotas_used;
    "key_permission" "security_key_permission" key_permission fexit_key_permission given 3 => key_used;
    "key_alloc" "security_key_alloc" key_alloc fexit_key_alloc given 3 => key_made;
    "userns_create" "security_create_user_ns" userns_create fexit_userns_create given 1 => namespace_made;
    "task_fix_setuid" "security_task_fix_setuid" task_fix_setuid fexit_task_fix_setuid given 3 => user_changed;
    "task_fix_setgid" "security_task_fix_setgid" task_fix_setgid fexit_task_fix_setgid given 3 => group_changed;
}

/// `bpf(cmd, attr, size)`, from 6.15 on also whether the kernel itself asks.
#[inline(always)]
fn bpf_used<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::BPF, ctx.arg(0)))
}

/// `perf_event_open(attr, type)`, from 6.16 on `(type)`.
#[inline(always)]
fn perf_used<H: Hook>(_: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::PERF, 0))
}

/// `kernel_read_file(file, id, contents)`
#[inline(always)]
fn file_loaded<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| {
        let file: Ptr = ctx.arg(0);
        let path = Path {
            mnt: peek_ptr(file, &OFF_FILE_PATH_MNT),
            dentry: peek_ptr(file, &OFF_FILE_PATH_DENTRY),
        };
        Reach { detail: ctx.arg(1), ..Reach::at(reach::LOAD, path) }
    })
}

/// `kernel_load_data(id, contents)`
#[inline(always)]
fn data_loaded<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::LOAD, ctx.arg(0)))
}

/// `PROC_UTS_INIT_INO` (`include/linux/proc_ns.h`).
const FIRST_UTS: u32 = 0xefff_fffe;

/// Whether the task's host name is the machine's, not that of a namespace.
#[inline(always)]
pub fn names_the_machine() -> bool {
    let namespaces = peek_ptr(scope::task(), &OFF_TASK_NSPROXY);
    peek::<u32>(peek_ptr(namespaces, &OFF_NSPROXY_UTS), &OFF_UTS_NUMBER) == FIRST_UTS
}

/// `settime(ts, tz)`
#[inline(always)]
fn time_set<H: Hook>(_: &H) -> i32 {
    by_job::<H>(|| Reach::out(reach::MACHINE, call().number))
}

/// `SYSLOG_ACTION_…` (`include/linux/syslog.h`) that change something: reading
/// what is then gone, clearing, and what goes to the console.
const LOG_CHANGES: u32 = 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;

#[inline(always)]
pub fn changes_log(action: u32) -> bool {
    action < 32 && LOG_CHANGES >> action & 1 != 0
}

/// `syslog(type)`
#[inline(always)]
fn log_used<H: Hook>(ctx: &H) -> i32 {
    if !changes_log(ctx.arg(0)) {
        return 0;
    }
    by_job::<H>(|| Reach::out(reach::MACHINE, call().number))
}

/// Commands of `quotactl` that only ask: `Q_GETFMT`, `Q_GETINFO`, `Q_GETQUOTA`,
/// `Q_GETNEXTQUOTA` (`include/uapi/linux/quota.h`, less `0x800000`) and those of
/// XFS (`include/uapi/linux/dqblk_xfs.h`, less `'X' << 8`).
const QUOTAS_ASKED: u32 = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 9;
const XFS_QUOTAS_ASKED: u32 = 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9;

#[inline(always)]
pub fn changes_quotas(command: u32) -> bool {
    let asked = match command & !0x1f {
        0x80_0000 => QUOTAS_ASKED,
        0x5800 => XFS_QUOTAS_ASKED,
        _ => 0,
    };
    asked >> (command & 0x1f) & 1 == 0
}

/// `quotactl(cmds, type, id, sb)`
#[inline(always)]
fn quotas_used<H: Hook>(ctx: &H) -> i32 {
    if !changes_quotas(ctx.arg(0)) {
        return 0;
    }
    by_job::<H>(|| Reach { path: root_of(ctx.arg(3)), ..Reach::out(reach::MACHINE, call().number) })
}

/// `key_permission(key_ref, cred, need_perm)`
#[inline(always)]
fn key_used<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::KEY, ctx.arg(2)))
}

/// `key_alloc(key, cred, flags)`. Where a key is asked for and not found, the
/// kernel makes an empty one, and has a program of its own fill it
/// (security/keys/request_key.c): as root, with what the job said.
#[inline(always)]
fn key_made<H: Hook>(_: &H) -> i32 {
    match call() {
        Call { number, compat }
            if number == if compat { nr::compat::REQUEST_KEY } else { nr::REQUEST_KEY } =>
        {
            by_job::<H>(|| Reach::out(reach::MACHINE, number))
        }
        _ => 0,
    }
}

/// `userns_create(cred)`
#[inline(always)]
fn namespace_made<H: Hook>(_: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::USER_NAMESPACE, 0))
}

/// `task_fix_setuid(new, old, flags)`
#[inline(always)]
fn user_changed<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::IDENTITY, peek(ctx.arg(0), &OFF_CRED_UID)))
}

/// `task_fix_setgid(new, old, flags)`
#[inline(always)]
fn group_changed<H: Hook>(ctx: &H) -> i32 {
    by_job::<H>(|| Reach::recorded(reach::IDENTITY, peek(ctx.arg(0), &OFF_CRED_GID)))
}
