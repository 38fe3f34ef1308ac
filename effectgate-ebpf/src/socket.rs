//! Sockets that the cgroup address hooks are blind to: of other kinds, of other
//! people, listening without having been bound.

use core::mem::size_of;

use aya_ebpf::{
    macros::{btf_tracepoint, map},
    maps::LruHashMap,
    programs::BtfTracePointContext,
};
use effectgate_common::{
    maps::{OwnSocket, class},
    wire::{GuardBody, NetBody, decision, kind, op, reach},
};

use crate::{
    emit::Record,
    guard::{Reach, reached},
    hook::{Hook, hooks},
    judge::{self, Address},
    kernel::{
        OFF_FILE_INODE, OFF_FILE_PRIVATE, OFF_INODE_MODE, OFF_PID_NUMBERS, OFF_SOCK_FAMILY,
        OFF_SOCK_PEER_PID, OFF_SOCK_PORT, OFF_SOCK_PROTOCOL, OFF_SOCK_TYPE, OFF_SOCKET_SOCK,
        OFF_UNIX_ADDRESS, Ptr, peek, peek_ptr,
    },
    namespace, net, peer,
    repeat::{GO_ON, repeat},
    route, scope, syscall,
};

// include/linux/socket.h, include/linux/net.h, include/uapi/linux/in.h
pub const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const AF_ALG: u32 = 38;
/// include/uapi/linux/netlink.h
const NETLINK_KOBJECT_UEVENT: u32 = 15;
const SOCK_TYPE: u32 = 0xf;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const IPPROTO_IP: u32 = 0;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const IPPROTO_MPTCP: u32 = 262;
/// `S_IFMT` and `S_IFSOCK`, include/uapi/linux/stat.h.
const TYPE_MASK: u16 = 0o170_000;
const SOCKET: u16 = 0o140_000;

/// Sockets that are a job's although they were made elsewhere; of an address the
/// process that listened.
#[map]
static OWN_SOCKETS: LruHashMap<OwnSocket, u32> = LruHashMap::with_max_entries(16384, 0);

/// Sockets that were bound, and the port that each was given.
#[map]
static BOUND: LruHashMap<u64, u32> = LruHashMap::with_max_entries(16384, 0);

hooks! {
    "socket_create" "security_socket_create" socket_create fexit_socket_create given 4 => created;
    "socket_listen" "security_socket_listen" socket_listen fexit_socket_listen given 2 => listening;
    "socket_sendmsg" "security_socket_sendmsg" socket_sendmsg fexit_socket_sendmsg given 3 => sent;
    "socket_recvmsg" "security_socket_recvmsg" socket_recvmsg fexit_socket_recvmsg given 4 => got;
    "file_receive" "security_file_receive" socket_handed fexit_socket_handed given 1 => received;
}

/// `sock_send_length(sk, ret, flags)`
#[btf_tracepoint(function = "sock_send_length")]
pub fn socket_sent(ctx: BtfTracePointContext) -> i32 {
    if let Some((job, sk)) = passed(&ctx) {
        through(job, sk, false);
    }
    0
}

/// `sock_recv_length(sk, ret, flags)`
#[btf_tracepoint(function = "sock_recv_length")]
pub fn socket_received(ctx: BtfTracePointContext) -> i32 {
    if let Some((job, sk)) = passed(&ctx) {
        foreign(job, sk, false);
    }
    0
}

/// A job's socket that data passed.
#[inline(always)]
fn passed(ctx: &BtfTracePointContext) -> Option<(u64, Ptr)> {
    let done: i32 = ctx.arg(1);
    if done < 0 {
        return None;
    }
    Some((scope::current_job()?, ctx.arg(0)))
}

/// `socket_create(family, type, protocol, kern)`
#[inline(always)]
fn created<H: Hook>(ctx: &H) -> i32 {
    let kernels_own: i32 = ctx.arg(3);
    match scope::current_job() {
        Some(job) if kernels_own == 0 => made(job, ctx.arg(0), ctx.arg(1), ctx.arg(2), H::DENIES),
        _ => 0,
    }
}

/// `socket_listen(sock, backlog)`
#[inline(always)]
fn listening<H: Hook>(ctx: &H) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let sk = peek_ptr(ctx.arg(0), &OFF_SOCKET_SOCK);
    let unbound = peek::<u16>(sk, &OFF_SOCK_PORT) == 0;
    listens(job, sk, unbound, H::DENIES)
}

