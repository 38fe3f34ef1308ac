//! Reading kernel memory at offsets that the loader resolved.

use core::mem::size_of;

use aya_ebpf::helpers::{
    bpf_probe_read_kernel, generated::bpf_probe_read_kernel as bpf_probe_read_kernel_raw,
};
use zerocopy::FromBytes;

macro_rules! declare {
    ($($symbol:ident = $ty:literal $member:literal;)*) => {
        $(#[unsafe(no_mangle)]
        pub static $symbol: u64 = 0;)*
    };
}
effectgate_common::for_each_offset!(declare);
effectgate_common::for_each_optional_offset!(declare);
effectgate_common::for_each_parameter!(declare);

/// A pointer into the kernel, known by what it points to only in its name.
pub type Ptr = *const u8;

/// The value that the loader put into an offset.
#[inline(always)]
pub fn offset(symbol: &'static u64) -> usize {
    // SAFETY: a static of this object. Volatile, or the compiler would fold
    // the 0 it was declared with.
    unsafe { core::ptr::read_volatile(symbol) as usize }
}

/// Reads a field; `None` when the memory is not readable.
#[inline(always)]
pub fn read<T: FromBytes>(base: Ptr, symbol: &'static u64) -> Option<T> {
    // SAFETY: the helper checks the address and copies; any bits are a T.
    unsafe { bpf_probe_read_kernel(base.wrapping_add(offset(symbol)).cast::<T>()).ok() }
}

/// Reads a field; zero when the memory is not readable. Nothing branches here:
/// where it does not matter why there is nothing, the verifier is spared going
/// both ways at every field.
#[inline(always)]
pub fn peek<T: FromBytes>(base: Ptr, symbol: &'static u64) -> T {
    let mut value = core::mem::MaybeUninit::<T>::uninit();
    // SAFETY: the helper checks the address; it writes all of the value, zeroes
    // when it cannot read, and any bits are a T.
    unsafe {
        bpf_probe_read_kernel_raw(
            value.as_mut_ptr().cast(),
            size_of::<T>() as u32,
            base.wrapping_add(offset(symbol)).cast(),
        );
        value.assume_init()
    }
}

/// Reads a pointer field; null when it is null or not readable.
#[inline(always)]
pub fn peek_ptr(base: Ptr, symbol: &'static u64) -> Ptr {
    peek::<u64>(base, symbol) as Ptr
}

/// Reads a pointer field; `None` when it is null or not readable.
#[inline(always)]
pub fn follow(base: Ptr, symbol: &'static u64) -> Option<Ptr> {
    let at: u64 = read(base, symbol)?;
    if at == 0 { None } else { Some(at as Ptr) }
}
