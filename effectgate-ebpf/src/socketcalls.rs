//! Sockets by the system calls of `tracepoint`. A connection to a Unix socket
//! leaves its other end behind, a datagram no more than the address that was
//! written.

use core::mem::{offset_of, size_of};

use aya_ebpf::{
    bindings::pt_regs,
    helpers::{
        bpf_probe_read_user,
        generated::{bpf_probe_read_user as bpf_probe_read_user_raw, bpf_probe_read_user_str},
    },
    macros::{btf_tracepoint, map},
    maps::LruHashMap,
    programs::BtfTracePointContext,
};
use effectgate_common::{
    maps::class,
    wire::{FileObject, UnixBody, decision, kind, op},
};

use crate::{
    emit::{self, Record},
    guard, judge,
    kernel::{
        OFF_FS_PWD_DENTRY, OFF_FS_ROOT_DENTRY, OFF_SOCK_TYPE, OFF_TASK_FS, OFF_UNIX_PEER, Ptr,
        peek, peek_ptr,
    },
    namespace,
    object::{self, Name},
    repeat::{GO_ON, STOP, repeat},
    route, scope, socket,
    syscall::{self, AT_FDCWD},
    unix,
    verifier::veiled,
};

const SOCK_DGRAM: u16 = 2;
/// `sizeof(sa_family_t)`
const FAMILY: u64 = 2;
/// `sizeof(sun_path)`
const NAME: u64 = 108;
/// `struct user_msghdr` within `struct mmsghdr`, bytes.
const MESSAGE: u64 = 64;
/// Where `msg_control` and `msg_controllen` lie in `struct user_msghdr`.
const CONTROL: u64 = 32;
/// Messages in one call (`UIO_MAXIOV`).
const MESSAGES: u32 = 1024;

/// An address that a job bound, as it was written.
#[repr(C)]
#[derive(Clone, Copy)]
struct OwnName {
    job: u64,
    /// The directory that a path starts from; 0 for an abstract name.
    from: u64,
    /// Of an abstract name, in bytes; 0 for a path.
    len: u64,
    /// In words, so that zeroes are not written byte by byte.
    name: [u64; 16],
}

/// Addresses that jobs bound.
#[map]
static OWN_NAMES: LruHashMap<OwnName, u8> = LruHashMap::with_max_entries(8192, 0);

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
mod nr {
    pub const CONNECT: u64 = 42;
    pub const SENDTO: u64 = 44;
    pub const SENDMSG: u64 = 46;
    pub const BIND: u64 = 49;
    pub const LISTEN: u64 = 50;
    pub const SETSOCKOPT: u64 = 54;
    pub const SENDMMSG: u64 = 307;
    pub const PIDFD_GETFD: u64 = 438;
}

/// `sys_exit(regs, ret)`. Beside `syscall_exit` for the verifier's sake.
#[btf_tracepoint(function = "sys_exit")]
pub fn syscall_socket(ctx: BtfTracePointContext) -> i32 {
    let ret: i64 = ctx.arg(1);
    // What failed had no effect.
    if ret < 0 {
        return 0;
    }
    let Some(job) = scope::current_job() else { return 0 };
    let call = guard::call();
    namespace::returned(job, &call);
    // The other table's numbers are reported once (`COMPAT_SYSCALL`).
    if call.compat {
        return 0;
    }
    let regs: *const pt_regs = ctx.arg(0);
    // SAFETY: the tracepoint's first argument; the verifier knows its type.
    let (number, [a, b, c, e, f]) = unsafe {
        let regs = &*regs;
        (regs.orig_rax, [regs.rdi, regs.rsi, regs.rdx, regs.r8, regs.r9])
    };
    match number {
        nr::CONNECT => connected(job, a),
        nr::BIND => bound(job, b, c),
        nr::SENDTO => sent(job, e, f),
        nr::SENDMSG => sent_message(job, a, b),
        nr::SENDMMSG => sent_messages(job, a, b, ret as u64),
        nr::SETSOCKOPT if route::leads_elsewhere(b as u32, c as u32) => routed(job, a),
        nr::LISTEN => listened(job, a),
        nr::PIDFD_GETFD => {
            if let Some(sk) = behind(ret as u64) {
                socket::foreign(job, sk, false);
            }
        }
        _ => {}
    }
    0
}

/// The socket of a descriptor.
#[inline(always)]
fn behind(fd: u64) -> Option<Ptr> {
    syscall::descriptor(scope::task(), fd).and_then(socket::of)
}

/// `listen(fd, …)` returned.
#[inline(never)]
fn listened(job: u64, fd: u64) {
    if let Some(sk) = behind(fd) {
        socket::listened(job, sk);
    }
}

/// `connect(fd, …)` returned. Out of line, and so are the others with large
/// values: up to 6.12, 512 bytes of stack are all that a program and what it
/// calls have together.
#[inline(never)]
fn connected(job: u64, fd: u64) {
    let Some(file) = syscall::descriptor(scope::task(), fd) else {
        // Closed by another thread in the meantime.
        return emit::lost(job, class::NET);
    };
    let Some(sk) = socket::of(file).filter(|sk| socket::is_unix(*sk)) else { return };
    let other = peek_ptr(sk, &OFF_UNIX_PEER);
    if other.is_null() {
        return; // of datagrams, and disconnected
    }
    // What listens made the other end of a stream only now, for the job.
    let own = match peek::<u16>(sk, &OFF_SOCK_TYPE) {
        SOCK_DGRAM => socket::is_own_peer(other, job),
        _ => socket::leads_to_own(sk, other, job),
    };
    unix::spoken(job, op::CONNECT, other, own, false);
}

/// `bind(…, address, len)` returned.
#[inline(always)]
fn bound(job: u64, address: u64, len: u64) {
    known(job, address, len, 1);
}

