//! Packets that go elsewhere: a source route in their options sends them to
//! another address than the one that was judged, and who joins a group is named
//! to the whole network.

use aya_ebpf::helpers::{bpf_probe_read_kernel, bpf_probe_read_user};

use crate::{
    hook::{Hook, hooks},
    kernel::{OFF_MSG_CONTROL, OFF_MSG_CONTROL_LEN, OFF_SOCKET_SOCK, Ptr, peek, peek_ptr},
    repeat::{GO_ON, STOP, repeat},
    scope, socket,
};

// include/uapi/linux/in.h, in6.h
const IPPROTO_IP: u32 = 0;
const IP_OPTIONS: u32 = 4;
const IP_RETOPTS: u32 = 7;
const IPPROTO_IPV6: u32 = 41;
const IPV6_2292RTHDR: u32 = 5;
const IPV6_2292PKTOPTIONS: u32 = 6;
const IPV6_RTHDR: u32 = 57;
const IP_ADD_MEMBERSHIP: u32 = 35;
const IP_ADD_SOURCE_MEMBERSHIP: u32 = 39;
const IP_MSFILTER: u32 = 41;
const MCAST_JOIN_GROUP: u32 = 42;
const MCAST_JOIN_SOURCE_GROUP: u32 = 46;
const MCAST_MSFILTER: u32 = 48;
const IPV6_JOIN_GROUP: u32 = 20;
const IPV6_JOIN_ANYCAST: u32 = 27;

/// Control messages looked at in one message; a kernel knows some twenty.
const CONTROL_MAX: u32 = 32;
/// `sizeof(struct cmsghdr)`, bytes.
const CONTROL: u64 = 16;

hooks! {
    "socket_setsockopt" "security_socket_setsockopt" socket_setsockopt fexit_socket_setsockopt given 3 => set;
}

/// `socket_setsockopt(sock, level, optname)`
#[inline(always)]
fn set<H: Hook>(ctx: &H) -> i32 {
    let (level, option): (u32, u32) = (ctx.arg(1), ctx.arg(2));
    match scope::current_job() {
        Some(job) if leads_elsewhere(level, option) => {
            socket::unseen(job, peek_ptr(ctx.arg(0), &OFF_SOCKET_SOCK), H::DENIES)
        }
        _ => 0,
    }
}

/// Whether an option of a socket makes packets go to who is no peer of it.
#[inline(always)]
pub fn leads_elsewhere(level: u32, option: u32) -> bool {
    is_route(level, option) || joins(level, option)
}

/// Whether it is by this option that a socket joins groups: the kernel sends
/// reports, which tell of any address that is asked for.
#[inline(always)]
fn joins(level: u32, option: u32) -> bool {
    let by_any = matches!(option, MCAST_JOIN_GROUP | MCAST_JOIN_SOURCE_GROUP | MCAST_MSFILTER);
    level == IPPROTO_IP
        && (by_any || matches!(option, IP_ADD_MEMBERSHIP | IP_ADD_SOURCE_MEMBERSHIP | IP_MSFILTER))
        || level == IPPROTO_IPV6
            && (by_any || matches!(option, IPV6_JOIN_GROUP | IPV6_JOIN_ANYCAST))
}

/// Whether an option of a socket gives its packets a route.
#[inline(always)]
fn is_route(level: u32, option: u32) -> bool {
    level == IPPROTO_IP && option == IP_OPTIONS
        || level == IPPROTO_IPV6 && (option == IPV6_RTHDR || option == IPV6_2292PKTOPTIONS)
}

/// Whether a message (`struct msghdr`) brings a route of its own.
#[inline(always)]
pub fn has_route(message: Ptr) -> bool {
    let (at, len) = (peek(message, &OFF_MSG_CONTROL), peek(message, &OFF_MSG_CONTROL_LEN));
    len >= CONTROL && among(Controls { at, left: len, user: 0, found: 0 })
}

/// The same of control messages in the memory of the process.
#[inline(always)]
pub fn has_route_in_user(at: u64, len: u64) -> bool {
    len >= CONTROL && among(Controls { at, left: len, user: 1, found: 0 })
}

struct Controls {
    at: u64,
    left: u64,
    user: u64,
    found: u64,
}

#[inline(always)]
fn among(mut controls: Controls) -> bool {
    repeat(CONTROL_MAX, one, &mut controls);
    // What is left unseen is not known to be harmless.
    controls.found != 0 || controls.left >= CONTROL
}

extern "C" fn one(_: u64, controls: *mut Controls) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let controls = unsafe { &mut *controls };
    let at = controls.at as *const [u64; 2];
    // SAFETY: the helpers check the address.
    let read = unsafe {
        if controls.user != 0 { bpf_probe_read_user(at) } else { bpf_probe_read_kernel(at) }
    };
    let [len, what] = read.unwrap_or([0, 0]);
    let (level, kind) = (what as u32, (what >> 32) as u32);
    if level == IPPROTO_IP && kind == IP_RETOPTS
        || level == IPPROTO_IPV6 && (kind == IPV6_RTHDR || kind == IPV6_2292RTHDR)
    {
        controls.found = 1;
        return STOP;
    }
    let step = len.wrapping_add(7) & !7;
    if len < CONTROL || step >= controls.left {
        // The kernel stops there as well.
        controls.left = 0;
        return STOP;
    }
    controls.left -= step;
    controls.at = controls.at.wrapping_add(step);
    GO_ON
}
