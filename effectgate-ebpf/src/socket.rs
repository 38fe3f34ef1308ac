//! Sockets whose traffic passes no cgroup address hook.

use core::mem::size_of;

use effectgate_common::{
    maps::class,
    wire::{GuardBody, decision, kind, op},
};

use crate::{emit::Record, judge};

// include/linux/socket.h, include/linux/net.h, include/uapi/linux/in.h
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const AF_ALG: u32 = 38;
const SOCK_TYPE: u32 = 0xf;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const IPPROTO_IP: u32 = 0;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const IPPROTO_MPTCP: u32 = 262;

/// Reports a new socket unless the hooks see what it does, or it leads to no
/// network: what passes such a socket can be held against no list of hosts.
#[inline(always)]
pub fn made(job: u64, family: u32, kind_and_flags: u32, protocol: u32, denies: bool) -> i32 {
    let sock_type = kind_and_flags & SOCK_TYPE;
    let seen = match family {
        AF_UNIX | AF_NETLINK | AF_ALG => true,
        AF_INET | AF_INET6 => {
            matches!(sock_type, SOCK_STREAM | SOCK_DGRAM)
                && matches!(protocol, IPPROTO_IP | IPPROTO_TCP | IPPROTO_UDP | IPPROTO_MPTCP)
        }
        _ => false,
    };
    if seen {
        return 0;
    }
    let finding = if judge::judges(job) { decision::OUTSIDE } else { decision::NONE };
    let decision = judge::settle(job, finding, denies);
    let body = size_of::<GuardBody>();
    let sent = match Record::begin(job, class::GUARD, kind::GUARD, op::SOCKET, body) {
        None => false,
        Some(record) => {
            let detail = family << 16 | sock_type;
            record.put(0, GuardBody { value: protocol, detail, ..GuardBody::default() });
            record.submit(decision)
        }
    };
    judge::answer(job, decision, sent, denies)
}
