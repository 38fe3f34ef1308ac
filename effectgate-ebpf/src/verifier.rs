//! What the verifier had better not know.

/// Always 0. Nobody writes it, but the verifier has to assume that somebody
/// could.
#[unsafe(no_mangle)]
static mut ZERO: u64 = 0;

/// A number that the verifier does not know any more.
///
/// Before 6.4 it takes states that differ in a number for different ones as
/// soon as a program has functions, and would follow all that is common to the
/// system calls once for each of them: more than it is willing to.
#[inline(always)]
pub fn veiled(number: u64) -> u64 {
    // SAFETY: nobody writes it.
    number ^ unsafe { (&raw const ZERO).read_volatile() }
}