/// `listen` returned: by now every socket has a port.
#[inline(always)]
pub fn listened(job: u64, sk: Ptr) {
    let port = peek::<u16>(sk, &OFF_SOCK_PORT);
    // SAFETY: one word.
    let bound = unsafe { BOUND.get(sk as u64) }.copied();
    listens(job, sk, bound != Some(port.into()), false);
}

/// A `bind` hook said where the socket is.
#[inline(always)]
pub fn bound(sk: Ptr, port: u32) {
    // A full table forgets what was not used for long: it is then reported twice.
    let _ = BOUND.insert(sk as u64, port, 0);
}

/// `socket_sendmsg(sock, msg, size)`
#[inline(always)]
fn sent<H: Hook>(ctx: &H) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let sk = peek_ptr(ctx.arg(0), &OFF_SOCKET_SOCK);
    match through(job, sk, H::DENIES) {
        0 if route::has_route(ctx.arg(1)) => unseen(job, sk, H::DENIES),
        answer => answer,
    }
}

/// Data is sent through a socket: news of devices, or by somebody else's.
#[inline(always)]
pub fn through(job: u64, sk: Ptr, denies: bool) -> i32 {
    if tells_of_devices(sk) {
        return reached(job, Reach::out(reach::MACHINE, NETLINK_KOBJECT_UEVENT), denies);
    }
    foreign(job, sk, denies)
}

/// Whether what is sent there is for those who listen to the kernel's news of
/// devices, and act on it.
#[inline(always)]
fn tells_of_devices(sk: Ptr) -> bool {
    u32::from(peek::<u16>(sk, &OFF_SOCK_FAMILY)) == AF_NETLINK
        && u32::from(peek::<u16>(sk, &OFF_SOCK_PROTOCOL)) == NETLINK_KOBJECT_UEVENT
}

/// `socket_recvmsg(sock, msg, size, flags)`
#[inline(always)]
fn got<H: Hook>(ctx: &H) -> i32 {
    match scope::current_job() {
        Some(job) => foreign(job, peek_ptr(ctx.arg(0), &OFF_SOCKET_SOCK), H::DENIES),
        None => 0,
    }
}

/// `file_receive(file)`: a descriptor that another process gave, or that was
/// taken from it.
#[inline(always)]
fn received<H: Hook>(ctx: &H) -> i32 {
    match (scope::current_job(), of(ctx.arg(0))) {
        (Some(job), Some(sk)) => foreign(job, sk, H::DENIES),
        _ => 0,
    }
}

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
    if seen { 0 } else { report(job, family << 16 | sock_type, protocol, denies) }
}

/// Reports a socket of the internet whose packets go another way.
#[inline(always)]
pub fn unseen(job: u64, sk: Ptr, denies: bool) -> i32 {
    let family = u32::from(peek::<u16>(sk, &OFF_SOCK_FAMILY));
    if family != AF_INET && family != AF_INET6 {
        return 0;
    }
    let detail = family << 16 | u32::from(peek::<u16>(sk, &OFF_SOCK_TYPE));
    report(job, detail, u32::from(peek::<u16>(sk, &OFF_SOCK_PROTOCOL)), denies)
}

/// `detail`: family and type of the socket. Out of line, for the stack's sake.
#[inline(never)]
fn report(job: u64, detail: u32, protocol: u32, denies: bool) -> i32 {
    let finding = if judge::judges(job) { decision::OUTSIDE } else { decision::NONE };
    let decision = judge::settle(job, finding, denies);
    let body = size_of::<GuardBody>();
    let sent = match Record::begin(job, class::GUARD, kind::GUARD, op::SOCKET, body) {
        None => false,
        Some(record) => {
            record.put(0, GuardBody { value: protocol, detail, ..GuardBody::default() });
            record.submit(decision)
        }
    };
    judge::answer(job, decision, sent, denies)
}

/// Reports what passes a socket that was made outside the job: who is at its
/// other end was settled by somebody else.
#[inline(always)]
pub fn foreign(job: u64, sk: Ptr, denies: bool) -> i32 {
    if is_own(sk, job) {
        return 0;
    }
    let family = u32::from(peek::<u16>(sk, &OFF_SOCK_FAMILY));
    let detail = family << 16 | u32::from(peek::<u16>(sk, &OFF_SOCK_TYPE));
    reached(job, Reach::out(reach::SOCKET, detail), denies)
}

