//! Unix sockets: to whom a job speaks. Behind one that was made outside stands
//! a program that acts for whoever reaches it.

use core::mem::{offset_of, size_of};

use aya_ebpf::helpers::generated::bpf_probe_read_kernel;
use effectgate_common::{
    maps::{Seen, class},
    wire::{FileObject, UnixBody, decision, kind, op},
};

use crate::{
    emit::{self, Record},
    hook::{Hook, hooks},
    judge,
    kernel::{
        OFF_ADDRESS_LEN, OFF_ADDRESS_NAME, OFF_SOCK_TYPE, OFF_SOCKET_SOCK, OFF_UNIX_ADDRESS,
        OFF_UNIX_PATH_DENTRY, OFF_UNIX_PATH_MNT, Ptr, offset, peek, peek_ptr,
    },
    object::{self, Path, Place},
    open, scope, socket,
};

/// What a name has before it: its family and the NUL that makes it abstract.
const BEFORE_NAME: u32 = 3;
/// A name is at most 107 bytes long (include/uapi/linux/un.h).
const NAME_MASK: u32 = 127;

pub const PLACE: Place = Place { at: offset_of!(UnixBody, file), body: size_of::<UnixBody>() };

hooks! {
    "unix_stream_connect" "security_unix_stream_connect" unix_stream_connect fexit_unix_stream_connect given 3 => connecting;
    "unix_may_send" "security_unix_may_send" unix_may_send fexit_unix_may_send given 2 => sending;
}

/// `unix_stream_connect(sock, other, newsk)`: `other` is what listens.
#[inline(always)]
fn connecting<H: Hook>(ctx: &H) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let other = ctx.arg(1);
    spoken(job, op::CONNECT, other, socket::is_own_peer(other, job), H::DENIES)
}

/// `unix_may_send(sock, other)`: each datagram, and connecting for datagrams.
#[inline(always)]
fn sending<H: Hook>(ctx: &H) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let other = peek_ptr(ctx.arg(1), &OFF_SOCKET_SOCK);
    spoken(job, op::SEND, other, socket::is_own_peer(other, job), H::DENIES)
}

/// Judges and records that the job speaks to the socket `other`.
#[inline(always)]
pub fn spoken(job: u64, op: u16, other: Ptr, own: bool, denies: bool) -> i32 {
    let path = Path {
        mnt: peek_ptr(other, &OFF_UNIX_PATH_MNT),
        dentry: peek_ptr(other, &OFF_UNIX_PATH_DENTRY),
    };
    let decision = judge::settle(job, judge::unix(job, path.dentry, own), denies);
    let repeats = decision == decision::WITHIN;
    let key = Seen {
        job,
        what: [other as u64, peek(other, &OFF_UNIX_ADDRESS)],
        name: path.dentry as u64,
        program: open::program(),
        dev: own.into(),
        op: op.into(),
    };
    if repeats && emit::seen(&key, class::NET) {
        return 0;
    }
    let body = size_of::<UnixBody>();
    let sent = match Record::begin(job, class::NET, kind::UNIX, op, body) {
        None => false,
        Some(record) => {
            describe(record, job, other, path, own);
            record.submit(decision)
        }
    };
    if repeats && sent {
        emit::note(&key);
    }
    judge::answer(job, decision, sent, denies)
}

#[inline(always)]
fn describe(record: Record, job: u64, other: Ptr, path: Path, own: bool) {
    let start = record.used();
    if path.dentry.is_null() {
        record.put(PLACE.at, FileObject::default());
        name(record, peek_ptr(other, &OFF_UNIX_ADDRESS));
        record.put(offset_of!(UnixBody, name), record.span(start, PLACE.body));
    } else {
        object::describe(record, PLACE, path, object::NO_NAME, judge::place(job, path));
        record.put(offset_of!(UnixBody, name), 0u64);
    }
    record.put(offset_of!(UnixBody, own), u32::from(own));
    let kind = peek::<u16>(other, &OFF_SOCK_TYPE);
    record.put(offset_of!(UnixBody, sock_type), u32::from(kind));
}

/// Adds an abstract name.
#[inline(always)]
fn name(record: Record, address: Ptr) {
    let len = peek::<u32>(address, &OFF_ADDRESS_LEN);
    if address.is_null() || len <= BEFORE_NAME {
        return;
    }
    let len = (len - BEFORE_NAME) & NAME_MASK;
    let from = address.wrapping_add(offset(&OFF_ADDRESS_NAME) + BEFORE_NAME as usize);
    // SAFETY: the tail has room for more; the helper checks the address.
    if unsafe { bpf_probe_read_kernel(record.tail().cast(), len, from.cast()) } == 0 {
        record.advance(len as usize);
    }
}
