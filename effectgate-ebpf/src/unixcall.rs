//! Unix sockets by the system calls of `tracepoint`: a connection leaves its
//! other end behind, a datagram no more than the address that was written.

use core::mem::{offset_of, size_of};

use aya_ebpf::{
    helpers::{
        bpf_probe_read_user,
        generated::{
            bpf_get_current_task_btf, bpf_probe_read_user as bpf_probe_read_user_raw,
            bpf_probe_read_user_str,
        },
    },
    macros::map,
    maps::LruHashMap,
};
use effectgate_common::{
    maps::class,
    wire::{FileObject, UnixBody, decision, kind, op},
};

use crate::{
    emit::{self, Record},
    judge,
    kernel::{
        OFF_FS_PWD_DENTRY, OFF_FS_ROOT_DENTRY, OFF_SOCK_TYPE, OFF_TASK_FS, OFF_UNIX_PEER, Ptr,
        peek, peek_ptr,
    },
    object::{self, Name},
    repeat::{GO_ON, STOP, repeat},
    socket,
    syscall::{self, AT_FDCWD},
    unix,
};

const SOCK_DGRAM: u16 = 2;
/// `sizeof(sa_family_t)`
const FAMILY: u64 = 2;
/// `sizeof(sun_path)`
const NAME: usize = 108;
/// `struct user_msghdr` within `struct mmsghdr`, bytes.
const MESSAGE: u64 = 64;
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
    name: [u8; NAME + 4],
}

/// Addresses that jobs bound.
#[map]
static OWN_NAMES: LruHashMap<OwnName, u8> = LruHashMap::with_max_entries(8192, 0);

/// `connect(fd, …)` returned.
#[inline(always)]
pub fn connected(job: u64, task: Ptr, fd: u64) {
    let Some(file) = syscall::descriptor(task, fd) else {
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
        SOCK_DGRAM => socket::is_own(other, job),
        _ => socket::has_own_address(other, job),
    };
    unix::spoken(job, op::CONNECT, other, own, false);
}

/// `bind(…, address, len)` returned.
#[inline(never)]
pub fn bound(job: u64, address: u64, len: u64) {
    if let Some(name) = read(job, address, len) {
        // A full table forgets what was not used for long: it is then a stranger's.
        let _ = OWN_NAMES.insert(name, 0, 0);
    }
}

/// `sendto(…, address, len)` returned.
#[inline(never)]
pub fn sent(job: u64, address: u64, len: u64) {
    let Some(key) = read(job, address, len) else { return };
    let own = OWN_NAMES.get_ptr_mut(key).is_some();
    let finding = match () {
        () if !judge::judges(job) => decision::NONE,
        () if own => decision::WITHIN,
        // What an abstract name says is all that there is to it.
        () if key.from == 0 => decision::OUTSIDE,
        () => decision::NONE,
    };
    let decision = judge::settle(job, finding, false);
    let body = size_of::<UnixBody>();
    let Some(record) = Record::begin(job, class::NET, kind::UNIX, op::SEND, body) else { return };
    record.put(offset_of!(UnixBody, own), u32::from(own));
    record.put(offset_of!(UnixBody, sock_type), u32::from(SOCK_DGRAM));
    record.put(offset_of!(UnixBody, name), 0u64);
    let start = record.used();
    let at = address + FAMILY;
    if key.from == 0 {
        record.put(unix::PLACE.at, FileObject::default());
        let len = (key.len as u32 - 1) & 127;
        // SAFETY: the tail has room for more; the helper checks the address.
        if unsafe { bpf_probe_read_user_raw(record.tail().cast(), len, (at + 1) as *const _) } == 0
        {
            record.advance(len as usize);
        }
        record.put(offset_of!(UnixBody, name), record.span(start, body));
    } else {
        let name = Name { at: at as Ptr, max: NAME as u32 };
        match syscall::base(task(), AT_FDCWD as u32 as u64, name) {
            Some(path) => {
                object::describe(record, unix::PLACE, path, name, judge::place(job, path));
            }
            None => object::unknown(record, unix::PLACE),
        }
    }
    record.submit(decision);
}

/// `sendmsg(…, message)` returned.
#[inline(always)]
pub fn sent_message(job: u64, message: u64) {
    if let Some((address, len)) = addressed(message) {
        sent(job, address, len);
    }
}

struct Messages {
    job: u64,
    at: u64,
    count: u64,
}

/// `sendmmsg(…, messages)` returned that it sent `count`.
#[inline(always)]
pub fn sent_messages(job: u64, messages: u64, count: u64) {
    repeat(MESSAGES, message, &mut Messages { job, at: messages, count });
}

extern "C" fn message(index: u64, messages: *mut Messages) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let messages = unsafe { &*messages };
    if index >= messages.count {
        return STOP;
    }
    sent_message(messages.job, messages.at.wrapping_add(index * MESSAGE));
    GO_ON
}

/// `msg_name` and `msg_namelen`, with which a `struct user_msghdr` begins.
#[inline(always)]
fn addressed(message: u64) -> Option<(u64, u64)> {
    // SAFETY: the helper checks the address.
    let [address, len] = unsafe { bpf_probe_read_user(message as *const [u64; 2]) }.ok()?;
    Some((address, len & 0xffff_ffff))
}

#[inline(always)]
fn task() -> Ptr {
    // SAFETY: no arguments.
    unsafe { bpf_get_current_task_btf() }.cast_const().cast()
}

/// The address of a Unix socket that has one.
#[inline(always)]
fn read(job: u64, address: u64, len: u64) -> Option<OwnName> {
    if address == 0 || len <= FAMILY || len > FAMILY + NAME as u64 {
        return None;
    }
    // SAFETY: the helper checks the address.
    let family = unsafe { bpf_probe_read_user(address as *const u16) }.unwrap_or(0);
    if u32::from(family) != socket::AF_UNIX {
        return None;
    }
    let at = (address + FAMILY) as Ptr;
    // SAFETY: as above.
    let first = unsafe { bpf_probe_read_user(at) }.unwrap_or(0);
    let mut name = OwnName { job, from: 0, len: 0, name: [0; NAME + 4] };
    let to = name.name.as_mut_ptr().cast();
    if first == 0 {
        name.len = len - FAMILY;
        // SAFETY: the helper writes no more than there is, and checks the address.
        unsafe { bpf_probe_read_user_raw(to, (len - FAMILY) as u32, at.cast()) };
    } else {
        let fs = peek_ptr(task(), &OFF_TASK_FS);
        let from = if first == b'/' { &OFF_FS_ROOT_DENTRY } else { &OFF_FS_PWD_DENTRY };
        name.from = peek_ptr(fs, from) as u64;
        // SAFETY: as above.
        unsafe { bpf_probe_read_user_str(to, NAME as u32, at.cast()) };
    }
    Some(name)
}
