//! Tracepoints that two programs are told of, from Linux 7.0 on. Since then such a
//! program can be preempted, and is skipped for every other task on that processor
//! until it has ended. The second one, attached behind the first, does what the
//! first was skipped for; otherwise it takes so little time that it is hardly ever
//! preempted itself.

use aya_ebpf::{helpers::bpf_get_current_pid_tgid, macros::map, maps::LruHashMap};

use crate::kernel::offset;

/// What first programs did that second ones have not looked at yet, by thread and
/// tracepoint. What a skipped second one left here would have the next one believe
/// that all was done: user space clears the map when one was skipped. That an entry
/// is gone too early has something be done twice at worst.
#[map]
static DONE: LruHashMap<u64, u8> = LruHashMap::with_max_entries(4096, 0);

/// Whether there are second programs here; the loader sets it.
#[unsafe(no_mangle)]
pub static TOLD_TWICE: u64 = 0;

/// A tracepoint, whose number is above those of threads.
#[derive(Clone, Copy)]
pub struct Tracepoint(pub u64);

impl Tracepoint {
    #[inline(always)]
    fn key(self) -> u64 {
        self.0 << 32 | bpf_get_current_pid_tgid() & 0xffff_ffff
    }

    /// By the first program, when it did what must not be done twice.
    #[inline(always)]
    pub fn done(self) {
        if offset(&TOLD_TWICE) != 0 {
            let _ = DONE.insert(self.key(), 0, 0);
        }
    }

    /// By the second one.
    #[inline(always)]
    pub fn take(self) -> bool {
        DONE.remove(self.key()).is_ok()
    }
}

/// Both programs of a tracepoint. The function says whether it must not be called
/// again for the same.
macro_rules! told {
    ($number:literal $tracepoint:literal $first:ident $again:ident => $room:path) => {
        #[aya_ebpf::macros::btf_tracepoint(function = $tracepoint)]
        pub fn $first(ctx: aya_ebpf::programs::BtfTracePointContext) -> i32 {
            if $room(&ctx) {
                $crate::told::Tracepoint($number).done();
            }
            0
        }

        #[aya_ebpf::macros::btf_tracepoint(function = $tracepoint)]
        pub fn $again(ctx: aya_ebpf::programs::BtfTracePointContext) -> i32 {
            if !$crate::told::Tracepoint($number).take() {
                $room(&ctx);
            }
            0
        }
    };
}
pub(crate) use told;
