//! Sockets, through the cgroup hooks of the hierarchy's root: one set of
//! programs for all jobs, and a task that leaves its job's cgroup stays seen.

use core::mem::size_of;

use aya_ebpf::{
    bindings::{bpf_sock, bpf_sock_addr},
    macros::{cgroup_sock, cgroup_sock_addr},
    programs::{SockAddrContext, SockContext},
};
use effectgate_common::{
    maps::{Seen, class},
    wire::{NetBody, decision, kind, op},
};

use crate::{
    emit::{self, Record},
    judge::{self, Address},
    namespace, open,
    peer::{self, Source},
    scope, socket,
};

const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
/// What these hooks return to let the call go on.
const PROCEED: i32 = 1;
/// What they return to have it fail with `EPERM`.
const REFUSE: i32 = 0;

#[cgroup_sock_addr(connect4)]
pub fn connect4(ctx: SockAddrContext) -> i32 {
    spoken(&ctx, op::CONNECT, AF_INET, source4)
}

#[cgroup_sock_addr(connect6)]
pub fn connect6(ctx: SockAddrContext) -> i32 {
    spoken(&ctx, op::CONNECT, AF_INET6, source6)
}

#[cgroup_sock_addr(sendmsg4)]
pub fn sendmsg4(ctx: SockAddrContext) -> i32 {
    spoken(&ctx, op::SEND, AF_INET, |at| {
        // SAFETY: the context outlives the program; each field is a 4-byte read.
        Source { words: mapped(unsafe { (*at).msg_src_ip4 }), ..source4(at) }
    })
}

#[cgroup_sock_addr(sendmsg6)]
pub fn sendmsg6(ctx: SockAddrContext) -> i32 {
    spoken(&ctx, op::SEND, AF_INET6, |at| {
        // SAFETY: as above.
        let [a, b, c, d] = unsafe { &(*at).msg_src_ip6 };
        Source { words: [*a, *b, *c, *d], ..source6(at) }
    })
}

/// Before a port is taken: afterwards it would have been, for a moment.
#[cgroup_sock_addr(bind4)]
pub fn before_bind4(ctx: SockAddrContext) -> i32 {
    binding(&ctx, AF_INET)
}

#[cgroup_sock_addr(bind6)]
pub fn before_bind6(ctx: SockAddrContext) -> i32 {
    binding(&ctx, AF_INET6)
}

#[cgroup_sock(post_bind4)]
pub fn bind4(ctx: SockContext) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    // SAFETY: as above.
    let body = unsafe {
        let sk = ctx.sock;
        NetBody {
            namespace: namespace::of(job, peer::address_of(sk)),
            addr: bytes([(*sk).src_ip4, 0, 0, 0]),
            family: AF_INET,
            protocol: (*sk).protocol,
            port: (*sk).src_port,
            sock_type: (*sk).type_,
            ..NetBody::default()
        }
    };
    bound(job, ctx.sock, body)
}

#[cgroup_sock(post_bind6)]
pub fn bind6(ctx: SockContext) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    // SAFETY: as above.
    let body = unsafe {
        let sk = ctx.sock;
        NetBody {
            namespace: namespace::of(job, peer::address_of(sk)),
            addr: bytes([(*sk).src_ip6[0], (*sk).src_ip6[1], (*sk).src_ip6[2], (*sk).src_ip6[3]]),
            family: AF_INET6,
            protocol: (*sk).protocol,
            port: (*sk).src_port,
            sock_type: (*sk).type_,
            ..NetBody::default()
        }
    };
    bound(job, ctx.sock, body)
}

/// What a call names.
#[inline(always)]
fn asked(ctx: &SockAddrContext, job: u64, family: u32) -> NetBody {
    let sa = ctx.sock_addr;
    // SAFETY: as above.
    unsafe {
        let addr = if family == AF_INET {
            [(*sa).user_ip4, 0, 0, 0]
        } else {
            let [a, b, c, d] = &(*sa).user_ip6;
            [*a, *b, *c, *d]
        };
        NetBody {
            addr: bytes(addr),
            family,
            protocol: (*sa).protocol,
            port: u32::from(u16::from_be((*sa).user_port as u16)),
            sock_type: (*sa).type_,
            namespace: namespace::of(job, peer::address_of((*sa).__bindgen_anon_1.sk)),
            ..NetBody::default()
        }
    }
}

