//! The only writer of the rings.
//!
//! A record is put together in a scratch slot, since a path's length is not
//! known beforehand and a reservation cannot shrink, and then copied. LSM
//! programs can be preempted by another task's on the same CPU, so a slot is
//! claimed, not taken for granted; that no slot is free counts as a loss.

use core::{
    intrinsics::{AtomicOrdering, atomic_xadd, atomic_xchg},
    mem::size_of,
};

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_get_current_uid_gid,
        bpf_get_smp_processor_id,
        generated::{bpf_ktime_get_boot_ns, bpf_ringbuf_output, bpf_ringbuf_query},
    },
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuHashMap, RingBuf},
};
use zerocopy::IntoBytes;

use crate::kernel::offset;
use effectgate_common::{
    maps::{CANARY_JOB, LostKey, SLOTS_PER_CPU, Seen},
    wire::{
        ArgsBody, ExecBody, ExitBody, FileBody, ForkBody, GuardBody, Header, NetBody, Span,
        UnixBody, decision, kind,
    },
};

/// Nobody reads it: it puts the wire's types into the object's BTF, where a
/// test compares their layout with the one that user space has.
#[unsafe(no_mangle)]
pub static WIRE: Wire = Wire {
    header: zero::<Header>(),
    file: zero::<FileBody>(),
    fork: zero::<ForkBody>(),
    exec: zero::<ExecBody>(),
    exit: zero::<ExitBody>(),
    args: zero::<ArgsBody>(),
    net: zero::<NetBody>(),
    guard: zero::<GuardBody>(),
    unix: zero::<UnixBody>(),
};

const fn zero<T>() -> T {
    // SAFETY: the wire's types are integers and arrays of them.
    unsafe { core::mem::zeroed() }
}

#[repr(C)]
pub struct Wire {
    header: Header,
    file: FileBody,
    fork: ForkBody,
    exec: ExecBody,
    exit: ExitBody,
    args: ArgsBody,
    net: NetBody,
    guard: GuardBody,
    unix: UnixBody,
}

/// What a verdict rests on: processes, programs, the network, the observer's own
/// ground, and everything that is not inside the policy. The loader may give the
/// rings other sizes.
#[map]
static CRITICAL: RingBuf = RingBuf::with_byte_size(16 << 20, 0);

/// The rest: file effects inside the policy. However many they are, they crowd
/// nothing else out.
#[map]
static BULK: RingBuf = RingBuf::with_byte_size(16 << 20, 0);

/// The number of each job's next record. The daemon puts it there before the
/// job starts.
#[map]
static NUMBERS: HashMap<u64, u64> = HashMap::with_max_entries(4096, 0);

/// See [`Seen`].
#[map]
static SEEN: LruHashMap<Seen, u8> = LruHashMap::with_max_entries(65536, 0);

/// Effects that were not reported again, by job and class. The daemon puts a
/// job's keys there before the job starts.
#[map]
static REPEATED: PerCpuHashMap<LostKey, u64> = PerCpuHashMap::with_max_entries(8192, 0);

/// Records that found no room, by job and class. The daemon puts a job's keys
/// there before the job starts.
#[map]
static LOST: PerCpuHashMap<LostKey, u64> = PerCpuHashMap::with_max_entries(8192, 0);

/// Positions in the buffer are masked to this; a write of at most
/// [`WRITE_MAX`] bytes at any of them stays inside.
const POSITION_MASK: usize = 0x7fff;
const WRITE_MAX: usize = 4096;

#[repr(C)]
pub struct Slot {
    busy: u64,
    /// Bytes of the tail in use.
    used: u64,
    buffer: [u8; POSITION_MASK + 1 + WRITE_MAX],
}

#[map]
static SLOTS: Array<Slot> = Array::with_max_entries(64 * SLOTS_PER_CPU, 0);

/// A record in the making.
#[derive(Clone, Copy)]
pub struct Record {
    slot: *mut Slot,
    class: u32,
}

impl Record {
    /// Claims a slot and fills the header; `None` (counted) when none is free.
    #[inline(always)]
    pub fn begin(job: u64, class: u32, kind: u16, op: u16, body: usize) -> Option<Record> {
        // SAFETY: no arguments.
        let first = unsafe { bpf_get_smp_processor_id() } * SLOTS_PER_CPU;
        for slot in 0..SLOTS_PER_CPU {
            if let Some(slot) = SLOTS.get_ptr_mut(first + slot) {
                // SAFETY: the map's memory lives as long as the program.
                if unsafe {
                    atomic_xchg::<u64, { AtomicOrdering::SeqCst }>(&raw mut (*slot).busy, 1)
                } == 0
                {
                    let record = Record { slot, class };
                    record.head(job, kind, op, body);
                    return Some(record);
                }
            }
        }
        lost(job, class);
        None
    }

    #[inline(always)]
    fn head(self, job: u64, kind: u16, op: u16, body: usize) {
        let task = bpf_get_current_pid_tgid();
        let user = bpf_get_current_uid_gid();
        let header = Header {
            // SAFETY: no arguments.
            ts: unsafe { bpf_ktime_get_boot_ns() },
            job,
            seq: 0,
            pid: (task >> 32) as u32,
            tid: task as u32,
            uid: user as u32,
            gid: (user >> 32) as u32,
            kind,
            op,
            len: 0,
            decision: decision::NONE,
            reserved: 0,
            comm: bpf_get_current_comm().unwrap_or_default(),
        };
        // SAFETY: the slot is ours; the buffer is larger than any fixed part.
        unsafe {
            (&raw mut (*self.slot).buffer).cast::<Header>().write(header);
            (*self.slot).used = (size_of::<Header>() + body) as u64;
        }
    }