/// `sendto(…, address, len)` returned.
#[inline(never)]
fn sent(job: u64, address: u64, len: u64) {
    let what = known(job, address, len, 0);
    let own = what & OWN != 0;
    let abstract_name = what & ABSTRACT != 0;
    if what == 0 {
        return;
    }
    let finding = match () {
        () if !judge::judges(job) => decision::NONE,
        () if own => decision::WITHIN,
        // What an abstract name says is all that there is to it.
        () if abstract_name => decision::OUTSIDE,
        () => decision::NONE,
    };
    let decision = judge::settle(job, finding, false);
    let body = size_of::<UnixBody>();
    let Some(record) = Record::begin(job, class::NET, kind::UNIX, op::SEND, body) else { return };
    record.put(offset_of!(UnixBody, own), u32::from(own));
    record.put(offset_of!(UnixBody, sock_type), u32::from(SOCK_DGRAM));
    record.put(offset_of!(UnixBody, name), 0u64);
    let at = address + FAMILY;
    if abstract_name {
        record.put(unix::PLACE.at, FileObject::default());
        let start = record.used();
        let len = (veiled(len - FAMILY - 1) & 127) as u32;
        // SAFETY: the tail has room for more; the helper checks the address.
        if unsafe { bpf_probe_read_user_raw(record.tail().cast(), len, (at + 1) as *const _) } == 0
        {
            record.advance(len as usize);
        }
        record.put(offset_of!(UnixBody, name), record.span(start, body));
    } else {
        let name = Name { at: at as Ptr, max: NAME as u32 };
        match syscall::base(scope::task(), u64::from(AT_FDCWD as u32), name) {
            Some(path) => {
                object::describe(record, unix::PLACE, path, name, judge::place(job, path));
            }
            None => object::unknown(record, unix::PLACE),
        }
    }
    record.submit(decision);
}

/// The packets of a socket go another way.
#[inline(always)]
fn routed(job: u64, fd: u64) {
    if let Some(sk) = behind(fd) {
        socket::unseen(job, sk, false);
    }
}

/// `sendmsg(fd, message)` returned.
#[inline(always)]
fn sent_message(job: u64, fd: u64, message: u64) {
    let control = message.wrapping_add(CONTROL) as *const [u64; 2];
    // SAFETY: the helper checks the address.
    let [at, len] = unsafe { bpf_probe_read_user(control) }.unwrap_or([0, 0]);
    if route::has_route_in_user(at, len) {
        routed(job, fd);
    }
    if let Some((address, len)) = addressed(message) {
        sent(job, address, len);
    }
}

struct Messages {
    job: u64,
    fd: u64,
    at: u64,
    count: u64,
}

/// `sendmmsg(fd, messages)` returned that it sent `count`.
#[inline(always)]
fn sent_messages(job: u64, fd: u64, messages: u64, count: u64) {
    repeat(MESSAGES, message, &mut Messages { job, fd, at: messages, count });
}

extern "C" fn message(index: u64, messages: *mut Messages) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let messages = unsafe { &*messages };
    if index >= messages.count {
        return STOP;
    }
    sent_message(messages.job, messages.fd, messages.at.wrapping_add(index * MESSAGE));
    GO_ON
}

/// `msg_name` and `msg_namelen`, with which a `struct user_msghdr` begins.
#[inline(always)]
fn addressed(message: u64) -> Option<(u64, u64)> {
    // SAFETY: the helper checks the address.
    let [address, len] = unsafe { bpf_probe_read_user(message as *const [u64; 2]) }.ok()?;
    Some((address, len & 0xffff_ffff))
}

/// What [`known`] answers: it is the address of a Unix socket; one that the job
/// bound; an abstract name.
const ADDRESS: u64 = 1;
const OWN: u64 = 2;
const ABSTRACT: u64 = 4;

/// What is known of an address; `note`: it is the job's from now on. Out of line,
/// so that a name is not on the stack under the walks.
#[inline(never)]
fn known(job: u64, address: u64, len: u64, note: u64) -> u64 {
    if address == 0 || len <= FAMILY || len > FAMILY + NAME {
        return 0;
    }
    // SAFETY: the helper checks the address.
    let family = unsafe { bpf_probe_read_user(address as *const u16) }.unwrap_or(0);
    if u32::from(family) != socket::AF_UNIX {
        return 0;
    }
    let at = (address + FAMILY) as Ptr;
    // SAFETY: as above.
    let first = unsafe { bpf_probe_read_user(at) }.unwrap_or(0);
    let mut name = OwnName { job, from: 0, len: 0, name: [0; 16] };
    let to = name.name.as_mut_ptr().cast();
    if first == 0 {
        // The mask says nothing new, but to the verifier.
        name.len = veiled(len - FAMILY) & 127;
        // SAFETY: the helper writes no more than there is, and checks the address.
        unsafe { bpf_probe_read_user_raw(to, name.len as u32, at.cast()) };
    } else {
        let from = if first == b'/' { &OFF_FS_ROOT_DENTRY } else { &OFF_FS_PWD_DENTRY };
        name.from = peek_ptr(peek_ptr(scope::task(), &OFF_TASK_FS), from) as u64;
        // SAFETY: as above.
        unsafe { bpf_probe_read_user_str(to, NAME as u32, at.cast()) };
    }
    let name = &name;
    if note != 0 {
        // A full table forgets what was not used for long: it is then a stranger's.
        let _ = OWN_NAMES.insert(name, 0, 0);
    }
    let own = if OWN_NAMES.get_ptr_mut(name).is_some() { OWN } else { 0 };
    ADDRESS | own | if first == 0 { ABSTRACT } else { 0 }
}