/// Where the socket itself is bound.
#[inline(always)]
fn source4(ctx: *mut bpf_sock_addr) -> Source {
    // SAFETY: as above; the socket is the context's.
    unsafe {
        let sk = (*ctx).__bindgen_anon_1.sk;
        Source { words: mapped((*sk).src_ip4), port: (*sk).src_port }
    }
}

#[inline(always)]
fn source6(ctx: *mut bpf_sock_addr) -> Source {
    // SAFETY: as above.
    unsafe {
        let sk = (*ctx).__bindgen_anon_1.sk;
        let [a, b, c, d] = &(*sk).src_ip6;
        Source { words: [*a, *b, *c, *d], port: (*sk).src_port }
    }
}

/// An IPv4 address as IPv4-mapped IPv6.
#[inline(always)]
fn mapped(word: u32) -> [u32; 4] {
    [0, 0, 0xffff_u32.to_be(), word]
}

/// The words are in network byte order already.
#[inline(always)]
fn bytes(words: [u32; 4]) -> [u8; 16] {
    // SAFETY: sixteen bytes either way.
    unsafe { core::mem::transmute(words) }
}

#[inline(always)]
fn address(body: &NetBody) -> Address {
    // SAFETY: sixteen bytes either way.
    let words: [u32; 4] = unsafe { core::mem::transmute(body.addr) };
    let words = if body.family == AF_INET { mapped(words[0]) } else { words };
    Address {
        words,
        port: body.port,
        protocol: body.protocol,
        own: body.own != 0,
        namespace: body.namespace,
    }
}

/// A connection, or a message to an address.
#[inline(always)]
fn spoken(
    ctx: &SockAddrContext,
    op: u16,
    family: u32,
    source: impl Fn(*mut bpf_sock_addr) -> Source,
) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    let mut body = asked(ctx, job, family);
    let mut to = address(&body);
    to.own = peer::is_own(ctx.sock_addr, job, &to, source(ctx.sock_addr));
    body.own = to.own.into();
    let finding = judge::address(job, op, &to);
    let decision = settled(job, finding);
    let repeats = decision == decision::WITHIN;
    let key = key(job, op, &to);
    if repeats && emit::seen(&key, class::NET) {
        return PROCEED;
    }
    let sent = say(job, op, body, decision);
    if repeats && sent {
        emit::note(&key);
    }
    answer(job, decision, sent)
}

/// The same address, spoken to in the same way by the same program.
#[inline(always)]
fn key(job: u64, op: u16, to: &Address) -> Seen {
    let [a, b, c, d] = to.words.map(u64::from);
    Seen {
        job,
        what: [a << 32 | b, c << 32 | d],
        name: u64::from(to.port) << 32 | u64::from(to.protocol),
        program: open::program(),
        dev: to.own.into(),
        op: op.into(),
    }
}

/// What is not to be bound is refused here; the rest is recorded when the
/// kernel has given it a port.
#[inline(always)]
fn binding(ctx: &SockAddrContext, family: u32) -> i32 {
    let Some(job) = scope::current_job() else { return PROCEED };
    if !judge::cuts_off(job) {
        return PROCEED;
    }
    let body = asked(ctx, job, family);
    let decision = settled(job, judge::address(job, op::BIND, &address(&body)));
    if decision != decision::DENIED {
        return PROCEED;
    }
    let sent = say(job, op::BIND, body, decision);
    answer(job, decision, sent)
}

#[inline(always)]
fn bound(job: u64, sk: *mut bpf_sock, body: NetBody) -> i32 {
    socket::bound(peer::address_of(sk), body.port);
    let finding = judge::address(job, op::BIND, &address(&body));
    let decision = settled(job, finding);
    let sent = say(job, op::BIND, body, decision);
    answer(job, decision, sent)
}

/// These hooks deny in every backend, and in each mode that does more than to
/// observe.
#[inline(always)]
fn settled(job: u64, finding: u32) -> u32 {
    let outside = finding == decision::OUTSIDE || finding == decision::UNKNOWN;
    let denied = outside && judge::cuts_off(job);
    if denied { decision::DENIED } else { finding }
}

#[inline(always)]
fn answer(job: u64, decision: u32, sent: bool) -> i32 {
    if judge::answer(job, decision, sent, true) == 0 { PROCEED } else { REFUSE }
}

/// Whether it could be reported.
#[inline(always)]
pub fn say(job: u64, op: u16, body: NetBody, decision: u32) -> bool {
    match Record::begin(job, class::NET, kind::NET, op, size_of::<NetBody>()) {
        None => false,
        Some(record) => {
            record.put(0, body);
            record.submit(decision)
        }
    }
}