    /// Writes at `offset` of the body.
    #[inline(always)]
    pub fn put<T: IntoBytes>(self, offset: usize, value: T) {
        // SAFETY: the slot is ours; bodies are smaller than the buffer, and
        // every body's size is a multiple of 8.
        unsafe {
            (&raw mut (*self.slot).buffer)
                .cast::<u8>()
                .add(size_of::<Header>() + offset)
                .cast::<T>()
                .write(value);
        }
    }

    /// Sets bits of a number at `offset` of the body.
    #[inline(always)]
    pub fn add_bits(self, offset: usize, bits: u32) {
        // SAFETY: as in `put`.
        unsafe {
            let at = (&raw mut (*self.slot).buffer)
                .cast::<u8>()
                .add(size_of::<Header>() + offset)
                .cast::<u32>();
            at.write(at.read_volatile() | bits);
        }
    }

    /// Where the next bytes of the tail go: at most `WRITE_MAX` may be written.
    #[inline(always)]
    pub fn tail(self) -> *mut u8 {
        // SAFETY: the mask keeps the position inside the buffer.
        unsafe {
            let at = (*self.slot).used as usize & POSITION_MASK;
            (&raw mut (*self.slot).buffer).cast::<u8>().add(at)
        }
    }

    /// Takes the next `len` bytes of the tail as written.
    #[inline(always)]
    pub fn advance(self, len: usize) {
        // SAFETY: the slot is ours.
        unsafe { (*self.slot).used += len as u64 }
    }

    /// Bytes so far, header and body included.
    #[inline(always)]
    pub fn used(self) -> usize {
        // SAFETY: the slot is ours.
        unsafe { (*self.slot).used as usize }
    }

    /// The bytes written since `start` (a former [`Record::used`]), relative
    /// to the tail of a record with this body.
    #[inline(always)]
    pub fn span(self, start: usize, body: usize) -> Span {
        Span {
            offset: (start - size_of::<Header>() - body) as u32,
            len: (self.used() - start) as u32,
        }
    }

    /// Sends the record with what was decided, and frees the slot. False when
    /// there was no room (counted).
    #[inline(always)]
    pub fn submit(self, decision: u32) -> bool {
        let len = self.used() & POSITION_MASK;
        // SAFETY: the slot is ours until `busy` is cleared; `len` is masked to
        // less than the buffer.
        unsafe {
            let buffer = (&raw mut (*self.slot).buffer).cast::<u8>();
            let header = buffer.cast::<Header>();
            (*header).len = len as u32;
            (*header).decision = decision;
            let job = (*header).job;
            (*header).seq = number(job);
            let bulk =
                (*header).kind == kind::FILE && decision <= decision::WITHIN && job != CANARY_JOB;
            let sent = output(if bulk { ring(&BULK) } else { ring(&CRITICAL) }, buffer, len);
            if !sent {
                lost(job, self.class);
            }
            atomic_xchg::<u64, { AtomicOrdering::SeqCst }>(&raw mut (*self.slot).busy, 0);
            sent
        }
    }
}

/// The number of a job's next record. Those that are lost have one too.
#[inline(always)]
fn number(job: u64) -> u64 {
    match NUMBERS.get_ptr_mut(job) {
        // SAFETY: the entry is the daemon's to remove, after the job; the
        // counter is changed by nothing else.
        Some(next) => unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(next, 1) },
        None => 0,
    }
}

#[inline(always)]
fn output(ring: *mut core::ffi::c_void, buffer: *mut u8, len: usize) -> bool {
    // SAFETY: the map outlives the call, and so does the buffer.
    unsafe { bpf_ringbuf_output(ring, buffer.cast(), len as u64, wakeup(ring)) == 0 }
}

/// Whether the effect was reported before; then it is counted.
#[inline(always)]
pub fn seen(key: &Seen, class: u32) -> bool {
    if SEEN.get_ptr_mut(key).is_none() {
        return false;
    }
    repeated(key.job, class);
    true
}

/// Counts an effect that was reported before.
#[inline(always)]
pub fn repeated(job: u64, class: u32) {
    if let Some(count) = REPEATED.get_ptr_mut(LostKey { job, class, reserved: 0 }) {
        // SAFETY: as in `lost`.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(count, 1) };
    }
}

/// Takes note of an effect that was reported.
#[inline(always)]
pub fn note(key: &Seen) {
    // A full table forgets what was not seen for long; then it is said again.
    let _ = SEEN.insert(key, 0, 0);
}

/// Counts a record that could not be sent.
#[inline(never)]
pub fn lost(job: u64, class: u32) {
    let key = LostKey { job, class, reserved: 0 };
    if let Some(count) = LOST.get_ptr_mut(key) {
        // SAFETY: the map is per CPU; a preempting program may count at the
        // same time, hence the atomic addition.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(count, 1) };
    }
}

#[inline(always)]
fn ring(map: &'static RingBuf) -> *mut core::ffi::c_void {
    (&raw const *map).cast_mut().cast()
}

/// Bytes in a ring at which its reader is woken; the loader sets it.
#[unsafe(no_mangle)]
pub static WAKE_BYTES: u64 = 0;

/// Waking the reader costs the producer microseconds, so it is woken only when
/// a good part of the ring is waiting; otherwise it comes by itself.
#[inline(always)]
fn wakeup(ring: *mut core::ffi::c_void) -> u64 {
    // SAFETY: the map outlives the call.
    let waiting = unsafe { bpf_ringbuf_query(ring, u64::from(BPF_RB_AVAIL_DATA)) };
    u64::from(if waiting >= offset(&WAKE_BYTES) as u64 {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    })
}
