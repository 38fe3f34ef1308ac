//! Who answers at a loopback address? The kernel's own look-up says which
//! socket would, and a socket knows the cgroup that made it.

use core::mem::size_of;

use aya_ebpf::{
    bindings::{
        bpf_sock, bpf_sock_addr, bpf_sock_tuple, bpf_sock_tuple__bindgen_ty_1,
        bpf_sock_tuple__bindgen_ty_1__bindgen_ty_1 as Tuple4,
        bpf_sock_tuple__bindgen_ty_1__bindgen_ty_2 as Tuple6,
    },
    helpers::{
        bpf_probe_read_kernel,
        generated::{bpf_sk_lookup_tcp, bpf_sk_lookup_udp, bpf_sk_release},
    },
};

use crate::{
    cgroup,
    judge::Address,
    kernel::{
        OFF_GROUP_COUNT, OFF_GROUP_SOCKETS, OFF_SOCK_CGROUP, OFF_SOCK_GROUP, Ptr, offset, peek,
        peek_ptr,
    },
    repeat::{GO_ON, STOP, repeat},
};

/// `BPF_F_CURRENT_NETNS`: the network namespace of the socket that asks.
const ITS_NAMESPACE: u64 = u64::MAX;
/// Members of a group (`SO_REUSEPORT`) that are asked; a larger one is a stranger.
const GROUP_MAX: u32 = 64;

/// Where something is sent from, as far as it is known.
#[derive(Clone, Copy)]
pub struct Source {
    /// In four words; IPv4 as IPv4-mapped IPv6, zero when the kernel will choose.
    pub words: [u32; 4],
    /// Host byte order; 0 when the kernel will choose.
    pub port: u32,
}

/// Whether the socket that answers at a loopback, or the unspecified, address
/// was made inside the job. Where nothing answers it was not: something may,
/// a moment later.
#[inline(always)]
pub fn is_own(ctx: *mut bpf_sock_addr, job: u64, to: &Address, from: Source) -> bool {
    if !to.is_loopback() && !to.is_unspecified() || to.is_broadcast() {
        return false;
    }
    let loopback = if to.is_ipv4() {
        [0, 0, 0xffff_u32.to_be(), 0x7f00_0001_u32.to_be()]
    } else {
        [0, 0, 0, 1u32.to_be()]
    };
    let from_any = from.words[3] == 0;
    let source = if from_any { loopback } else { from.words };
    let destination = match () {
        () if !to.is_unspecified() => to.words,
        // Of the sockets' own address, or of loopback if they have none.
        () if to.is_ipv4() => source,
        () => loopback,
    };
    let stream = to.protocol != UDP;
    // A connection from the same port is none of the listeners'.
    let sport = if stream { 0 } else { (from.port as u16).to_be() };
    let dport = (to.port as u16).to_be();
    let sk = if to.is_ipv4() {
        let tuple = Tuple4 { saddr: source[3], daddr: destination[3], sport, dport };
        look_up(ctx, stream, bpf_sock_tuple__bindgen_ty_1 { ipv4: tuple }, size_of::<Tuple4>())
    } else {
        let tuple = Tuple6 { saddr: source, daddr: destination, sport, dport };
        look_up(ctx, stream, bpf_sock_tuple__bindgen_ty_1 { ipv6: tuple }, size_of::<Tuple6>())
    };
    !sk.is_null() && made_by(sk, job) && whole_group_is(sk, job)
}

/// `IPPROTO_UDP`.
const UDP: u32 = 17;

/// The socket that would get what is sent so; null for none. It is not held:
/// sockets that can be looked up stay, as memory, while a program runs (RCU).
#[inline(always)]
fn look_up(
    ctx: *mut bpf_sock_addr,
    stream: bool,
    tuple: bpf_sock_tuple__bindgen_ty_1,
    size: usize,
) -> Ptr {
    let mut tuple = bpf_sock_tuple { __bindgen_anon_1: tuple };
    let (ctx, at, size) = (ctx.cast(), &raw mut tuple, size as u32);
    // SAFETY: the context is the program's; the tuple is as large as it says.
    unsafe {
        let sk: *mut bpf_sock = if stream {
            bpf_sk_lookup_tcp(ctx, at, size, ITS_NAMESPACE, 0)
        } else {
            bpf_sk_lookup_udp(ctx, at, size, ITS_NAMESPACE, 0)
        };
        if sk.is_null() {
            return core::ptr::null();
        }
        let address = address_of(sk);
        bpf_sk_release(sk.cast());
        address
    }
}

/// A socket's address in memory. The verifier lets nobody compute with such a
/// pointer; what a read of memory yields is a number like any other.
#[inline(always)]
pub fn address_of(sk: *mut bpf_sock) -> Ptr {
    // SAFETY: a variable of this function.
    unsafe { bpf_probe_read_kernel((&raw const sk).cast::<u64>()) }.unwrap_or(0) as Ptr
}

/// Whether a socket was made inside the job's cgroup; one that was accepted,
/// where its listener was.
#[inline(always)]
pub fn made_by(sk: Ptr, job: u64) -> bool {
    cgroup::job(peek_ptr(sk, &OFF_SOCK_CGROUP)) == job
}

struct Group {
    sockets: u64,
    count: u64,
    job: u64,
    own: u64,
}

/// Sockets with `SO_REUSEPORT` share one port, and which of them answers is
/// decided anew for each connection: all have to be the job's.
#[inline(always)]
fn whole_group_is(sk: Ptr, job: u64) -> bool {
    let group = peek_ptr(sk, &OFF_SOCK_GROUP);
    if group.is_null() {
        return true;
    }
    let count = u32::from(peek::<u16>(group, &OFF_GROUP_COUNT));
    let sockets = group.wrapping_add(offset(&OFF_GROUP_SOCKETS)) as u64;
    let mut state = Group { sockets, count: count.into(), job, own: 1 };
    repeat(GROUP_MAX, member, &mut state);
    count <= GROUP_MAX && state.own == 1
}

extern "C" fn member(index: u64, state: *mut Group) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let state = unsafe { &mut *state };
    if index >= state.count {
        return STOP;
    }
    let at = (state.sockets as Ptr).wrapping_add(index as usize * 8).cast::<u64>();
    // SAFETY: the helper checks the address.
    let sk = unsafe { bpf_probe_read_kernel(at) }.unwrap_or(0) as Ptr;
    if made_by(sk, state.job) {
        return GO_ON;
    }
    state.own = 0;
    STOP
}
