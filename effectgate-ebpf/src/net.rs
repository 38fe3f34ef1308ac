//! Sockets, through the cgroup hooks of the hierarchy's root: one set of
//! programs for all jobs, and a task that leaves its job's cgroup stays seen.

use core::mem::size_of;

use aya_ebpf::{
    macros::{cgroup_sock, cgroup_sock_addr},
    programs::{SockAddrContext, SockContext},
};
use effectgate_common::{
    maps::class,
    wire::{NetBody, decision, kind, op},
};

use crate::{
    emit::Record,
    judge::{self, Address},
    scope,
};

const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
/// What these hooks return to let the call go on.
const PROCEED: i32 = 1;
/// What they return to have it fail with `EPERM`.
const REFUSE: i32 = 0;

#[cgroup_sock_addr(connect4)]
pub fn connect4(ctx: SockAddrContext) -> i32 {
    address4(&ctx, op::CONNECT)
}

#[cgroup_sock_addr(connect6)]
pub fn connect6(ctx: SockAddrContext) -> i32 {
    address6(&ctx, op::CONNECT)
}

#[cgroup_sock_addr(sendmsg4)]
pub fn sendmsg4(ctx: SockAddrContext) -> i32 {
    address4(&ctx, op::SEND)
}

#[cgroup_sock_addr(sendmsg6)]
pub fn sendmsg6(ctx: SockAddrContext) -> i32 {
    address6(&ctx, op::SEND)
}

#[cgroup_sock(post_bind4)]
pub fn bind4(ctx: SockContext) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    // SAFETY: the context outlives the program; each field is a 4-byte read.
    let body = unsafe {
        let sk = ctx.sock;
        NetBody {
            addr: ipv4((*sk).src_ip4),
            family: AF_INET,
            protocol: (*sk).protocol,
            port: (*sk).src_port,
            sock_type: (*sk).type_,
            ..NetBody::default()
        }
    };
    send(job, op::BIND, body)
}

#[cgroup_sock(post_bind6)]
pub fn bind6(ctx: SockContext) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    // SAFETY: as above.
    let body = unsafe {
        let sk = ctx.sock;
        NetBody {
            addr: ipv6([(*sk).src_ip6[0], (*sk).src_ip6[1], (*sk).src_ip6[2], (*sk).src_ip6[3]]),
            family: AF_INET6,
            protocol: (*sk).protocol,
            port: (*sk).src_port,
            sock_type: (*sk).type_,
            ..NetBody::default()
        }
    };
    send(job, op::BIND, body)
}

#[inline(always)]
fn address4(ctx: &SockAddrContext, op: u16) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    // SAFETY: as above.
    let body = unsafe {
        let sa = ctx.sock_addr;
        NetBody {
            addr: ipv4((*sa).user_ip4),
            family: AF_INET,
            protocol: (*sa).protocol,
            port: u32::from(u16::from_be((*sa).user_port as u16)),
            sock_type: (*sa).type_,
            ..NetBody::default()
        }
    };
    send(job, op, body)
}

#[inline(always)]
fn address6(ctx: &SockAddrContext, op: u16) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    // SAFETY: as above.
    let body = unsafe {
        let sa = ctx.sock_addr;
        NetBody {
            addr: ipv6([
                (*sa).user_ip6[0],
                (*sa).user_ip6[1],
                (*sa).user_ip6[2],
                (*sa).user_ip6[3],
            ]),
            family: AF_INET6,
            protocol: (*sa).protocol,
            port: u32::from(u16::from_be((*sa).user_port as u16)),
            sock_type: (*sa).type_,
            ..NetBody::default()
        }
    };
    send(job, op, body)
}

/// The words are in network byte order already.
#[inline(always)]
fn ipv4(word: u32) -> [u8; 16] {
    ipv6([word, 0, 0, 0])
}

#[inline(always)]
fn ipv6(words: [u32; 4]) -> [u8; 16] {
    // SAFETY: sixteen bytes either way.
    unsafe { core::mem::transmute(words) }
}

#[inline(always)]
fn send(job: u64, op: u16, body: NetBody) -> i32 {
    // SAFETY: sixteen bytes either way.
    let words: [u32; 4] = unsafe { core::mem::transmute(body.addr) };
    let words = if body.family == AF_INET { [0, 0, 0xffff_u32.to_be(), words[0]] } else { words };
    let address = Address { words, port: body.port, protocol: body.protocol, own: body.own != 0 };
    let finding = judge::address(job, op, &address);
    let denied = finding == decision::OUTSIDE && judge::cuts_off(job);
    let decision = if denied { decision::DENIED } else { finding };
    if let Some(record) = Record::begin(job, class::NET, kind::NET, op, size_of::<NetBody>()) {
        record.put(0, body);
        record.submit(decision);
    }
    if denied { REFUSE } else { PROCEED }
}
