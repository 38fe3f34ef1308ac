//! Network namespaces. What an address leads to depends on the one that a socket
//! is in: the job's own, or another program's.

use core::intrinsics::{AtomicOrdering, atomic_xadd};

use aya_ebpf::{
    macros::{fexit, map},
    maps::HashMap,
    programs::FExitContext,
};
use effectgate_common::{
    maps::{Network, network},
    wire::namespace,
};

use crate::{
    guard::{self, Call},
    judge,
    kernel::{
        OFF_NET_COOKIE, OFF_NET_NUMBER, OFF_NSPROXY_NET, OFF_SOCK_NET, OFF_TASK_NSPROXY, Ptr, peek,
        peek_ptr,
    },
    scope,
    verifier::veiled,
};

/// The jobs' own, and what is known of each job's.
#[map]
static NETWORKS: HashMap<Network, u32> = HashMap::with_max_entries(65536, 0);

// include/uapi/linux/sched.h, arch/x86/entry/syscalls/syscall_64.tbl and _32.tbl
pub const CLONE_NEWNET: u64 = 0x4000_0000;
const UNSHARE: u32 = 272;
const UNSHARE_COMPAT: u32 = 310;

/// `copy_net_ns(flags, user_ns, old_net)`, as the call made by `unshare` and by
/// `clone` returns: in the task that asks.
#[fexit(function = "copy_net_ns")]
pub fn network_made(ctx: FExitContext) -> i32 {
    let flags: u64 = ctx.arg(0);
    if flags & CLONE_NEWNET != 0
        && let Some(job) = scope::current_job()
    {
        // An error is no address, at which nothing can be read.
        own(job, ctx.arg(3));
    }
    0
}

/// A call returned without an error: it may have made a network namespace for the
/// task itself.
#[inline(always)]
pub fn returned(job: u64, call: &Call) {
    match (call.compat, call.number) {
        (false, UNSHARE) => unshared(job, &FIRST),
        (true, UNSHARE_COMPAT) => unshared(job, &FIRST_COMPAT),
        _ => {}
    }
}

/// Where the first argument of a call lies in `struct pt_regs`, in bytes: `di`, and
/// `bx` by the 32-bit entry.
static FIRST: u64 = 14 * 8;
static FIRST_COMPAT: u64 = 5 * 8;

#[inline(always)]
fn unshared(job: u64, first: &'static u64) {
    if peek::<u64>(guard::registers(), first) & CLONE_NEWNET != 0 {
        came_with(job, scope::task());
    }
}

/// The namespace that a task is in is its job's: it made it, or came with it.
#[inline(always)]
pub fn came_with(job: u64, task: Ptr) {
    own(job, peek_ptr(peek_ptr(task, &OFF_TASK_NSPROXY), &OFF_NSPROXY_NET));
}

/// A task of the job runs a program. Where the first one runs is the job's: until
/// then it was whoever starts it that entered namespaces.
#[inline(always)]
pub fn runs(job: u64, task: Ptr) {
    let Some(ran) = NETWORKS.get_ptr_mut(Network { job, what: network::RAN }) else { return };
    // SAFETY: one word, which only becomes 1.
    unsafe {
        if *ran == 0 {
            came_with(job, task);
            *ran = 1;
        }
    }
}

/// Whose namespace a socket is in: one of `wire::namespace`.
#[inline(always)]
pub fn of(job: u64, sk: Ptr) -> u32 {
    veiled(whose(job, peek_ptr(sk, &OFF_SOCK_NET))) as u32
}

/// Out of line: few programs have much stack left.
#[inline(never)]
fn whose(job: u64, net: Ptr) -> u64 {
    let cookie: u64 = peek(net, &OFF_NET_COOKIE);
    let number: u32 = peek(net, &OFF_NET_NUMBER);
    let has = |what| NETWORKS.get_ptr(Network { job, what }).is_some();
    let known = match () {
        // The canaries' effects are nobody's.
        () if !judge::judges(job) => namespace::OWN,
        () if cookie == 0 => namespace::UNKNOWN,
        () if has(cookie) || has(network::NUMBER | u64::from(number)) => namespace::OWN,
        () if all_known(job) => namespace::FOREIGN,
        () => namespace::UNKNOWN,
    };
    known.into()
}

/// Whether a job's own namespaces are all in the table.
#[inline(always)]
fn all_known(job: u64) -> bool {
    // SAFETY: one word.
    let count = unsafe { NETWORKS.get(Network { job, what: network::COUNT }) }.copied();
    count.is_some_and(|count| count <= network::MAX)
}

/// Out of line, for the stack's sake.
#[inline(never)]
fn own(job: u64, net: Ptr) {
    let Some(count) = NETWORKS.get_ptr_mut(Network { job, what: network::COUNT }) else { return };
    let key = Network { job, what: peek(net, &OFF_NET_COOKIE) };
    // SAFETY: one word, which is only changed at once.
    let full = unsafe { *count } >= network::MAX;
    if key.what == 0 || NETWORKS.get_ptr(key).is_some() {
        return;
    }
    let kept = !full && NETWORKS.insert(key, 1, 0).is_ok();
    // From now on what is not found is not known to be another's.
    let step = if kept { 1 } else { network::MAX + 1 };
    // SAFETY: the map's own word.
    unsafe { atomic_xadd::<u32, u32, { AtomicOrdering::Relaxed }>(count, step) };
}