/// A socket that listens without having been bound gets a port at every
/// address, and no `bind` hook says so. A Unix socket's address is noted: those
/// whom it will accept come with sockets that were made where they are.
#[inline(always)]
fn listens(job: u64, sk: Ptr, unbound: bool, denies: bool) -> i32 {
    let family = u32::from(peek::<u16>(sk, &OFF_SOCK_FAMILY));
    if family == AF_UNIX {
        adopt(job, peek(sk, &OFF_UNIX_ADDRESS), scope::pid());
        return 0;
    }
    if !unbound || family != AF_INET && family != AF_INET6 {
        return 0;
    }
    let protocol = u32::from(peek::<u16>(sk, &OFF_SOCK_PROTOCOL));
    let ipv4 = if family == AF_INET { 0xffff_u32.to_be() } else { 0 };
    let port = u32::from(peek::<u16>(sk, &OFF_SOCK_PORT));
    let namespace = namespace::of(job, sk);
    let address = Address { words: [0, 0, ipv4, 0], port, protocol, own: false, namespace };
    let finding = judge::address(job, op::BIND, &address);
    let decision = judge::settle(job, finding, denies);
    let sock_type = u32::from(peek::<u16>(sk, &OFF_SOCK_TYPE));
    let body = NetBody { family, protocol, port, sock_type, namespace, ..NetBody::default() };
    let sent = net::say(job, op::BIND, body, decision);
    judge::answer(job, decision, sent, denies)
}

/// Whether a socket that the job has is its own: made inside it, handed to it as
/// a standard stream, or accepted by one of its own.
#[inline(always)]
pub fn is_own(sk: Ptr, job: u64) -> bool {
    let by_address = || is_unix(sk) && is_adopted(job, peek(sk, &OFF_UNIX_ADDRESS));
    is_own_peer(sk, job) || by_address()
}

/// Whether a socket that the job speaks to is its own. What its address tells is
/// not enough: the place of one that is gone may be that of another program's.
#[inline(always)]
pub fn is_own_peer(sk: Ptr, job: u64) -> bool {
    peer::made_by(sk, job) || is_adopted(job, sk as u64)
}

/// Whether a connected Unix socket leads to one of the job's: `other` has the
/// address of one that listened, and `sk` was told of the same process.
#[inline(always)]
pub fn leads_to_own(sk: Ptr, other: Ptr, job: u64) -> bool {
    let listened: u32 = peek(peek_ptr(sk, &OFF_SOCK_PEER_PID), &OFF_PID_NUMBERS);
    let what = peek(other, &OFF_UNIX_ADDRESS);
    // SAFETY: one word.
    let known = unsafe { OWN_SOCKETS.get(OwnSocket { job, what }) }.copied();
    what != 0 && listened != 0 && known == Some(listened)
}

#[inline(always)]
pub fn is_unix(sk: Ptr) -> bool {
    u32::from(peek::<u16>(sk, &OFF_SOCK_FAMILY)) == AF_UNIX
}

#[inline(always)]
fn is_adopted(job: u64, what: u64) -> bool {
    what != 0 && OWN_SOCKETS.get_ptr_mut(OwnSocket { job, what }).is_some()
}

#[inline(always)]
fn adopt(job: u64, what: u64, listens: u32) {
    // A full table forgets what was not used for long: it is then a stranger's.
    let _ = OWN_SOCKETS.insert(OwnSocket { job, what }, listens, 0);
}

/// The socket behind an open file.
#[inline(always)]
pub fn of(file: Ptr) -> Option<Ptr> {
    let mode = peek::<u16>(peek_ptr(file, &OFF_FILE_INODE), &OFF_INODE_MODE);
    let sk = peek_ptr(peek_ptr(file, &OFF_FILE_PRIVATE), &OFF_SOCKET_SOCK);
    (mode & TYPE_MASK == SOCKET && !sk.is_null()).then_some(sk)
}

struct Streams {
    task: u64,
    job: u64,
}

/// The standard streams of a task that enters a job are the job's.
#[inline(always)]
pub fn hand_over(task: Ptr, job: u64) {
    repeat(3, hand_over_one, &mut Streams { task: task as u64, job });
}

extern "C" fn hand_over_one(fd: u64, streams: *mut Streams) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let streams = unsafe { &*streams };
    if let Some(sk) = syscall::descriptor(streams.task as Ptr, fd).and_then(of) {
        adopt(streams.job, sk as u64, 0);
    }
    GO_ON
}
