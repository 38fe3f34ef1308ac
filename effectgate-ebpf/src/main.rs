//! The kernel programs. A hook's program is thin: it finds out whose task it
//! is ([`scope`]), describes the object ([`object`], [`walk`]) and hands the
//! record to [`emit`], the only writer of the ring.
#![no_std]
#![no_main]
// The target offers no atomic exchange through core::sync::atomic, although
// BPF has one (kernel 5.12).
#![expect(internal_features, reason = "the exchange is an intrinsic")]
#![feature(core_intrinsics)]

mod arrange;
mod attributes;
mod calls;
mod cgroup;
mod content;
mod descriptor;
mod emit;
mod exec;
mod guard;
mod held;
mod hook;
mod ioctl;
mod ipc;
mod judge;
mod kernel;
mod lifecycle;
mod lsm;
mod moves;
mod namespace;
mod net;
mod object;
mod open;
mod overlay;
mod passed;
mod peer;
mod process;
mod registrar;
mod repeat;
mod route;
mod scope;
mod socket;
mod socketcalls;
mod syscall;
mod told;
mod unix;
mod verifier;
mod walk;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // A reachable panic would loop for ever, so the verifier refuses it: what
    // loads cannot panic.
    loop {}
}

// The kernel gives its GPL-only helpers (probe reads, ring) to such programs.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
