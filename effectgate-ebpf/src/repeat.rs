//! Loops that the verifier reads once.
//!
//! It follows a plain loop through every iteration, the body of a `bpf_loop`
//! (kernel 5.17) only until its state repeats: with two walks in thirty
//! programs that is the difference between milliseconds and seconds of loading.

use core::ffi::c_void;

use aya_ebpf::helpers::generated::bpf_loop;

/// What a step answers.
pub const GO_ON: i64 = 0;
pub const STOP: i64 = 1;

/// One iteration: its number from 0, and the loop's state.
pub type Step<T> = extern "C" fn(u64, *mut T) -> i64;

/// Calls `step` until it answers [`STOP`], `times` times at most.
#[inline(always)]
pub fn repeat<T>(times: u32, step: Step<T>, state: &mut T) {
    // SAFETY: `step` is a function of this object with the signature that the
    // helper calls, and `state` outlives the call.
    unsafe {
        bpf_loop(times, step as *mut c_void, (&raw mut *state).cast(), 0);
    }
}
